// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * wred: plays the switch at a device's tcx egress, for hosts without the npecn qdisc. By the backlog of the device's
 * root qdisc, which must keep it (HTB, TBF), packets that are ECN-capable are marked as RED has it, others dropped.
 *
 * draft-dai-tsvwg-pfc-free-congestion-control-00, sec. 2.1 and 2.3.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/host_packet.h"
#include "algo/red.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader. */
const volatile struct red_params red = {};
const volatile u64 wred_bytes = 0;	  /* K: a backlog so long drops what is not ECN-capable; 0: never */
const volatile u32 fixed_probability = 0; /* Q24: of marking, whatever the backlog; 0: as red has it */

struct net_device___root {
	struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

enum wred_count {
	WRED_PASSED,
	WRED_MARKED,
	WRED_DROPPED,
	WRED_COUNTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WRED_COUNTS);
	__type(key, u32);
	__type(value, u64);
} wred_counts SEC(".maps");

static __always_inline void count(u32 what)
{
	u64 *n = bpf_map_lookup_elem(&wred_counts, &what);

	if (n)
		++*n;
}

/* backlog_bytes: of the root qdisc, without this packet. */
static __always_inline u32 backlog_bytes(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);
	struct net_device___root *dev = (void *)kernel_skb->dev;
	struct Qdisc *q = dev->qdisc;

	return q ? q->qstats.backlog : 0;
}

static __always_inline bool marks(u32 backlog)
{
	u32 random = bpf_get_prandom_u32();

	if (fixed_probability)
		return random >> (32 - Q24_SHIFT) < fixed_probability;
	return red_mark(loaded(red), backlog, random);
}

SEC("tc")
int wred(struct __sk_buff *skb)
{
	u32 backlog = backlog_bytes(skb);
	struct network n;
	u8 tos;

	if (!network_parse(skb, &n) || !network_whole(&n))
		return TCX_NEXT;
	tos = network_tos(&n);
	if (!(tos & ECN_MASK)) {
		if (wred_bytes && backlog >= wred_bytes) {
			count(WRED_DROPPED);
			return bpf_redirect(0, 0); /* to no device: TCP would hear of TCX_DROP */
		}
	} else if (marks(backlog)) {
		network_set_tos(skb, &n, tos, tos | ECN_CE);
		count(WRED_MARKED);
		return TCX_NEXT;
	}
	count(WRED_PASSED);
	return TCX_NEXT;
}
