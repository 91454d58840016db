#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the packages that docs/api.md promises with those of the last release, or of the commit
# that is given, and fails for a change that breaks users. scripts/check-api.exceptions lists the
# breaks that the next release announces; empty it after a release.
set -euo pipefail
cd "$(dirname "$0")/.."

base=${1-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [ -z "$base" ]; then
	echo "check-api: there is no release yet to compare with"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/base"
git archive "$base" | tar -x -C "$work/base"
GOBIN=$work go install golang.org/x/exp/cmd/apidiff@v0.0.0-20261113113407-e3970619a1a4

mapfile -t packages < <(sed -n "s,^| \`\([a-z/-]*\)\` |.*,\1,p" docs/api.md)
[ ${#packages[@]} -gt 0 ] || {
	echo "check-api: docs/api.md lists no package" >&2
	exit 1
}
for package in "${packages[@]}"; do
	compgen -G "$work/base/$package/*.go" >"$work/files" || continue # it is new
	(cd "$work/base" && "$work/apidiff" -w "$work/old" "./$package")
	"$work/apidiff" -incompatible "$work/old" "./$package" >"$work/changes"
	sed -n "s|^- |$package: |p" "$work/changes"
done | sort >"$work/breaks"

sort scripts/check-api.exceptions | grep -v '^#' >"$work/announced" || true
if unannounced=$(comm -23 "$work/breaks" "$work/announced") && [ -n "$unannounced" ]; then
	printf '%s\n' "$unannounced" >&2
	cat >&2 <<-END
		check-api: these break users of $base: keep the old name beside the new
		one, or announce them in CHANGELOG.md and list them in
		scripts/check-api.exceptions
	END
	exit 1
fi
echo "check-api: ${#packages[@]} packages keep what $base promised"
