#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints CHANGELOG.md in Debian's form: packaging/debian/changelog.sh VERSION MAINTAINER
# What is not yet released is of VERSION, unless VERSION has a section of its own.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -eq 2 ] || {
	echo "usage: changelog.sh VERSION MAINTAINER" >&2
	exit 2
}
unreleased=$1
grep -q "^## $1 - " CHANGELOG.md && unreleased=
today=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" "+%Y-%m-%d %H:%M:%S")

# The dates' RFC 5322 form comes from date, the text from awk.
awk -v unreleased="$unreleased" -v today="$today" -v maintainer="$2" '
function flush(   words, n, i, line, indent) {
	if (item == "")
		return
	changes++
	n = split(item, words, " ")
	line = bullet
	indent = "    "
	for (i = 1; i <= n; i++) {
		if (length(line) + length(words[i]) + 1 > 78) {
			print line
			line = indent words[i]
		} else {
			line = line (line ~ /[^ ]$/ ? " " : "") words[i]
		}
	}
	print line
	item = ""
}
function finish(   date, command) {
	flush()
	if (day == "")
		return
	if (!changes)
		print "\n  * No changes."
	command = "date -u -R -d \"" day "\""
	command | getline date
	close(command) # two sections may have one date
	printf "\n -- %s  %s\n\n", maintainer, date
	day = ""
}
function start(version, on) {
	finish()
	printf "pcn (%s) unstable; urgency=medium\n", version
	day = on
	changes = 0
}
/^## Unreleased/ { if (unreleased != "") start(unreleased, today); next }
/^## [0-9]/ { start($2, $4); next }
day == "" { next }
/^### / { flush(); printf "\n  [ %s ]\n", $2; next }
/^- / { flush(); bullet = "  * "; item = substr($0, 3); next }
/^ +[^ ]/ { sub(/^ +/, ""); item = item " " $0; next }
/^\[/ { next } # targets of links
/^[^ ]/ { if (item == "") { print ""; bullet = "  * " } item = item " " $0; next }
/^$/ { flush() }
END { finish() }
' CHANGELOG.md
