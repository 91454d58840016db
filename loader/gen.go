// SPDX-License-Identifier: Apache-2.0

package loader

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type pcn_flow -type sender -type flow_key pcn ../bpf/cc/pcn.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types line ../bpf/cc/line.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type dcqcn_flow dcqcn ../bpf/cc/dcqcn.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type qcn_flow qcn ../bpf/cc/qcn.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type timely_flow timely ../bpf/cc/timely.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type ibcc_flow ibcc ../bpf/cc/ibcc.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type dctcp_flow dctcp ../bpf/cc/dctcp.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target amd64 -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -no-global-types -type ldcp_flow ldcp ../bpf/cc/ldcp.bpf.c
