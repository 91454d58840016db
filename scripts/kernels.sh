#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries every object on each of Debian's cloud kernels from 6.12 on that the archive has, in a
# microVM, and writes docs/kernels.md after each. What was tried with this commit of pcn is not
# tried again, so it may be stopped and go on later. A kernel takes half a minute of CPU time.
#
#   scripts/kernels.sh              all of them, the newest of each series first
#   scripts/kernels.sh 6.18 7.      those whose release begins so
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian-archive.sh
. scripts/debian-archive.sh

OLDEST=6.12
SUITES=(bookworm-backports trixie trixie-backports)
RESULTS=tests/kernels/testdata/debian
arch=amd64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
commit=$(git describe --always --dirty --exclude '*' -- 2>/dev/null || scripts/version.sh)

# releases prints each release, its version as a package and its suite.
releases() {
	local images
	mapfile -t images < <(
		apt_here apt-cache pkgnames linux-image- |
			grep -E "^linux-image-[0-9].*-cloud-$arch\$"
	)
	apt_here apt-cache madison "${images[@]}" |
		sed -nE 's/^ *linux-image-(\S+) \| +(\S+) \| +\S+ ([^/]+)\/.*/\1 \2 \3/p' | sort -u
}

# newest_first puts the newest of each series in front, and leaves out what is older than OLDEST.
newest_first() {
	sort -Vr | awk -v oldest="$OLDEST" '
		{ split($1, n, "."); split(oldest, o, "."); series = n[1] "." n[2] }
		n[1] < o[1] || n[1] == o[1] && n[2] < o[2] { next }
		{ print (seen[series]++ > 0), $0 }' | sort -s -n -k 1,1 | cut -d ' ' -f 2-
}

# download fetches a package of a version. The archive keeps modules of kernels that its lists no
# longer have: these come without apt's check. They run in a microVM only, whose kernel checks the
# signatures of modules.
download() {
	(cd "$work/deb" && apt_here apt-get download "$1=$2" 2>/dev/null) ||
		curl -sfS -o "$work/deb/$1.deb" "$MIRROR/pool/main/l/linux/$1_$2_$arch.deb"
}

# try_kernel fetches a kernel and tries the objects on it.
try_kernel() {
	local release=$1 version=$2 suite=$3 part
	rm -f "$work"/deb/*
	for part in "linux-image-$release" $(kernel_parts "linux-image-$release"); do
		download "$part" "$version" || return
	done
	(cd tests/kernels && "$work/kernels.test" -test.run '^TestDebian$' -test.timeout 2h \
		-debian-packages "$(printf '%s\n' "$work"/deb/*.deb | paste -s -d ,)" \
		-debian-suite "$suite" -debian-pcn "$commit") >"$work/log" 2>&1 || {
		cat "$work/log"
		return 1
	}
}

is_wanted() {
	local release=$1 start
	shift
	[ $# -gt 0 ] || return 0
	for start; do
		[[ $release != "$start"* ]] || return 0
	done
	return 1
}

go test -c -o "$work/kernels.test" ./tests/kernels
read_suites "${SUITES[@]}"
failed=()
while read -r release version suite; do
	is_wanted "$release" "$@" || continue
	! grep -qsF "\"pcn\": \"$commit\"" "$RESULTS/$release.json" || continue
	echo "kernels: $release of $suite"
	try_kernel "$release" "$version" "$suite" || failed+=("$release")
	(cd tests/kernels && "$work/kernels.test" -test.run '^TestDebianPage$' -update >/dev/null)
done < <(releases | newest_first)
[ ${#failed[@]} -eq 0 ] || {
	echo "kernels: failed on ${failed[*]}" >&2
	exit 1
}
