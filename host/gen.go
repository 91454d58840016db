// SPDX-License-Identifier: Apache-2.0

package host

//go:generate ../scripts/bpf2go.sh choose bpf/choose.bpf.c
//go:generate ../scripts/bpf2go.sh adopt bpf/adopt.bpf.c
//go:generate ../scripts/bpf2go.sh --untyped trace bpf/trace.bpf.c trace_event
