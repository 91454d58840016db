// SPDX-License-Identifier: Apache-2.0

package tc

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" fabric bpf/fabric.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" stamp bpf/stamp.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -type event_flow arrive bpf/arrive.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" np bpf/np.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" rp bpf/rp.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" npdcqcn bpf/np_dcqcn.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" rpdcqcn bpf/rp_dcqcn.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" rptimely bpf/rp_timely.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" rpibcc bpf/rp_ibcc.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" rpqcn bpf/rp_qcn.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" firstrtt bpf/first_rtt.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" wred bpf/wred.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" syn bpf/syn.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -type cnp_key nphost bpf/np_host.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../bpf" -type source rphost bpf/rp_host.bpf.c
