#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Extracts the README's picture, docs/hol.svg, from the report of `make demo`.
set -euo pipefail
cd "$(dirname "$0")/.."

report=runs/demo/report.html
[ -e "$report" ] || {
	echo "no $report: run make demo first" >&2
	exit 1
}
sed -n '/<svg role="img" aria-label="Throughput"/,/<\/svg>/p' "$report" |
	sed '1s/<svg /<svg style="background:white" /' >docs/hol.svg
[ -s docs/hol.svg ] || {
	echo "$report has no figure named Throughput: did its title change?" >&2
	exit 1
}
