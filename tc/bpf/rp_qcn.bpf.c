// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rp_qcn: QCN's reaction point (802.1Qau). bpf/cc/qcn.bpf.c raises the rate again. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/cnp_event.h"
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/qcn.bpf.c. Set by the loader. */
const volatile struct qcn_rp_params params = {};

#define flow_entry qcn_flow
FLOW_TABLE(struct flow_entry);

static __always_inline void control_cnm(struct flow_entry *flow, const struct cnm_event *event)
{
	qcn_rp_cnm(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes, event->qntz_fb);
}

#include "include/react_cnm.h"
