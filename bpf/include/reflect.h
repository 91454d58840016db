/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The CNMs of QCN's congestion points. The port qdisc samples a packet when it sends it, but cannot
 * send another one. So the program at the far end makes the CNM from a clone and sends it back to
 * the switch, which forwards it to the source.
 */
#ifndef PCN_REFLECT_H
#define PCN_REFLECT_H

#include "cnm.h"
#include "counts.h"
#include "cut.h"
#include "packet.h"

/* The CNM between ingress and cnm_egress, which run in one softirq on one CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cnm_frame);
} cnm_pending SEC(".maps");

struct cnm_counts {
	u64 sent;
	u64 lost; /* could not be sent */
};

COUNTS(cnm_counts)

/* A port samples packets. If none does, the loader says 0, and the verifier omits the code. */
const volatile u32 ports_sample = 1;

/* The class of CNMs, which is never paused. */
#define CNM_CLASS 6

/* The class of the sampled packet, from its first bytes. */
static __always_inline u8 sampled_class(const u8 *sample)
{
	return class_of(((const struct iphdr *)(sample + sizeof(struct ethhdr)))->tos);
}

/* QntzFb, if the last port sampled the packet; 0: it did not. */
static __always_inline u32 sampled_feedback(const struct __sk_buff *skb)
{
	return ports_sample && carried(skb) ? skb->cb[CARRY_WORD] >> CARRY_FB_SHIFT & CARRY_FB_MASK
					    : 0;
}

/*
 * Sends the CNM for a sampled packet back the way it came. Packet pointers are invalid afterwards.
 * A global function: the verifier looks at it once, and not for each state of its caller.
 */
__noinline int send_cnm(struct __sk_buff *skb)
{
	u32 zero = 0, queue = skb->cb[CARRY_QUEUE], len = skb->len - sizeof(struct ethhdr),
	    mark = skb->mark;
	struct cnm_frame *f = bpf_map_lookup_elem(&cnm_pending, &zero);
	u8 sample[sizeof(struct ethhdr) + CNM_MSDU_LEN];

	/* TCP's payload is in pages: no packet pointer reaches it */
	if (!f || bpf_skb_load_bytes(skb, 0, sample, sizeof(sample)))
		return 0; /* too short to be data */
	cnm_build(f, sample, len > CNM_MSDU_LEN ? CNM_MSDU_LEN : len, skb->cb[CARRY_PORT],
		  sampled_feedback(skb), (s64)(s16)(queue >> 16) * 64, (s64)(s16)queue * 64,
		  sampled_class(sample));
	skb->mark = MARK_CNM;
	cnm_counts_add(bpf_clone_redirect(skb, skb->ifindex, 0) ? COUNTER(cnm_counts, lost)
								: COUNTER(cnm_counts, sent));
	skb->mark = mark;
	return 0;
}

/* Turns the clone into the CNM, which leaves with this skb->mark. */
static __always_inline int finish_cnm(struct __sk_buff *skb, u32 mark)
{
	const u32 headers_len = sizeof(struct iphdr) + sizeof(struct tcphdr);
	struct cnm_frame *f;
	u32 zero = 0;

	if (skb->mark != MARK_CNM)
		return TCX_NEXT;
	f = bpf_map_lookup_elem(&cnm_pending, &zero);
	if (!f || !cut_clone(skb, CNM_FRAME_LEN, headers_len) ||
	    bpf_skb_store_bytes(skb, 0, f, CNM_FRAME_LEN, 0))
		return TCX_DROP; /* send_cnm counts it */
	skb->priority = CNM_CLASS;
	skb->mark = mark;
	return TCX_NEXT;
}

#endif
