// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * wred: acts as the switch at tcx egress of a device, for hosts without the npecn qdisc. It decides
 * by the backlog of the device's root qdisc, which must keep one (HTB, TBF). It marks ECN-capable
 * packets as RED does, and drops others, but for SYNs.
 *
 * draft-dai-tsvwg-pfc-free-congestion-control-00, sec. 2.1 and 2.3.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/counts.h"
#include "include/packet.h"
#include "algo/red.h"
#include "context.h"
#include "syn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader. */
const volatile struct red_params red = {};
/* K: from this backlog on, packets that are not ECN-capable are dropped; 0: never. */
const volatile u64 wred_bytes = 0;
/* Probability of a mark at any backlog, in Q24; 0: use red. */
const volatile u32 fixed_probability = 0;

struct net_device___root {
	struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

/* Packets by verdict. */
struct wred_counts {
	u64 passed;
	u64 marked;
	u64 dropped;
	u64 spared;	  /* SYNs and answers to them, which would have been dropped */
	u64 superpackets; /* of several segments, which are marked or not as one */
};

COUNTS(wred_counts)

#define WRED(counter) COUNTER(wred_counts, counter)

/* The root qdisc's backlog, without this packet. */
static __always_inline u32 backlog_bytes(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);
	struct net_device___root *dev = (void *)kernel_skb->dev;
	struct Qdisc *q = dev->qdisc;

	return q ? q->qstats.backlog : 0;
}

/*
 * The queue before a segment of the packet, any of them. On a wire a packet's first segments stand
 * before its last in the queue, and only these may be marked. Here all are, or none: so the number
 * of marks is right on average. By the queue before the first one, flows of large packets would get
 * fewer marks than others.
 */
static __always_inline u32 queue_before_segment(const struct __sk_buff *skb, u32 segments,
						u32 backlog)
{
	if (segments < 2)
		return backlog;
	return backlog + skb->len / segments * (bpf_get_prandom_u32() % segments);
}

static __always_inline bool should_mark(u32 backlog)
{
	u32 random = bpf_get_prandom_u32();

	if (fixed_probability)
		return random >> (32 - Q24_SHIFT) < fixed_probability;
	return red_mark(loaded(red), backlog, random);
}

/*
 * SYNs are never ECN-capable (RFC 3168, sec. 6.1.1). Linux repeats a lost one without asking for
 * ECN (net.ipv4.tcp_ecn_fallback). Then a connection that opens into a queue has no ECN for life,
 * and takes the others' share. So SYNs may fill the queue, until it is full.
 */
static __always_inline bool opens_connection(const struct __sk_buff *skb, const struct network *n)
{
	struct transport t;

	return tcp_flags(skb, n, &t) & TCP_SYN;
}

SEC("tc")
int wred(struct __sk_buff *skb)
{
	u32 backlog = backlog_bytes(skb), segments = context_segments(skb);
	struct network n;
	u8 tos;

	if (!network_parse(skb, &n) || !network_whole(&n))
		return TCX_NEXT;
	if (segments > 1)
		wred_counts_add(WRED(superpackets));
	tos = network_tos(&n);
	if (!(tos & ECN_MASK)) {
		if (wred_bytes && backlog >= wred_bytes) {
			if (opens_connection(skb, &n)) {
				wred_counts_add(WRED(spared));
				return TCX_NEXT;
			}
			wred_counts_add(WRED(dropped));
			return bpf_redirect(0, 0); /* to no device: TCP would notice a TCX_DROP */
		}
	} else if (should_mark(queue_before_segment(skb, segments, backlog))) {
		network_set_tos(skb, &n, tos, tos | ECN_CE);
		wred_counts_add(WRED(marked));
		return TCX_NEXT;
	}
	wred_counts_add(WRED(passed));
	return TCX_NEXT;
}
