// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp_dcqcn: DCQCN's reaction point (SIGCOMM 2015, sec. 3.1), at tcx ingress of the sender. Takes CNPs out of the
 * stream, checks them, and cuts the flow's rate; bpf/cc/dcqcn.bpf.c raises it again.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/hear.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/dcqcn.bpf.c. Set by the loader. */
const volatile struct dcqcn_params params = {};

FLOW_TABLE(struct dcqcn_flow);

static __always_inline void react(const struct cnp_frame *f, u64 t_ns)
{
	struct dcqcn_flow *flow;
	struct flow_key key;

	cnp_flow_key(f, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		count(RP_NO_FLOW);
		return;
	}
	bpf_spin_lock(&flow->lock);
	dcqcn_rp_cnp(&flow->rp, loaded(params), t_ns, flow->sender.sent_bytes);
	flow->sender.cnp_decrease++;
	bpf_spin_unlock(&flow->lock);
	count(RP_DECREASE);
}

SEC("tc")
int rp_ingress(struct __sk_buff *skb)
{
	const struct cnp_frame *f;
	int verdict = hear_cnp(skb, &f);

	if (f)
		react(f, arrival_ns(skb));
	return verdict;
}
