// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * port: puts the npecn qdisc before a real interface, at tcx.
 *
 *	egress of eth0 -- to_port --> veth a, root qdisc npecn --
 *	veth b, ingress -- from_port --> eth0
 *
 * A BPF qdisc can't write packets, so it can't set CE. It writes its verdict into the packet's
 * control block. from_port, at the other end of a veth pair, reads it and marks. The marked packet
 * goes back to the egress of eth0, where to_port knows it by its mark and lets it pass.
 *
 * skb->mark of what passes is 0 afterwards, whatever it was: veth and the qdisc use it.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/counts.h"
#include "include/packet.h"
#include "context.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader: the veth's end that has the qdisc, and the real interface. */
const volatile u32 port_ifindex = 0;
const volatile u32 out_ifindex = 0;

/* Strict priority over data, and never marked: what is not IP, and class selectors 6 and 7. */
#define CONTROL_CLASS 6
#define DATA_CLASS    0

/* Packets by what the port did to them. */
struct port_counts {
	u64 passed;
	u64 marked;
	u64 not_ecn;	  /* to be marked, but not ECN-capable: passed */
	u64 superpackets; /* of several segments, which are marked or not as one */
};

COUNTS(port_counts)

#define PORT(counter) COUNTER(port_counts, counter)

static __always_inline u32 port_class(const struct __sk_buff *skb)
{
	struct network n;

	if (!network_parse(skb, &n) || network_tos(&n) >> 5 >= CONTROL_CLASS)
		return CONTROL_CLASS;
	return DATA_CLASS;
}

SEC("tc")
int to_port(struct __sk_buff *skb)
{
	if (skb->mark == MARK_PORT) {
		skb->mark = 0;
		return TCX_NEXT;
	}
	skb->priority = port_class(skb);
	skb->mark = 0; /* else the qdisc might take it for an ingress port */
	context_clear_tstamp(skb);
	return bpf_redirect(port_ifindex, 0);
}

SEC("tc")
int from_port(struct __sk_buff *skb)
{
	u32 word = skb->cb[CARRY_WORD];

	if (context_segments(skb) > 1)
		port_counts_add(PORT(superpackets));
	if ((word & CARRY_MAGIC_MASK) != CARRY_MAGIC || !(word & CARRY_CE))
		port_counts_add(PORT(passed));
	else if (bpf_skb_ecn_set_ce(skb))
		port_counts_add(PORT(marked));
	else
		port_counts_add(PORT(not_ecn));
	skb->mark = MARK_PORT;
	return bpf_redirect(out_ifindex, 0);
}
