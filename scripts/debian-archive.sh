# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Functions for the scripts that read Debian's archive. They use apt with a source list, state and
# cache of its own in $work, for $arch: not the machine's.
# shellcheck disable=SC2154 # work and arch are the caller's
MIRROR=http://deb.debian.org/debian
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Where apt has a proxy, the mirror may be out of reach without.
apt_proxy=
eval "$(apt-config shell apt_proxy Acquire::http::Proxy)"
if [ -z "${http_proxy-}" ] && [ -n "$apt_proxy" ] && [ "$apt_proxy" != DIRECT ]; then
	export http_proxy=$apt_proxy
fi

# apt_here runs one of apt's tools.
apt_here() {
	local tool=$1
	shift
	"$tool" -qq -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- \
		-o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work" \
		-o "Dir::Cache::archives=$work/archives" \
		-o APT::Sandbox::User= -o Acquire::Languages=none \
		-o "APT::Architecture=$arch" -o "APT::Architectures=$arch" "$@"
}

# read_suites reads the lists of packages of suites into $work.
read_suites() {
	local suite signed_by=
	mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/deb"
	[ -e "$KEYRING" ] && signed_by="[signed-by=$KEYRING] "
	for suite in "$@"; do
		printf 'deb %s%s %s main\n' "$signed_by" "$MIRROR" "$suite"
	done >"$work/sources.list"
	apt_here apt-get update
}

# depends prints the first alternative of each dependency of package $1 that matches pattern $2.
depends() {
	apt_here apt-cache show --no-all-versions "$1" | sed -n 's/^Depends: //p' |
		tr ',' '\n' | sed 's/^ *//; s/ .*//' | grep -E "$2" || true
}

# kernel_parts prints the packages of a kernel besides linux-image-*. From 6.19 on it is split:
# linux-binary-* has the kernel, linux-modules-* the modules, linux-base-* the configuration.
kernel_parts() { depends "$1" '^linux-(binary|modules|base)-[0-9]'; }
