#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs missing packages with apt, and puts the microVM's kernel into the user's cache: pcn setup
# builds it. It leaves alone what is there already, so it is safe and quick to run again.
#
#   scripts/setup.sh                    for running experiments
#   scripts/setup.sh --dev              also for compiling BPF programs, linting and testing, with
#                                       QEMU and kernels for it
#   scripts/setup.sh --arm64            also for make test-arm64
#   scripts/setup.sh --kernel-suite S   also with QEMU, and the kernel of Debian S for it: bookworm,
#                                       trixie or trixie-backports
#
# The kernel of trixie-backports is the one that was tested, which pcn setup --qemu fetches and
# verifies. If that fails, it is the newest, with a warning.
set -euo pipefail

# What pcn setup builds the kernel with is in internal/vm/uml/missing.go, too.
RUN_PACKAGES=(
	gcc libc6-dev make flex bison bc dwarves libelf-dev zlib1g-dev binutils tar xz-utils
	tshark ca-certificates
)
QEMU_PACKAGES=(qemu-system-x86 qemu-system-data debian-archive-keyring)
DEV_PACKAGES=(
	"${QEMU_PACKAGES[@]}"
	clang-19 lld-19 llvm-19 clang-format-19 libbpf-dev linux-libc-dev make git shellcheck iproute2
	iperf3 nftables iputils-ping redis-server redis-tools nginx-light openssh-server tcpdump
	curl postgresql python3 python3-pandas python3-matplotlib slurm-wlm munge lintian
	qemu-user-static chromium fonts-liberation systemd-container debootstrap util-linux
)
ARM64_PACKAGES=(qemu-system-arm)
ARM64_SUITE=trixie
TESTED=$(sed -n 's/^version: //p' "$(dirname "$0")/../internal/vm/debian/tested.yaml")
TESTED_SUITE=trixie-backports
SUITES=()
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
		PACKAGES+=("${QEMU_PACKAGES[@]}")
		shift
		;;
	-h | --help)
		sed -n '3,12s/^# \{0,1\}//p' "$0" # the comment above
		exit 0
		;;
	*) die "unknown option $1: see $0 --help" ;;
	esac
	shift
done
case ${SUITES[0]-} in
'' | bookworm | trixie | trixie-backports) ;;
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

# apt is there now.
# shellcheck source=scripts/debian-archive.sh
. "$(dirname "$0")/debian-archive.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/pcn/kernel
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT

build_pcn() { [ -e "$tools/pcn" ] || "$(dirname "$0")/build.sh" "$tools/pcn"; }

# pcn_setup runs pcn setup, and prints what it says of the kernel.
pcn_setup() { "$tools/pcn" setup "$@" | sed -n 's/^kernel: /setup: microVM kernel /p'; }

# fetch_newest fetches the newest kernel of a suite and an architecture to a folder of the cache.
# It does so with apt, which verifies it, and runs in its own subshell.
fetch_newest() {
	local suite=$1 arch=$2 folder=$3 image parts
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	say "fetching Debian's cloud kernel of $arch from $suite"
	read_suites "$suite"
	image=$(depends "linux-image-cloud-$arch/$suite" '^linux-image-[0-9]' | head -n 1)
	[ -n "$image" ] || die "found no kernel behind linux-image-cloud-$arch in $suite"
	mapfile -t parts < <(printf '%s\n' "$image" && kernel_parts "$image")
	(cd "$work/deb" && apt_here apt-get download "${parts[@]}")
	pcn_setup --deb "$(printf '%s\n' "$work"/deb/*.deb | paste -s -d ,)"
	mkdir -p "$folder"
	printf '%s\n' "${image#linux-image-}" >"$folder/.suite-$suite"
}

# fetch_tested fetches the kernel that was tested, or else the newest.
fetch_tested() {
	pcn_setup --qemu && return
	say "warning: could not fetch kernel $TESTED, which was tested, see above: taking the newest" \
		"of $TESTED_SUITE: results differ"
	have_newest "$TESTED_SUITE" "$CACHE" || fetch_newest "$TESTED_SUITE" amd64 "$CACHE"
}

# have_newest says whether the folder has a kernel of the suite.
have_newest() {
	local suite=$1 folder=$2
	local stamp=$folder/.suite-$suite
	[ -e "$stamp" ] && [ -e "$folder/$(cat "$stamp")/vmlinux" ] || return
	say "microVM kernel $(cat "$stamp") ($suite) is in $folder"
}

fetches=()

# need_kernel fetches the kernel of a suite and an architecture to a folder, unless it is there. It
# does so in the background.
need_kernel() {
	local suite=$1 arch=$2 folder=$3
	if [ "$suite $arch" = "$TESTED_SUITE amd64" ]; then
		if [ -e "$folder/$TESTED/vmlinux" ]; then
			say "microVM kernel $TESTED is in $folder"
			return
		fi
		build_pcn
		say "fetching Debian's kernel $TESTED, which was tested"
		fetch_tested &
	else
		! have_newest "$suite" "$folder" || return 0
		build_pcn
		(fetch_newest "$suite" "$arch" "$folder") &
	fi
	fetches+=($!)
}

# need_uml has pcn setup build User Mode Linux, unless it is there.
need_uml() {
	build_pcn
	say "the kernel of microVMs: found, or built from Debian's source in a few minutes"
	pcn_setup
}

# Downloads run in parallel, since most of the time is waiting for the mirror.
[ "$(uname -m)" != x86_64 ] || need_uml
for suite in "${SUITES[@]}"; do
	need_kernel "$suite" amd64 "$CACHE"
done
[ -z "$with_arm64" ] || need_kernel "$ARM64_SUITE" arm64 "$CACHE/arm64"
for fetch in "${fetches[@]}"; do
	wait "$fetch" || die "could not download a kernel, see above: run this again"
done
