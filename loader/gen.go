// SPDX-License-Identifier: Apache-2.0

package loader

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type rp_flow -type flow_key pcn ../bpf/cc/pcn.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types line ../bpf/cc/line.bpf.c
