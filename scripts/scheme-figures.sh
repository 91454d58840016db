#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Simulates Fig. 2 of PCN's paper with each scheme, for the schemes' pages: FOLDER/SCHEME.svg.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:?usage: scheme-figures.sh FOLDER}
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
mkdir -p "$folder"

for page in docs/schemes/*.md; do
	scheme=$(sed -n 's/^<!-- figure \([^:]*\): .*/\1/p' "$page")
	[ -n "$scheme" ] || continue
	code=0
	bin/pcn run hol --engine sim --algo "$scheme" --duration 30ms --out "$runs/$scheme" \
		>"$runs/$scheme.log" 2>&1 || code=$?
	case $code in
	# 3: a bound of the paper is not met, 6: it ends before throughput is back.
	0 | 3 | 6) ;;
	*)
		cat "$runs/$scheme.log" >&2
		exit "$code"
		;;
	esac
	bin/pcn report "$runs/$scheme" --figures "$runs/figures" --force >/dev/null
	scripts/inline-svg.sh "$runs"/figures/hol-?-throughput.svg >"$folder/$scheme.svg"
done
