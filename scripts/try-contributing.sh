#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does what CONTRIBUTING.md says, in a copy of the last commit: adds an algorithm, an experiment, a
# topology and a metric. Then runs a command there, by default the tests of the algorithm and what
# `make check` does, but for what a toy can't change: packages without a changed file are not linted
# again, and no other system is built for. So CI shows that no file needs to change that
# CONTRIBUTING.md does not name, and none at all for an algorithm.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git archive HEAD | tar x -C "$copy"
cd "$copy"

# commit MESSAGE commits everything.
commit() {
	git add -A
	git -c user.name=toy -c user.email=toy@example.org -c commit.gpgsign=false commit -qm "$1"
}

git init -q
commit 'As it was'

# by_hand prints those of the files on standard input that no generator writes.
by_hand() {
	while read -r file; do
		head -n 1 "$file" | grep -q '^// Code generated' || echo "$file"
	done
}

# "Add an algorithm": no file by hand is touched.
cp -r tests/contributing/testdata/add/. .
go generate ./config/scheme/... ./internal/sim
git add -A
touched=$(git diff --cached --diff-filter=a --name-only |
	{ grep -v '^docs/schemes\.md$' || true; } | by_hand)
[ -z "$touched" ] || {
	echo "try-contributing: an algorithm alone changes $touched" >&2
	exit 1
}

# before FILE LINE TEXT: puts a text before the first line that begins so, but for blanks.
before() {
	line=$(grep -nE -m 1 "^[[:space:]]*$2" "$1" | cut -d : -f 1)
	[ -n "$line" ] || {
		echo "try-contributing: $1 has no line that begins with $2" >&2
		exit 1
	}
	sed -i "${line}i\\$3" "$1"
}

# "Add a topology"
sed -i 's/^\(var kinds = .*\)}$/\1, toyPair}/' internal/network/kind.go
cat >> docs/topologies.md <<'EOF'

## A toy

`toy-pair` has two switches.
EOF

# "Add a metric"
metric=internal/experiment/metric.go
before $metric '// PauseTotal is,' \
	'	// ToyPeak is the longest queue.\n	ToyPeak Metric = "toy_peak"\n'
before $metric 'Utilisation: +[{]' \
	'	ToyPeak: {unit: UnitBytes, ports: true, window: true},'
before internal/result/metrics.go 'experiment.Utilisation:' \
	'	experiment.ToyPeak: eachPortSeries((*Run).QueueMax, slices.Max[[]float64]),'
gofmt -w $metric internal/result/metrics.go
cat >> docs/experiments.md <<'EOF'

`toy_peak` is a toy's metric, `toy-pair` a topology.
EOF

commit 'Add a toy, by CONTRIBUTING.md alone'
if [ $# -gt 0 ]; then
	"$@"
	exit
fi
mapfile -t changed < <(git diff --name-only HEAD~ -- '*.go' |
	xargs -r dirname | sed 's|^|./|' | sort -u)
[ ${#changed[@]} -gt 0 ] || {
	echo "try-contributing: no Go package was changed" >&2
	exit 1
}
make guest
go test -v ./tests/algo -run 'Toy|EveryScheme' | grep '^--- PASS: TestToyRandomEvents'
scripts/lint.sh "${changed[@]}"
scripts/unit-tests.sh
