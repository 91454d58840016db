// SPDX-License-Identifier: Apache-2.0

// Package algo tests the algorithms of bpf/algo as the kernel runs them.
//
// The objects of bpf wrap each header in a syscall program; the tests hand it batches of events by BPF_PROG_RUN and
// compare every outcome with an oracle that is written in Go from the papers' equations. They need a kernel with
// BTF, 5.17 or later, and CAP_BPF with CAP_PERFMON, or root.
package algo

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -type rp_args -type rp_event -type pcn_rp_params -type np_args -type pcn_np_params -type pcn_np_cnp -type ack_args -type cp_args -type cp_event -type pfc_args -type pfc_params -type pfc_action -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" algo bpf/algo.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -type event -type dcqcn_args -type dcqcn_params -type dcqcn_rp -type qcn_args -type qcn_rp_params -type qcn_rp -type recovery_params -type recovery -type timely_args -type timely_params -type timely_rp -type ibcc_args -type ibcc_params -type ibcc_rp -type fixed_args -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" rate bpf/rate.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -type red_args -type red_params -type notify_args -type tcd_verdict -type sample_args -type qcn_cp_params -type qcn_sample -type window_args -type dctcp_params -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" mark bpf/mark.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -type ldcp_event -type ldcp_args -type ldcp_params -type ldcp -type bdp_args -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" ldcp bpf/ldcp.bpf.c
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -type credit_event -type credit_args -type cbfc_params -type fecn_args -type fecn_params -type tcd_args -type tcd_state -type tcd_verdict -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" port bpf/port.bpf.c
