// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rp_dcqcn: DCQCN's reaction point (SIGCOMM 2015, sec. 3.1). bpf/cc/dcqcn.bpf.c raises the rate again. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/cnp_event.h"
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/dcqcn.bpf.c. Set by the loader. */
const volatile struct dcqcn_params params = {};

#define flow_entry	  dcqcn_flow
#define CONTROL_CNP_IS_CE 1
FLOW_TABLE(struct flow_entry);

static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	if (event->ue)
		dcqcn_rp_ue(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes);
	else
		dcqcn_rp_cnp(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes);
}

#include "include/react.h"
