#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles each congestion control of bpf/cc into config/scheme/objects, and removes objects whose
# source is gone. `go generate ./config/scheme` calls it.
set -euo pipefail
cd "$(dirname "$0")/.."

objects=config/scheme/objects
rm -f "$objects"/*.o
for source in bpf/cc/*.bpf.c; do
	object=$objects/$(basename "$source" .bpf.c).o
	# The line information has paths of source files: these must be the same in every checkout.
	clang-19 -O2 -g -Wall -Werror -mcpu=v3 --target=bpf -mlittle-endian -Ibpf \
		-fdebug-compilation-dir=. -c "$source" -o "$object"
	llvm-strip-19 -g "$object"
done
