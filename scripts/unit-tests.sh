#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need neither root nor a microVM. Such a package is one whose tests import
# neither the microVM (internal/vm and vm/vmtest) nor namespaces (internal/nstest), outside of
# tests/.
set -euo pipefail
cd "$(dirname "$0")/.."

needs_machine='/internal/vm( |$|/vmtest)|/internal/nstest'
mapfile -t packages < <(
	go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
		awk -v needs="$needs_machine|/tests/" 'NF > 1 && $0 !~ needs { print $1 }'
)
[ ${#packages[@]} -gt 0 ] || {
	echo "unit-tests: found no package" >&2
	exit 1
}
# -vet=off: scripts/lint.sh vets. The time limit is that of make test-beside, so that make test
# finds these results in Go's cache and does not run the same tests again.
go test -vet=off -timeout 40m "$@" "${packages[@]}"
