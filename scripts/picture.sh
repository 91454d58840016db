#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the README's picture, docs/hol.svg, of the runs of `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -e runs/demo/report.html ] || {
	echo "no runs/demo/report.html: run make demo first" >&2
	exit 1
}
figures=$(mktemp -d)
trap 'rm -rf "$figures"' EXIT
bin/pcn report runs/demo --figures "$figures" --force >/dev/null
scripts/inline-svg.sh "$figures"/hol-?-throughput.svg |
	sed '1s/<svg /<svg style="background:white" /' >docs/hol.svg
