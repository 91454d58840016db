#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Says where the time of a run on Linux goes, by group of functions and by function: in the guest's
# kernel, in the programs of BPF and of Go that it runs, in the host's kernel, and in pcn itself.
#
#	scripts/profile.sh hol --algo pcn --duration 19ms
#
# Arguments are those of pcn run. A run of 1 ms has the boot, the network and the verifier. Needs
# perf and make setup. It samples by the clock, so it needs no counters of the CPU.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -ge 1 ] || {
	printf 'profile: name the experiment: scripts/profile.sh hol --algo pcn\n' >&2
	exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
scripts/build-guest.sh internal/launch/guest/pcn-guest
go build -o "$dir/pcn" ./cmd/pcn # with symbols
perf record --freq 5000 --event cpu-clock --output "$dir/samples" \
	"$dir/pcn" run "$@" --out "$dir/out" >"$dir/log" 2>&1 || {
	code=$?
	[ $code -eq 3 ] || [ $code -eq 6 ] || { # a bound is not met; the run is too short for one
		cat "$dir/log" >&2
		exit $code
	}
}
perf script --input "$dir/samples" --fields comm,ip,sym,dso 2>"$dir/log" | go run ./scripts/profile
