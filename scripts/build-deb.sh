#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian package: build-deb.sh VERSION ARCHITECTURE [FOLDER [COMPRESSION [LEVEL]]]
# ARCHITECTURE is amd64 or arm64. The package goes to FOLDER, bin by default. COMPRESSION is one of
# dpkg-deb's, xz by default, and LEVEL its level. PCN_PROGRAMS may name a folder that has the
# programs already, in pcn-VERSION-SYSTEM-ARCHITECTURE: scripts/release.sh has built them for its
# archives.
set -euo pipefail
umask 022

die() {
	printf 'build-deb: %s\n' "$*" >&2
	exit 1
}

[ $# -ge 2 ] || die "usage: build-deb.sh VERSION ARCHITECTURE [FOLDER [COMPRESSION [LEVEL]]]"
version=$1 arch=$2
out=$(realpath -m "${3:-bin}") compression=${4:-xz} level=${5:-}
cd "$(dirname "$0")/.."
case $arch in
amd64) multiarch=x86_64-linux-gnu ;;
arm64) multiarch=aarch64-linux-gnu ;;
*) die "unknown architecture $arch: want amd64 or arm64" ;;
esac
command -v dpkg-deb >/dev/null || die "dpkg-deb is not installed: install dpkg"
# The same bytes from the same commit.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
doc=$root/usr/share/doc/pcn

# put installs the files $3... with the permissions $1 to the folder $2 of the package.
put() { install -D -m "$1" -t "$root$2" "${@:3}"; }

# program builds the program of SYSTEM/ARCHITECTURE as the file $1, or takes the one that is there.
program() {
	if [ -n "${PCN_PROGRAMS:-}" ]; then
		cp "$PCN_PROGRAMS/pcn-$version-${2/\//-}/pcn" "$1"
	else
		PCN_VERSION=$version scripts/build.sh "$1" "$2"
	fi
}

guest=internal/launch/guest/pcn-guest
[ -e "$guest" ] || scripts/build-guest.sh "$guest"
program "$work/pcn" "linux/$arch"
pcn=$work/pcn # one that runs here
if [ "$arch" != "$(go env GOHOSTARCH)" ]; then
	pcn=$work/pcn-here
	program "$pcn" "$(go env GOHOSTOS)/$(go env GOHOSTARCH)"
fi

put 755 /usr/bin "$work/pcn"
put 644 /lib/systemd/system packaging/*.service
put 644 /etc/pcn packaging/host.yaml
put 644 /usr/share/doc/pcn docs/*.md
put 644 /usr/share/doc/pcn/schemes docs/schemes/*.md
put 644 /usr/share/doc/pcn/examples packaging/grafana.json packaging/alerts.yaml
# Where Wireshark and tshark look for dissectors of all users.
put 644 "/usr/lib/$multiarch/wireshark/plugins" cnp/pcn.lua
install -D -m 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/pcn"

mkdir -p "$root/usr/share/man/man1"
"$pcn" man "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
mkdir -p "$root"/usr/share/{bash-completion/completions,zsh/vendor-completions} \
	"$root/usr/share/fish/vendor_completions.d"
"$pcn" completion bash >"$root/usr/share/bash-completion/completions/pcn"
"$pcn" completion zsh >"$root/usr/share/zsh/vendor-completions/_pcn"
"$pcn" completion fish >"$root/usr/share/fish/vendor_completions.d/pcn.fish"

maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control)
packaging/debian/changelog.sh "$version" "$maintainer" | gzip -9n >"$doc/changelog.gz"
packaging/debian/copyright.sh >"$doc/copyright"

mkdir -p "$root/DEBIAN"
install -m 755 packaging/debian/{postinst,prerm,postrm} "$root/DEBIAN"
find "$root/etc" -type f -printf '/etc/%P\n' | sort >"$root/DEBIAN/conffiles"
(cd "$root" && find usr lib -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
size=$(du -k --apparent-size -s --exclude=DEBIAN "$root" | cut -f 1)
sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$arch/; s/@SIZE@/$size/" packaging/debian/control \
	>"$root/DEBIAN/control"
mkdir -p "$out"
dpkg-deb --root-owner-group "-Z$compression" ${level:+"-z$level"} \
	--build "$root" "$out/pcn_${version}_$arch.deb"
