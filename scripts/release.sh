#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of a release: release.sh VERSION [FOLDER [COMPRESSION [LEVEL]]]
# They are archives of the static program for each system, Debian packages, and SHA256SUMS, in
# FOLDER, bin/release/VERSION by default. COMPRESSION and LEVEL are those of scripts/build-deb.sh;
# archives have LEVEL too, by default 9. The same commit gives the same bytes. It publishes nothing.
#
# VERSION must be the one of the tree: CHANGELOG.md has its section, and nothing under Unreleased.
set -euo pipefail
umask 022

die() {
	printf 'release: %s\n' "$*" >&2
	exit 1
}

[ $# -ge 1 ] || die "usage: release.sh VERSION [FOLDER [COMPRESSION [LEVEL]]]"
version=$1
cd "$(dirname "$0")/.."
out=$(realpath -m "${2:-bin/release/$version}") compression=${3:-xz} level=${4:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] ||
	die "invalid version $version: want three numbers, such as 1.2.0"
here=$(scripts/version.sh)
[ "$here" = "$version" ] ||
	die "CHANGELOG.md is of version $here: want a section \"## $version - DATE\" at its top," \
		"and nothing under Unreleased"
[ -z "$(git status --porcelain)" ] || die "there are changes that are not committed: commit them"
[ ! -e "$out" ] || die "$out exists: remove it"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

mkdir -p "$(dirname "$out")"
work=$(mktemp -d "$(dirname "$out")/.release-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/files"
scripts/build-guest.sh netns-lab/launch/guest/pcn-guest
packaging/debian/copyright.sh >"$work/copyright"

for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	name=pcn-$version-${target/\//-}
	mkdir "$work/$name"
	PCN_VERSION=$version scripts/build.sh "$work/$name/pcn" "$target"
	install -m 644 -t "$work/$name" README.md CHANGELOG.md LICENSE "$work/copyright"
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner \
		--mtime="@$SOURCE_DATE_EPOCH" -c "$name" |
		gzip "-${level:-9}n" >"$work/files/$name.tar.gz"
done
for arch in amd64 arm64; do
	PCN_PROGRAMS=$work scripts/build-deb.sh "$version" "$arch" "$work/files" \
		"$compression" "$level" >/dev/null
done
(cd "$work/files" && sha256sum -- * >SHA256SUMS)
mv "$work/files" "$out"
printf 'release: pcn %s is in %s\n' "$version" "$out"
