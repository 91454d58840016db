#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of a release: release.sh VERSION [FOLDER [COMPRESSION [LEVEL]]]
# They are archives of the static program for each system, Debian packages, and SHA256SUMS, in
# FOLDER, bin/release/VERSION by default. COMPRESSION and LEVEL are those of scripts/build-deb.sh;
# archives have LEVEL too, by default 9. The same commit gives the same bytes. It publishes nothing.
# On Linux on amd64 they also have the kernel of the lab, with what it was built from.
#
# VERSION must be the one of the tree: CHANGELOG.md has its section, and nothing under Unreleased.
set -euo pipefail
umask 022

die() {
	printf 'release: %s\n' "$*" >&2
	exit 1
}

# archive packs a folder of $work.
archive() {
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner \
		--mtime="@$SOURCE_DATE_EPOCH" -c "$1" |
		gzip "-${level:-9}n" >"$work/files/$1.tar.gz"
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
scripts/build-guest.sh internal/launch/guest/pcn-guest
packaging/debian/copyright.sh >"$work/copyright"

for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	name=pcn-$version-${target/\//-}
	mkdir "$work/$name"
	PCN_VERSION=$version scripts/build.sh "$work/$name/pcn" "$target"
	install -m 644 -t "$work/$name" README.md CHANGELOG.md LICENSE "$work/copyright"
	archive "$name"
done
for arch in amd64 arm64; do
	PCN_PROGRAMS=$work scripts/build-deb.sh "$version" "$arch" "$work/files" \
		"$compression" "$level" >/dev/null
done
if [ "$(uname -sm)" = "Linux x86_64" ]; then
	built=$("$work/pcn-$version-linux-amd64/pcn" setup | sed -n 's/^kernel: .* is in //p')
	name=pcn-$version-kernel-linux-amd64
	install -D -t "$work/$name" "$built/linux"
	install -m 644 -t "$work/$name" internal/vm/uml/{source.yaml,edits.go} \
		/usr/share/common-licenses/GPL-2
	install -D -m 644 -t "$work/$name/added" internal/vm/uml/linux/*
	cat >"$work/$name/README" <<-'END'
		The kernel of pcn's lab: Linux as a program. "pcn setup --kernel-file linux" installs it where
		there is no compiler.

		It is under the GNU General Public License, version 2 (GPL-2). Its source is the package of
		Debian that source.yaml names, changed as edits.go says, with the files of the folder "added" as
		arch/x86/um/pcn. "pcn setup" builds the same bytes from them.
	END
	archive "$name"
fi
(cd "$work/files" && sha256sum -- * >SHA256SUMS)
mv "$work/files" "$out"
printf 'release: pcn %s is in %s\n' "$version" "$out"
