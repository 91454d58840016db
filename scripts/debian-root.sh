#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a small Debian with systemd, which tests boot in a container: debian-root.sh FOLDER. It does
# nothing if the folder is there. As root.
set -euo pipefail

SUITE=bookworm
MIRROR=http://deb.debian.org/debian
PACKAGES=systemd,systemd-sysv,dbus,iproute2,procps

[ $# -eq 1 ] || {
	printf 'debian-root: name the folder to make\n' >&2
	exit 1
}
root=$1
[ ! -e "$root" ] || exit 0
command -v debootstrap >/dev/null || {
	printf 'debian-root: debootstrap is not installed: scripts/setup.sh --dev installs it\n' >&2
	exit 1
}
mkdir -p "$(dirname "$root")"
work=$(mktemp -d -p "$(dirname "$root")")
trap 'rm -rf "$work"' EXIT
debootstrap --variant=minbase "--include=$PACKAGES" "$SUITE" "$work/root" "$MIRROR" \
	>"$work/log" || {
	tail -n 20 "$work/log" >&2
	exit 1
}
rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
mv -T "$work/root" "$root" # whole or not at all
