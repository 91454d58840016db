# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by what builds programs that are the same bytes wherever they are built: one version of Go
# (go fetches it if it is another), and nothing out of the user's settings of go.
export GOTOOLCHAIN=go1.26.8
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOEXPERIMENT='' GOFIPS140=off GOWORK=off
# shellcheck disable=SC2034 # used where this is sourced
STATIC=(-trimpath -buildvcs=false)

# go_build ARGUMENTS... is go build, which says how many packages it has compiled so far.
go_build() {
	go build -v "$@" 2>&1 | awk '
		NF == 1 { if (++n % 50 == 0) printf "build: %d packages compiled\n", n; next }
		{ print }' >&2
}
