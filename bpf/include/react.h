/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A reaction point for the CNPs of DCQCN's notification point, which say that there is congestion (CE) or, with TCD,
 *that it is not known (UE), and nothing of rates.
 *
 * A program includes this behind the definitions of struct flow_entry and of
 *	react_ce(flow, t_ns)	a CNP that says CE arrived
 *	react_ue(flow, t_ns)	one that says UE
 * which run under the flow's lock.
 */
#ifndef PCN_REACT_H
#define PCN_REACT_H

#include "hear.h"

FLOW_TABLE(struct flow_entry);

static __always_inline void react(const struct cnp_frame *f, u64 t_ns)
{
	bool ue = says_ue(f);
	struct flow_entry *flow;
	struct flow_key key;

	cnp_flow_key(f, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		count(RP_NO_FLOW);
		return;
	}
	bpf_spin_lock(&flow->lock);
	if (ue) {
		react_ue(flow, t_ns);
		flow->sender.cnp_hold++;
	} else {
		react_ce(flow, t_ns);
		flow->sender.cnp_decrease++;
	}
	bpf_spin_unlock(&flow->lock);
	count(ue ? RP_HOLD : RP_DECREASE);
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

#endif
