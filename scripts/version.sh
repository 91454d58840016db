#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the version of this tree: that of the newest release in CHANGELOG.md, with +unreleased
# behind it if something stands under Unreleased.
set -euo pipefail
cd "$(dirname "$0")/.."

awk '
/^## Unreleased/ { unreleased = 1; next }
/^## [0-9]/ { version = $2; exit }
unreleased && NF { suffix = "+unreleased" }
END {
	if (version == "") {
		print "version: CHANGELOG.md has no line like \"## 1.2.0 - DATE\"" >"/dev/stderr"
		exit 1
	}
	print version suffix
}' CHANGELOG.md
