#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and vets pcn for each system that it runs on: scripts/cross.sh. It leaves nothing behind.
# What only Linux has, such as package host, is not part of pcn elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/toolchain.sh
source scripts/toolchain.sh

for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
	export GOOS=${target%/*} GOARCH=${target#*/}
	scripts/build.sh /dev/null "$target"
	# with the flags of the build, so that it finds in Go's cache what that has compiled
	go list -deps -f '{{if not .Standard}}{{if .Module.Main}}{{.ImportPath}}{{end}}{{end}}' \
		./cmd/pcn | xargs go vet "${STATIC[@]}"
done
