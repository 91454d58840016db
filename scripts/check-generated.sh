#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the BPF programs again, and fails if the committed objects differ from the result.
set -euo pipefail
cd "$(dirname "$0")/.."

go generate ./...
if ! git diff --exit-code --stat -- '*.o' '*_bpfel.go'; then
	echo "generated files differ: run 'make generate' with clang-19 and commit the result" >&2
	exit 1
fi
