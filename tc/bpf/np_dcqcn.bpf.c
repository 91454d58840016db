// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * np_dcqcn: DCQCN's notification point (SIGCOMM 2015, sec. 3.1), at the receiver: a CNP for a marked packet, unless
 * the flow had one less than an interval ago. The CNP is plain RoCEv2's: it says that there is congestion, and nothing
 * of rates. InfiniBand's congestion control uses it for BECN.
 *
 * With TCD a packet may say UE, undetermined, and so may a CNP (algo/tcd_rp.h).
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/clock.h"
#include "include/notify.h"
#include "algo/tcd_rp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader; 0: a CNP for every marked packet. */
const volatile u64 interval_ns = 50000;

/* tcd: code point ECN_UE is TCD's mark. Set by the loader. */
const volatile bool tcd = false;

/* Flows seen at this receiver; the least recently used goes when it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct tcd_np);
} np_flows SEC(".maps");

static __always_inline struct tcd_np *flow_of(const struct packet *p)
{
	struct tcd_np fresh = {}, *np;
	struct flow_key key;

	np_flow_key(p, &key);
	np = bpf_map_lookup_elem(&np_flows, &key);
	if (np)
		return np;
	bpf_map_update_elem(&np_flows, &key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&np_flows, &key);
}

static __always_inline enum tcd_verdict mark_of(const struct packet *p)
{
	u8 ecn = p->ip->tos & ECN_MASK;

	if (ecn == ECN_CE)
		return TCD_MARK_CE;
	return tcd && ecn == ECN_UE ? TCD_MARK_UE : TCD_MARK_NONE;
}

SEC("tc")
int np_ingress(struct __sk_buff *skb)
{
	u64 t_ns = arrival_ns(skb);
	struct notification say = {};
	enum tcd_verdict mark;
	struct tcd_np *np;
	struct packet p;

	if (!np_takes(skb, &p))
		return TCX_NEXT;
	mark = mark_of(&p);
	if (mark == TCD_MARK_NONE)
		return TCX_NEXT;
	np = flow_of(&p);
	if (!np) {
		count(NP_NO_FLOW);
		return TCX_NEXT;
	}
	mark = tcd_np_packet(np, interval_ns, t_ns, mark);
	say.ce = mark == TCD_MARK_CE;
	say.ue = mark == TCD_MARK_UE;
	if (say.ce || say.ue)
		notify(skb, &p, &say);
	return TCX_NEXT;
}
