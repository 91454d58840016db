#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all linters. It changes nothing, and stops at the first linter that finds something.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'gofmt -w these:\n%s\n' "$unformatted" >&2
	exit 1
fi
go vet ./...
scripts/cross.sh
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
git ls-files '*.c' '*.h' | xargs clang-format-19 --dry-run --Werror
git ls-files '*.sh' .ci/run | xargs shellcheck
scripts/check-text.sh
