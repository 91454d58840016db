// SPDX-License-Identifier: Apache-2.0

package host

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" choose bpf/choose.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type trace_event trace bpf/trace.bpf.c
