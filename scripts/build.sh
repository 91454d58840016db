#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds pcn, static: scripts/build.sh FILE [SYSTEM/ARCHITECTURE [FLAG OF GO BUILD]...], such as
# darwin/arm64. The same commit gives the same bytes, wherever this runs. It takes in what microVMs
# run, if scripts/build-guest.sh has built that. PCN_VERSION is by default the tree's version.
set -euo pipefail

[ $# -ge 1 ] || {
	printf 'build: name the file to write\n' >&2
	exit 1
}
file=$1
[[ $file == /* ]] || file=$PWD/$file # macOS has no realpath -m
cd "$(dirname "$0")/.."
# shellcheck source=scripts/toolchain.sh
source scripts/toolchain.sh
target=${2:-$(go env GOHOSTOS)/$(go env GOHOSTARCH)}
export GOOS=${target%/*} GOARCH=${target#*/} GOAMD64=v1 GOARM64=v8.0

version=${PCN_VERSION:-$(scripts/version.sh)}
# nothing outside of a Git checkout
commit=$(git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null || true)
module=github.com/pcn-linux/pcn
set_to="-X $module/version.number=$version -X $module/version.commit=$commit"
guest=internal/launch/guest/pcn-guest
if [ -f $guest ]; then
	hash=$({ sha256sum 2>/dev/null || shasum -a 256; } <$guest) # macOS has the second
	set_to+=" -X $module/internal/launch.guestSHA256=${hash%% *}"
fi
printf 'build: %s, pcn %s for %s: minutes the first time, then seconds\n' \
	"${file#"$PWD"/}" "$version" "$target" >&2
go_build "${STATIC[@]}" -o "$file" \
	-ldflags "-s -w -buildid= $set_to" \
	"${@:3}" ./cmd/pcn
