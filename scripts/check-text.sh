#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Finds what the formatters leave alone: lines longer than 100 columns, and C comments that
# clang-format broke in the middle (" *word" without a space).
#
#   scripts/check-text.sh            fails if a file has more of them than its exceptions allow
#   scripts/check-text.sh --update   writes the exceptions anew; their numbers should only fall
#
# A tab is 4 columns wide in Go and 8 elsewhere. Generated code, go: directives and rows of Markdown
# tables, which can't be broken, may be longer.
set -euo pipefail
cd "$(dirname "$0")/.."

exceptions=scripts/check-text.exceptions
touch "$exceptions"

# list_findings prints file:line: what is wrong, one finding a line.
list_findings() {
	# shellcheck disable=SC2016
	git ls-files -z '*.go' '*.c' '*.h' '*.md' '*.sh' .ci/run |
		LC_ALL=C xargs -0 awk -v limit=100 '
		FNR == 1 {
			markdown = FILENAME ~ /\.md$/
			c_source = FILENAME ~ /\.[ch]$/
			tab = FILENAME ~ /\.go$/ ? 4 : 8
			generated = /^\/\/ Code generated/
		}
		generated || /^\/\/go:/ || (markdown && /^[ \t]*\|/) { next }
		c_source && /^\t* \*[^ \t*\/]/ {
			print FILENAME ":" FNR ": no space after *: clang-format broke this comment"
		}
		{
			gsub(/[\200-\277]/, "") # all but the first byte of a UTF-8 character
			width = 0
			n = split($0, part, "\t")
			for (i = 1; i <= n; i++) {
				width += length(part[i])
				if (i < n) width += tab - width % tab
			}
			if (width > limit)
				print FILENAME ":" FNR ": " width " columns, want at most " limit
		}'
}

# count_by_file turns findings into lines of "COUNT FILE".
count_by_file() {
	cut -d: -f1 | LC_ALL=C sort | uniq -c | awk '{ print $1, $2 }'
}

findings=$(list_findings)
if [ "${1-}" = --update ]; then
	printf '%s\n' "$findings" | sed '/^$/d' | count_by_file >"$exceptions"
	exit
fi
printf '%s\n' "$findings" | awk -F: -v exceptions="$exceptions" '
	BEGIN {
		while ((getline line <exceptions) > 0) {
			split(line, word, " ")
			allowed[word[2]] = word[1]
		}
	}
	NF { found[$1] = found[$1] $0 "\n"; count[$1]++ }
	END {
		for (file in count) {
			if (count[file] <= allowed[file] + 0) continue
			printf "%s%s: %d findings", found[file], file, count[file]
			printf ", %d allowed\n", allowed[file]
			failed = 1
		}
		for (file in allowed)
			if (count[file] + 0 < allowed[file]) fewer++
		if (fewer) {
			printf "check-text: %d files have fewer findings than allowed", fewer
			print ": run scripts/check-text.sh --update"
		}
		exit failed
	}' >&2
