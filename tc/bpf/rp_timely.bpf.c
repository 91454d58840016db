// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp_timely: what a TIMELY sender with TCD hears, at tcx ingress. Takes CNPs out of the stream, checks them, and notes
 * the mark in force; bpf/cc/timely.bpf.c goes by it.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/timely.bpf.c. Set by the loader. */
const volatile struct timely_params params = {};

#define flow_entry timely_flow

static __always_inline void react_ce(struct flow_entry *flow, u64 t_ns)
{
	tcd_rp_cnp(&flow->rp.tcd, params.tcd_hold_ns, t_ns, TCD_MARK_CE);
}

static __always_inline void react_ue(struct flow_entry *flow, u64 t_ns)
{
	tcd_rp_cnp(&flow->rp.tcd, params.tcd_hold_ns, t_ns, TCD_MARK_UE);
}

#include "include/react.h"
