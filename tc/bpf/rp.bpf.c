// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp: PCN's reaction point, at tcx ingress of the sender. Takes CNPs out of the stream, checks them, and runs
 * Algorithm 1 on the flow's entry; the congestion control paces by it from the next ACK on.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/hear.h"
#include "include/obey.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/pcn.bpf.c. Set by the loader. */
const volatile struct pcn_rp_params params = {};
/* That of bpf/algo/pcn.h's NP. */
const volatile u32 rate_unit_bps = PCN_RATE_UNIT_BPS;

FLOW_TABLE(struct pcn_flow);

/* react: the CNP is for the flow that f's receiver is the destination of. */
static __always_inline void react(const struct cnp_frame *f)
{
	bool ce = (f->ip.tos & ECN_MASK) == ECN_CE;
	u64 rec_rate_bps = (u64)bpf_ntohl(f->pcn.rec_rate) * rate_unit_bps;
	struct flow_key key;
	struct pcn_flow *flow;

	cnp_flow_key(f, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		count(RP_NO_FLOW);
		return;
	}
	bpf_spin_lock(&flow->lock);
	pcn_flow_cnp(flow, loaded(params), ce, rec_rate_bps);
	bpf_spin_unlock(&flow->lock);
	count(ce ? RP_DECREASE : RP_INCREASE);
}

SEC("tc")
int rp_ingress(struct __sk_buff *skb)
{
	const struct cnp_frame *f;
	int verdict = hear_cnp(skb, &f);

	if (f)
		react(f);
	return verdict;
}
