// SPDX-License-Identifier: Apache-2.0

// Package algo tests the algorithms of bpf/algo as the kernel runs them.
//
// bpf/algo.bpf.c wraps each header in a syscall program; the tests hand it batches of events by BPF_PROG_RUN and
// compare every outcome with an oracle that is written in Go from the papers' equations. They need a kernel with
// BTF, 5.17 or later, and CAP_BPF with CAP_PERFMON, or root.
package algo

//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -type rp_args -type rp_event -type pcn_rp_params -type np_args -type pcn_np_params -type pcn_np_cnp -type cp_args -type cp_event -type pfc_args -type pfc_params -type pfc_action -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I../../bpf" algo bpf/algo.bpf.c
