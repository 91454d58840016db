// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp_ibcc: where a sender of InfiniBand's congestion control hears BECNs. Each raises the flow's CCTI, or
 * with TCD holds it; bpf/cc/ibcc.bpf.c lowers it again.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/cnp_event.h"
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/ibcc.bpf.c. Set by the loader. */
const volatile struct ibcc_params params = {};

#define flow_entry	  ibcc_flow
#define CONTROL_CNP_IS_CE 1
FLOW_TABLE(struct flow_entry);

static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	if (event->ue)
		ibcc_rp_ue(&flow->rp, loaded(params), event->now_ns);
	else
		ibcc_rp_becn(&flow->rp, loaded(params), event->now_ns);
}

#include "include/react.h"
