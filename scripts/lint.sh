#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs all linters. It changes nothing, and stops at the first linter that finds something.
#
#   scripts/lint.sh              checks everything
#   scripts/lint.sh PACKAGE...   looks at only these packages' meaning, and for this system alone;
#                                all files' form is checked as ever
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [ -n "$unformatted" ]; then
	printf 'gofmt -w these:\n%s\n' "$unformatted" >&2
	exit 1
fi
git ls-files '*.c' '*.h' | xargs clang-format-19 --dry-run --Werror
git ls-files '*.sh' .ci/run | xargs shellcheck
scripts/check-text.sh
if [ $# -eq 0 ]; then
	set -- ./...
	scripts/cross.sh
fi
go vet "$@"
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 "$@"
