#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages with apt, and downloads the microVM's kernel to the user's cache. It
# leaves alone what is installed already, so it is safe and quick to run again.
#
#   scripts/setup.sh                    for running experiments
#   scripts/setup.sh --dev              also for compiling BPF programs, linting and testing
#   scripts/setup.sh --arm64            also for make test-arm64
#   scripts/setup.sh --kernel-suite S   with the kernel of Debian S: bookworm, trixie or
#                                       trixie-backports (default)
#
# The kernel of trixie-backports is the one that was tested (scripts/kernel.sha256), from Debian's
# mirror or from its archive of snapshots. If neither has it, it is the newest, with a warning.
set -euo pipefail

RUN_PACKAGES=(
	qemu-system-x86 qemu-system-data tshark xz-utils zstd lz4 ca-certificates
	debian-archive-keyring
)
DEV_PACKAGES=(
	clang-19 lld-19 llvm-19 clang-format-19 libbpf-dev linux-libc-dev make git shellcheck iproute2 iperf3
	curl gcc libc6-dev python3 slurm-wlm munge lintian qemu-user-static
	chromium fonts-liberation
)
ARM64_PACKAGES=(qemu-system-arm)
ARM64_SUITE=trixie
MIRROR=http://deb.debian.org/debian
TESTED=$(dirname "$0")/kernel.sha256
TESTED_SUITE=trixie-backports
SNAPSHOT=https://snapshot.debian.org/archive/debian/20261123T000000Z # a time when it was there
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
SUITES=(trixie-backports)
PACKAGES=("${RUN_PACKAGES[@]}")
with_arm64=

say() { printf 'setup: %s\n' "$*"; }
die() {
	printf 'setup: %s\n' "$*" >&2
	exit 1
}

while [ $# -gt 0 ]; do
	case $1 in
	--dev)
		PACKAGES+=("${DEV_PACKAGES[@]}")
		SUITES=(bookworm trixie trixie-backports)
		;;
	--arm64)
		PACKAGES+=("${ARM64_PACKAGES[@]}")
		with_arm64=yes
		;;
	--kernel-suite)
		[ $# -ge 2 ] || die "--kernel-suite needs a suite: bookworm, trixie or trixie-backports"
		SUITES=("$2")
		shift
		;;
	-h | --help)
		sed -n '3,13s/^# \{0,1\}//p' "$0" # the comment above
		exit 0
		;;
	*) die "unknown option $1: see $0 --help" ;;
	esac
	shift
done
case ${SUITES[0]} in
bookworm | trixie | trixie-backports) ;;
*) die "unknown kernel suite ${SUITES[0]}: want bookworm, trixie or trixie-backports" ;;
esac

# as_root runs a command as root, or tells the user what to do.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "missing ${missing[*]}, but there is neither root nor sudo:" \
			"have them installed, then run this again"
	fi
}

missing=()
for p in "${PACKAGES[@]}"; do
	dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
done
# Tests start their own munge and Slurm daemons. The packages' services must not run beside them.
services=()
for p in munge slurm-wlm; do
	[[ " ${missing[*]} " == *" $p "* && -d /run/systemd/system ]] || continue
	case $p in
	munge) services+=(munge.service) ;;
	slurm-wlm) services+=(slurmctld.service slurmd.service) ;;
	esac
