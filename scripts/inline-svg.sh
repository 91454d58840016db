#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the SVG of FILE as an element for a page, which describes it to readers who can't see it.
set -euo pipefail
file=${1:?usage: inline-svg.sh FILE}
sed -n '/<svg /,$p' "$file" | sed '1s/<svg /<svg role="img" aria-label="Throughput" /'
