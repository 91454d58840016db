#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds pcn-guest, what microVMs run: scripts/build-guest.sh FILE [FLAG OF GO BUILD]...
# Its bytes decide the bytes of results, so the same sources give the same file wherever this runs:
# one version of Go (go fetches it if it is another), no C compiler, no path, time or commit, and
# nothing out of the user's settings of go.
set -euo pipefail

[ $# -ge 1 ] || {
	printf 'build-guest: name the file to write\n' >&2
	exit 1
}
file=$1
[[ $file == /* ]] || file=$PWD/$file
shift
cd "$(dirname "$0")/.."

# shellcheck source=scripts/toolchain.sh
source scripts/toolchain.sh
export GOOS=linux GOARCH=amd64 GOAMD64=v1
printf 'build: %s, which microVMs run: it becomes a part of pcn\n' "${file#"$PWD"/}" >&2
go_build "${STATIC[@]}" -ldflags '-s -w -buildid=' -o "$file" "$@" ./cmd/pcn-guest