done
if [ ${#missing[@]} -gt 0 ]; then
	say "installing ${missing[*]}"
	[ ${#services[@]} -eq 0 ] || as_root systemctl -q mask "${services[@]}"
	as_root apt-get update -qq
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
	if [ ${#services[@]} -gt 0 ]; then
		as_root systemctl -q unmask "${services[@]}"
		as_root systemctl -q disable "${services[@]}"
	fi
else
	say "all packages are installed"
fi
command -v go >/dev/null || die "Go 1.26 or later is not installed: see https://go.dev/doc/install"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/pcn/kernel

# apt_here runs one of apt's tools for $arch, with its own source list, state and cache in $work. It
# does not touch the machine's.
apt_here() {
	local tool=$1
	shift
	"$tool" -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- \
		-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" \
		-o "Dir::Cache::archives=$work/archives" \
		-o APT::Sandbox::User= -o Acquire::Languages=none \
		-o "APT::Architecture=$arch" -o "APT::Architectures=$arch" "$@"
}

# depends prints the first alternative of each dependency of package $1 that matches pattern $2.
depends() {
	apt_here apt-cache show --no-all-versions "$1" | sed -n 's/^Depends: //p' |
		tr ',' '\n' | sed 's/^ *//; s/ .*//' | grep -E "$2" || true
}

# number prints the little-endian number of $2 bytes at offset $1 of the boot image.
number() { od -An -v -t "u$2" -j "$1" -N "$2" "$bzimage" | tr -d ' '; }

# unpack extracts the kernel from the boot image. The image's header says where it is: setup_sects,
# payload_offset and payload_length in Documentation/arch/x86/boot.rst. The last 4 bytes of the
# payload are the unpacked size, not part of the compressed stream.
unpack() {
	local start=$((($(number $((0x1f1)) 1) + 1) * 512 + $(number $((0x248)) 4)))
	local length=$(($(number $((0x24c)) 4) - 4)) tool
	case $(number "$start" 4) in
	$((0xfd2fb528))) tool=zstd ;;
	$((0x587a37fd))) tool=xz ;;
	$((0x184c2102))) tool=lz4 ;;
	*) die "unknown compression of $bzimage: want zstd, xz or lz4" ;;
	esac
	dd if="$bzimage" iflag=skip_bytes,count_bytes skip="$start" count="$length" bs=1M status=none |
		"$tool" -qdc >"$out/vmlinux"
}

# fetch_tested downloads the packages of the kernel that was tested to $work/deb, or fails.
fetch_tested() {
	local hash path source
	while read -r hash path; do
		for source in "$MIRROR" "$SNAPSHOT"; do
			/usr/lib/apt/apt-helper -qq download-file "$source/$path" \
				"$work/deb/${path##*/}" "SHA256:$hash" 2>"$work/why" && continue 2
		done
		return 1
	done < <(grep -v '^#' "$TESTED")
}

# tested prints the version of the kernel that was tested.
tested() { sed -n 's|.*/linux-binary-\(.*\)_.*_.*|\1|p' "$TESTED"; }

# fetch_kernel downloads the kernel of a suite and an architecture to a folder of the cache. It runs
# in its own subshell.
fetch_kernel() {
	local suite=$1 arch=$2 folder=$3 signed_by='' image deb module name version
	work=$(mktemp -d "$CACHE/.setup-XXXXXX")
	trap 'rm -rf "$work"' EXIT
	say "fetching Debian's cloud kernel of $arch from $suite"
	mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/deb" "$work/root"
	[ -e "$KEYRING" ] && signed_by="[signed-by=$KEYRING] "
	printf 'deb %s%s %s main\n' "$signed_by" "$MIRROR" "$suite" >"$work/sources.list"
	if [ "$suite $arch" = "$TESTED_SUITE amd64" ] && fetch_tested; then
		image=linux-image-$(tested)
	else
		[ "$suite $arch" != "$TESTED_SUITE amd64" ] ||
			say "warning: neither Debian's mirror nor its snapshots have $(tested)," \
				"which was tested: taking the newest of $suite: results differ"
		rm -f "$work"/deb/*
		apt_here apt-get update
		image=$(depends "linux-image-cloud-$arch/$suite" '^linux-image-[0-9]' | head -n 1)
		[ -n "$image" ] || die "found no kernel behind linux-image-cloud-$arch in $suite"
		# From 7.2 on the package is split: linux-binary-* has the kernel, linux-modules-*
		# the modules, linux-base-* the configuration.
		mapfile -t parts < <(
			printf '%s\n' "$image" && depends "$image" '^linux-(binary|modules|base)-[0-9]'
		)
		(cd "$work/deb" && apt_here apt-get download "${parts[@]}")
	fi
	# Experiments may use these modules: links, congestion controls, qdiscs.
	for deb in "$work"/deb/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --wildcards \
			'*vmlinuz*' '*/boot/config-*' '*/modules/*/config' \
			'*/drivers/net/veth.ko*' '*/net/ipv4/*.ko*' '*/net/sched/*.ko*' 2>/dev/null || true
	done
	version=${image#linux-image-}
	bzimage=$(find "$work/root" -name "vmlinuz*" -type f | head -n 1)
	[ -n "$bzimage" ] || die "no vmlinuz in the packages of $image"
	out=$work/out
	mkdir -p "$out/modules"
	case $arch in
	amd64) unpack ;;
	*) cp "$bzimage" "$out/vmlinux" ;; # it is not compressed
	esac
	find "$work/root" -name '*.ko*' |
		while read -r module; do
			name=$(basename "$module")
			case $name in
			*.xz) xz -dc "$module" >"$out/modules/${name%.xz}" ;;
			*.zst) zstd -qdc "$module" >"$out/modules/${name%.zst}" ;;
			*) cp "$module" "$out/modules/$name" ;;
			esac
		done
	[ -e "$out/modules/veth.ko" ] || die "no veth.ko in the packages of $image"
	find "$work/root" -type f \( -path '*/boot/config-*' -o -path '*/modules/*/config' \) \
		-exec cp {} "$out/config" \;
	rm -rf "${folder:?}/$version"
	mv "$out" "$folder/$version"
	printf '%s\n' "$version" >"$folder/.suite-$suite"
	say "microVM kernel $version is in $folder"
}

fetches=()

# need_kernel fetches the kernel of a suite and an architecture to a folder, unless it is there. It
# does so in the background.
need_kernel() {
	local suite=$1 arch=$2 folder=$3
	local stamp=$folder/.suite-$suite
	mkdir -p "$folder"
	if [ -e "$stamp" ] && [ -e "$folder/$(cat "$stamp")/vmlinux" ]; then
		say "microVM kernel $(cat "$stamp") ($suite) is in $folder"
		[ "$suite $arch" != "$TESTED_SUITE amd64" ] ||
			[ "$(cat "$stamp")" = "$(tested)" ] ||
			say "warning: $(tested) was tested, and results differ between kernels:" \
				"remove $folder/$(cat "$stamp") and run this again to have it"
		return
	fi
	(fetch_kernel "$suite" "$arch" "$folder") &
	fetches+=($!)
}

# Downloads run in parallel, since most of the time is waiting for the mirror.
for suite in "${SUITES[@]}"; do
	need_kernel "$suite" amd64 "$CACHE"
done
[ -z "$with_arm64" ] || need_kernel "$ARM64_SUITE" arm64 "$CACHE/arm64"
for fetch in "${fetches[@]}"; do
	wait "$fetch" || die "could not download a kernel, see above: run this again"
done
