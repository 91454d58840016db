// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rp: PCN's reaction point (NSDI 2020, Algorithm 1). The control, bpf/cc/pcn.bpf.c, paces by its rate. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/cnp_event.h"
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/pcn.bpf.c. Set by the loader. */
const volatile struct pcn_rp_params params = {};

#define flow_entry pcn_flow
FLOW_TABLE(struct flow_entry);

static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	struct pcn_rp_params p = *(const struct pcn_rp_params *)loaded(params);

	if (p.min_rate_bps < event->floor_bps)
		p.min_rate_bps = event->floor_bps;
	pcn_rp_cnp(&flow->rp, &p, event->ce, event->rec_rate_bps);
}

#include "include/react.h"
