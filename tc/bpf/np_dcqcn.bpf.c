// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * np_dcqcn: DCQCN's notification point (SIGCOMM 2015, sec. 3.1), at the receiver: a CNP for a marked packet, unless
 * the flow had one less than an interval ago. The CNP is plain RoCEv2's: it says that there is congestion, and nothing
 * of rates.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/clock.h"
#include "include/notify.h"
#include "algo/dcqcn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader; 0: a CNP for every marked packet. */
const volatile u64 interval_ns = 50000;

/* Flows seen at this receiver; the least recently used goes when it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct dcqcn_np);
} np_flows SEC(".maps");

static __always_inline struct dcqcn_np *flow_of(const struct packet *p)
{
	struct dcqcn_np fresh = {}, *np;
	struct flow_key key;

	np_flow_key(p, &key);
	np = bpf_map_lookup_elem(&np_flows, &key);
	if (np)
		return np;
	bpf_map_update_elem(&np_flows, &key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&np_flows, &key);
}

SEC("tc")
int np_ingress(struct __sk_buff *skb)
{
	const struct notification say = {.ce = true};
	u64 t_ns = arrival_ns(skb);
	struct dcqcn_np *np;
	struct packet p;

	if (!np_takes(skb, &p) || (p.ip->tos & ECN_MASK) != ECN_CE)
		return TCX_NEXT;
	np = flow_of(&p);
	if (!np)
		count(NP_NO_FLOW);
	else if (dcqcn_np_packet(np, interval_ns, t_ns, true))
		notify(skb, &p, &say);
	return TCX_NEXT;
}
