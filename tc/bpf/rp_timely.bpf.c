// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rp_timely: where a TIMELY sender with TCD hears marks. bpf/cc/timely.bpf.c goes by the one in force. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/cnp_event.h"
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/timely.bpf.c. Set by the loader. */
const volatile struct timely_params params = {};

#define flow_entry	  timely_flow
#define CONTROL_CNP_IS_CE 1
FLOW_TABLE(struct flow_entry);

static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	tcd_rp_cnp(&flow->rp.tcd, params.tcd_hold_ns, event->now_ns,
		   event->ue ? TCD_MARK_UE : TCD_MARK_CE);
}

#include "include/react.h"
