#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles a BPF program with clang-19 and writes its object and Go bindings beside the file that
# has the go:generate line:
#
#   //go:generate ../scripts/bpf2go.sh [--untyped|--test] NAME FILE [TYPE...]
#
#   NAME       begins the names of the generated Go types and functions
#   FILE       the C file, from the package's directory
#   TYPE       a C type that also becomes a Go type, whether or not a map holds it
#   --untyped  no Go types but TYPE, for programs whose variables are of the kernel's own types
#   --test     the generated Go files are for tests only
#
# One object serves all little-endian machines: no program reads registers of a processor, and the
# kernel's structs are found by its types.
#
# The path of bpf/ is relative to the package, since the object's line information contains it.
set -euo pipefail

options=(-target bpfel)
if [ "${1-}" = --test ]; then
	options=(-target bpfel -output-suffix _test -no-global-types)
	shift
elif [ "${1-}" = --untyped ]; then
	options=(-target bpfel -no-global-types)
	shift
fi
[ $# -ge 2 ] || {
	echo "usage: bpf2go.sh [--untyped|--test] NAME FILE [TYPE...], in a go:generate line" >&2
	exit 2
}
name=$1 file=$2
shift 2
for type in "$@"; do
	options+=(-type "$type")
done
include=$(realpath --relative-to=. "$(dirname "$0")/../bpf")
exec go tool bpf2go -cc clang-19 -strip llvm-strip-19 "${options[@]}" \
	-cflags "-O2 -g -Wall -Werror -mcpu=v3 -I$include" "$name" "$file"
