// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * router: what a switch's port needs beside its npecn qdisc where Linux itself forwards, or where
 * a qdisc of Linux queues before it.
 *
 *	         tcx ingress            tcx egress
 *	port --> enter --> Linux's IP --> leave --> npecn qdisc of the port
 *
 *	         a pair of veths in the switch's namespace
 *	switch --> leave --> tbf and a qdisc of Linux --> relay --> npecn qdisc of the port
 *
 * All three tell the npecn qdisc what the fabric program (fabric.bpf.c) tells it: the class, and
 * the port that the packet came in by. The ideal time that the packet carries does not outlive IP,
 * nor a qdisc: the packet arrives at npecn now. So they are for clocks that stand still while CPUs
 * work, where now is the ideal time.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/packet.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct router_port {
	u32 node;
	u32 ifindex; /* of its device, which has the npecn qdisc */
};

/* Key: the port's id. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct router_port);
} router_ports SEC(".maps");

/* A device of a node. */
struct place {
	u32 node;
	u32 ifindex;
};

/* The ids of ports by where they are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct place);
	__type(value, u32);
} port_at SEC(".maps");

/* Tells the qdisc the packet's class and whether it can be marked, and that it arrives now. */
static __always_inline void hand_over(struct __sk_buff *skb, u32 mark)
{
	struct network n;
	u8 tos = 0;

	if (network_parse(skb, &n))
		tos = network_tos(&n);
	if (!(tos & ECN_MASK))
		mark |= MARK_NOT_ECT;
	skb->priority = class_of(tos);
	skb->mark = mark;
	skb->cb[CARRY_WORD] = 0;
}

/* At ingress: the last port's mark. */
SEC("tc")
int enter(struct __sk_buff *skb)
{
	if (carried(skb) && (skb->cb[CARRY_WORD] & CARRY_CE))
		bpf_skb_ecn_set_ce(skb);
	return TCX_NEXT;
}

/* At egress, also of what the router itself sends: that came in by no port. */
SEC("tc")
int leave(struct __sk_buff *skb)
{
	u32 id = port_id(skb), mark = 0, *from;
	struct router_port *p = bpf_map_lookup_elem(&router_ports, &id);
	struct place at = {};

	if (!p)
		return TCX_NEXT;
	at.node = p->node;
	at.ifindex = skb->ingress_ifindex;
	from = bpf_map_lookup_elem(&port_at, &at);
	if (from)
		mark = MARK_INGRESS | (*from & MARK_PORT_MASK);
	hand_over(skb, mark);
	return TCX_NEXT;
}

/* At the far end of the veths, on to the port. Both are in one namespace, which keeps the mark. */
SEC("tc")
int relay(struct __sk_buff *skb)
{
	u32 id = port_id(skb);
	struct router_port *p = bpf_map_lookup_elem(&router_ports, &id);

	if (!p)
		return TCX_DROP;
	hand_over(skb, skb->mark & ~MARK_NOT_ECT);
	return bpf_redirect(p->ifindex, 0);
}
