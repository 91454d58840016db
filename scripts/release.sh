#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a release: scripts/release.sh VERSION [FOLDER]
# FOLDER, bin/release by default, gets static binaries and Debian packages for Linux on amd64 and
# arm64, and SHA256SUMS. The same commit, Go and clang give the same bytes. It needs what make
# setup-dev installs.
set -euo pipefail
umask 022

die() {
	printf 'release: %s\n' "$*" >&2
	exit 1
}

[ $# -ge 1 ] || die "usage: release.sh VERSION [FOLDER]"
version=$1
[[ $version =~ ^[0-9][0-9A-Za-z.+~]*$ ]] ||
	die "invalid version $version: want a digit, then digits, letters, '.', '+' or '~'"
out=$(realpath -m "${2:-bin/release}")
cd "$(dirname "$0")/.."
[ -z "$(git status --porcelain)" ] || die "there are changes: commit them first"
[ ! -e "$out" ] || die "$out exists: remove it, or name another folder"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s guest
for arch in amd64 arm64; do
	GOOS=linux GOARCH=$arch make -s build BIN="$work/pcn-$version-linux-$arch"
	scripts/build-deb.sh "$version" "$arch" "$work" >/dev/null
done
(cd "$work" && sha256sum pcn* >SHA256SUMS)
mkdir -p "$(dirname "$out")"
cp -r "$work" "$out"
chmod 755 "$out"
cat "$out/SHA256SUMS"
