#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the package's copyright file: who holds rights, also in the Go modules that are linked into
# the program, with the texts of their licences as those ask for it.
set -euo pipefail
cd "$(dirname "$0")/../.."

# field prints a text as the rest of a field: indented, with a dot for an empty line. FreeType's
# licence has a copyright sign of Latin-1: no other byte of a text in English.
field() {
	LC_ALL=C sed 's/ \xa9 / (C) /g' | tr -d '\r\f' |
		sed -E 's/[[:space:]]+$//; s/^/ /; s/^ $/ ./'
}

cat <<'EOF'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: PCN for Linux
Source: https://github.com/pcn-linux/pcn

Files: *
Copyright: 2026 The authors of PCN for Linux
License: Apache-2.0
 On Debian systems, the text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.

Files: bpf/* tc/bpf/* host/bpf/* qdisc-npecn/bpf/* cnp/pcn.lua
Copyright: 2026 The authors of PCN for Linux
License: GPL-2.0-only or BSD-2-Clause

License: GPL-2.0-only
 On Debian systems, the text of the GNU General Public License, version 2, is in
 /usr/share/common-licenses/GPL-2.

License: BSD-2-Clause
EOF
field <bpf/LICENSE.BSD-2-Clause

shopt -s nocaseglob nullglob
main=$(go list -m)
module='{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}'
go list -deps -f "$module" ./cmd/pcn ./cmd/pcn-guest | sort -u | while read -r path version dir; do
	[ "$path" != "$main" ] || continue
	printf '\nFiles: %s/*\nComment: linked into the program, version %s\n' "$path" "$version"
	found=
	for file in "$dir"/licen[cs]e* "$dir"/copying* "$dir"/licenses/*; do
		[ -f "$file" ] || continue
		if [ -z "$found" ]; then
			found=yes
			printf 'Copyright:\n'
			{
				grep -ihE '^[^a-z]*copyright .*[0-9]{4}' "$file" ||
					echo "the authors of $path"
			} | sort -u | field
			printf 'License: %s\n' "$(tr -c 'a-zA-Z0-9.\n' - <<<"licence-of-$path")"
		else
			printf ' .\n'
		fi
		if grep -q 'CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION' "$file"; then
			echo ' Apache-2.0: see /usr/share/common-licenses/Apache-2.0'
		elif grep -q 'CONDITIONS FOR COPYING, DISTRIBUTION AND MODIFICATION' "$file"; then
			echo ' GPL-2: see /usr/share/common-licenses/GPL-2'
		else
			field <"$file"
		fi
	done
	[ -n "$found" ] || {
		printf 'copyright: module %s has no licence\n' "$path" >&2
		exit 1
	}
done
printf '\nFiles: go/*\nComment: the runtime and the standard library, %s\n' "$(go env GOVERSION)"
printf 'Copyright: The Go Authors\nLicense: licence-of-go\n'
field <"$(go env GOROOT)/LICENSE"
