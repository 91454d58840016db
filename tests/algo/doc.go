// SPDX-License-Identifier: Apache-2.0

// Package algo tests the algorithms of bpf/algo as the kernel runs them.
//
// The objects of bpf wrap each header in a syscall program; the tests hand it batches of events by BPF_PROG_RUN and
// compare every outcome with an oracle that is written in Go from the papers' equations. They need a kernel with
// BTF, 5.17 or later, and CAP_BPF with CAP_PERFMON, or root.
package algo

//go:generate ../../scripts/bpf2go.sh algo bpf/algo.bpf.c rp_args rp_event pcn_feedback pcn_rp_params np_args pcn_np_window pcn_np_params pcn_np_cnp ack_args cp_args cp_event pfc_args pfc_params pfc_action
//go:generate ../../scripts/bpf2go.sh rate bpf/rate.bpf.c event dcqcn_args dcqcn_params dcqcn_rp qcn_args qcn_rp_params qcn_rp recovery_half recovery_params recovery timely_args timely_params timely_rp ibcc_args ibcc_params ibcc_rp dctcp_rate_args dctcp_rate_params hpcc_args hpcc_params hpcc_rp powertcp_args powertcp_params powertcp_rp swift_args swift_params swift_rp fixed_args
//go:generate ../../scripts/bpf2go.sh mark bpf/mark.bpf.c red_args red_params notify_args tcd_verdict sample_args qcn_cp_params qcn_sample window_args dctcp_params
//go:generate ../../scripts/bpf2go.sh ldcp bpf/ldcp.bpf.c ldcp_event ldcp_args ldcp_params ldcp bdp_args
//go:generate ../../scripts/bpf2go.sh doubt bpf/doubt.bpf.c doubt_args doubt_params doubt_event doubt_cnps doubt_step_kind
//go:generate ../../scripts/bpf2go.sh port bpf/port.bpf.c credit_event credit_args cbfc_params fecn_args fecn_params tcd_args tcd_state tcd_verdict
