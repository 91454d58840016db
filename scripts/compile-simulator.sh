#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the algorithms for the simulator into internal/sim/objects: each congestion control of
# bpf/cc, the notification points of tc/bpf, and the switch port. Each is a wasm module. Of the port
# there is a BPF object too, which has the layout of its structs. `go generate ./internal/sim`
# calls it. The flags are in bpf/include, as schemes of users are compiled with them too.
set -euo pipefail
cd "$(dirname "$0")/.."

objects=internal/sim/objects
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for source in bpf/cc/*.bpf.c tc/bpf/np*.bpf.c internal/sim/bpf/port.c; do
	name=$(basename "${source%.bpf.c}" .c)
	clang-19 @bpf/include/simulator.clang -Werror -Ibpf -c "$source" -o "$work/$name.o"
	wasm-ld-19 @bpf/include/simulator.wasm-ld -o "$work/$name.wasm" "$work/$name.o"
	chmod 644 "$work/$name.wasm"
	rm "$work/$name.o"
done

# The line information has paths of source files: these must be the same in every checkout.
clang-19 -O2 -g -Wall -Werror -mcpu=v3 --target=bpf -mlittle-endian -Ibpf \
	-fdebug-compilation-dir=. -c internal/sim/bpf/port.c -o "$work/port.o"
llvm-strip-19 -g "$work/port.o"

rm -f "$objects"/*.wasm "$objects"/*.o
mv "$work"/*.wasm "$work"/port.o "$objects"
