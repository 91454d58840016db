#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the programs for BPF and for the simulator and writes the reference of schemes again, and
# fails if what is committed differs.
set -euo pipefail
cd "$(dirname "$0")/.."

go generate ./...
if ! git diff --exit-code --stat -- '*.o' '*.wasm' '*_bpfel.go' docs/schemes.md; then
	echo "generated files differ: run 'make generate' with clang-19 and commit the result" >&2
	exit 1
fi
