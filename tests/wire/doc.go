// SPDX-License-Identifier: Apache-2.0

// Package wire tests that bpf/include writes and reads the bytes that package cnp does.
//
// bpf/cnm.bpf.c wraps cnm.h in syscall programs, which the tests run by BPF_PROG_RUN. They need a kernel with BTF, 5.17
// or later, and CAP_BPF with CAP_PERFMON, or root.
package wire

//go:generate ../../scripts/bpf2go.sh cnm bpf/cnm.bpf.c build_args check_args
