#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches uPlot, the plotting library of reports, from the npm registry into netns-lab/report/uplot,
# and checks that its files are the ones that were reviewed. Needs npm.
#
#   scripts/uplot.sh            fetch and check
#   scripts/uplot.sh --check    check the files that are there, without network
#
# For another version, change VERSION, run it, read what changed, and put the new sums below.
set -euo pipefail
cd "$(dirname "$0")/../netns-lab/report/uplot"

VERSION=1.6.32
SUMS='19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f  uPlot.iife.min.js
df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04  uPlot.min.css
8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd  LICENSE'

if [ "${1-}" != --check ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	npm pack --silent --pack-destination "$work" "uplot@$VERSION"
	tar -xzf "$work/uplot-$VERSION.tgz" -C "$work"
	cp "$work"/package/{LICENSE,dist/uPlot.iife.min.js,dist/uPlot.min.css} .
	chmod 644 ./*
fi
sha256sum --check --quiet <<<"$SUMS"
