// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp_dcqcn: DCQCN's reaction point (SIGCOMM 2015, sec. 3.1), at tcx ingress of the sender. Takes CNPs out of the
 * stream, checks them, and cuts the flow's rate, or with TCD holds it; bpf/cc/dcqcn.bpf.c raises it again.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/dcqcn.bpf.c. Set by the loader. */
const volatile struct dcqcn_params params = {};

#define flow_entry dcqcn_flow

static __always_inline void react_ce(struct flow_entry *flow, u64 t_ns)
{
	dcqcn_rp_cnp(&flow->rp, loaded(params), t_ns, flow->sender.sent_bytes);
}

static __always_inline void react_ue(struct flow_entry *flow, u64 t_ns)
{
	dcqcn_rp_ue(&flow->rp, loaded(params), t_ns, flow->sender.sent_bytes);
}

#include "include/react.h"
