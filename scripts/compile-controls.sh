#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles each congestion control of bpf/cc into config/scheme/objects, and removes objects whose
# source is gone. If one does not compile, all objects stay as they are. `go generate
# ./config/scheme` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

objects=config/scheme/objects
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# PROGRAM(init) of a control makes NAME_init, and so on. Macros hide what a second NAME_init means.
programs=$(grep -oh 'PROGRAM([a-z_]*)' bpf/include/*.h bpf/cc/*.bpf.c |
	sed 's/PROGRAM(\(.*\))/\1/' | sort -u | paste -sd'|')

for source in bpf/cc/*.bpf.c; do
	name=$(basename "$source" .bpf.c)
	control=$(sed -n 's/^#define CONTROL[[:space:]]\+\([A-Za-z0-9_]*\).*/\1/p' "$source")
	if [ -n "$control" ] && [ "$control" != "$name" ]; then
		echo "$source: CONTROL is $control: name the file $control.bpf.c" >&2
		exit 1
	fi
	if [ -n "$control" ] && [ -e "bpf/algo/$name.h" ] &&
		grep -nE "\b${name}_($programs)\(" "bpf/algo/$name.h" >&2; then
		echo "bpf/algo/$name.h: PROGRAM() makes this name too: write ${name}_rp_..." >&2
		exit 1
	fi
	# The line information has paths of source files: these must be the same in every checkout.
	clang-19 -O2 -g -Wall -Werror -mcpu=v3 --target=bpf -mlittle-endian -Ibpf \
		-fdebug-compilation-dir=. -c "$source" -o "$work/$name.o"
	llvm-strip-19 -g "$work/$name.o"
	chmod 644 "$work/$name.o"
done

rm -f "$objects"/*.o
mv "$work"/*.o "$objects"
