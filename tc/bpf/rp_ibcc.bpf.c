// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp_ibcc: where a sender of InfiniBand's congestion control hears BECNs, at tcx ingress. Takes CNPs out of the stream,
 * checks them, and raises the flow's CCTI, or with TCD holds it; bpf/cc/ibcc.bpf.c lowers it again.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/ibcc.bpf.c. Set by the loader. */
const volatile struct ibcc_params params = {};

#define flow_entry ibcc_flow

static __always_inline void react_ce(struct flow_entry *flow, u64 t_ns)
{
	ibcc_rp_becn(&flow->rp, loaded(params), t_ns);
}

static __always_inline void react_ue(struct flow_entry *flow, u64 t_ns)
{
	ibcc_rp_ue(&flow->rp, loaded(params), t_ns);
}

#include "include/react.h"
