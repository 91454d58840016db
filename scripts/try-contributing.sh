#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Does what CONTRIBUTING.md says, in a copy of the last commit: adds an algorithm, an experiment, a
# topology and a metric. Then runs a command there, by default `make check`. So CI shows that no
# file needs to change that CONTRIBUTING.md does not name.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git archive HEAD | tar x -C "$copy"
cp -r tests/contributing/testdata/add/. "$copy"
cd "$copy"

# before FILE LINE TEXT: puts a text before the first line that begins so, but for blanks.
before() {
	line=$(grep -nE -m 1 "^[[:space:]]*$2" "$1" | cut -d : -f 1)
	[ -n "$line" ] || {
		echo "try-contributing: $1 has no line that begins with $2" >&2
		exit 1
	}
	sed -i "${line}i\\$3" "$1"
}

# "Add an algorithm": its page stands in the site's contents.
before docs/site/nav.yaml '- docs/schemes/pfc.md' '      - docs/schemes/toy.md'

# "Add a topology"
sed -i 's/^\(var kinds = .*\)}$/\1, toyPair}/' netns-lab/network/kind.go
cat >> docs/topologies.md <<'EOF'

## A toy

`toy-pair` has two switches.
EOF

# "Add a metric"
metric=netns-lab/experiment/metric.go
before $metric '// PauseTotal is,' \
	'	// ToyPeak is the longest queue.\n	ToyPeak Metric = "toy_peak"\n'
before $metric 'Utilisation: +[{]' \
	'	ToyPeak: {unit: UnitBytes, ports: true, window: true},'
before netns-lab/result/metrics.go 'experiment.Utilisation:' \
	'	experiment.ToyPeak: eachPortSeries((*Run).QueueMax, slices.Max[[]float64]),'
gofmt -w $metric netns-lab/result/metrics.go
cat >> docs/experiments.md <<'EOF'

`toy_peak` is a toy's metric, `toy-pair` a topology.
EOF

go generate ./config/scheme/... ./netns-lab/sim
git init -q
git add -A
git -c user.name=toy -c user.email=toy@example.org -c commit.gpgsign=false \
	commit -qm 'Add a toy, by CONTRIBUTING.md alone'
if [ $# -eq 0 ]; then
	set -- make check
fi
"$@"
