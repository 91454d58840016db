#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows what two cores of this machine can give a simulation at best: two runs side by side, each
# with one thread and a core of its own, against one run alone. They share no data, so what they
# lose they lose to the machine: cores that are threads of one core, caches, memory, other programs.
# Then the same run with two threads. Times by the clock mean something on a quiet machine only; CPU
# time says what caches and memory cost on any:
#
#   make build && scripts/two-cores.sh [FILE [ROUNDS]]
set -euo pipefail
cd "$(dirname "$0")/.."

file=$(realpath "${1:-internal/sim/testdata/large.yaml}")
rounds=${2:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# simulate CPUS THREADS runs the experiment on these CPUs.
simulate() {
	local out
	out=$(mktemp -d -p "$work")
	GOMAXPROCS=$2 taskset -c "$1" bin/pcn run "$file" --engine sim --threads "$2" \
		--out "$out/run" >"$out/log" 2>&1 || [[ $? == 3 ]] || {
		cat "$out/log" >&2
		exit 1
	}
}

side_by_side() {
	simulate 0 1 &
	simulate 1 1
	wait $!
}

# seconds COMMAND... prints how long a command takes, by the clock and of CPU time.
seconds() {
	local TIMEFORMAT='%R %U %S'
	{ time "$@" >&2; } 2>&1
}

for ((i = 0; i < rounds; i++)); do
	alone=$(seconds simulate 0 1)
	both=$(seconds side_by_side)
	threads=$(seconds simulate 0,1 2)
	awk '{ wall[NR] = $1; cpu[NR] = $2 + $3 } END {
		printf "alone       %.2f s, %.2f s of CPU\n", wall[1], cpu[1]
		printf "two runs    %.2f s, %.2f s of CPU: two cores do %.2f times what one does\n",
			wall[2], cpu[2], 2 * wall[1] / wall[2]
		printf "two threads %.2f s, %.2f s of CPU: %.2f times as fast as alone\n\n",
			wall[3], cpu[3], wall[1] / wall[3]
	}' <<<"$alone
$both
$threads"
done
