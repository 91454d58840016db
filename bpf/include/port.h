/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How the port qdisc and the tc programs exchange data in packets. */
#ifndef PCN_PORT_H
#define PCN_PORT_H

#define CLASSES 8

/*
 * The fabric program notes the ingress port in skb->mark, and the class in skb->priority, for the
 * egress port's enqueue. Port ids are netdev groups, 1 and up.
 */
#define MARK_INGRESS	  0x50430000U
#define MARK_INGRESS_MASK 0xffff0000U
#define MARK_PARTED	  0x50440000U /* in its place: a partition is between the hosts */
#define MARK_NOT_ECT	  0x8000U     /* the packet is not ECN-capable: WRED drops it */
#define MARK_PORT_MASK	  0x7fffU

/* A clone that NP sends to its own egress, which turns it into a CNP. */
#define MARK_CNP 0x504e0000U
/* The same for the CNM of a switch's congestion point. */
#define MARK_CNM 0x504d0000U
/* What a port before a real interface (tc/bpf/port.bpf.c) has sent on. */
#define MARK_PORT 0x50540000U

/*
 * A packet's ideal time and what the port decided about it travel in qdisc_skb_cb->data, from
 * dequeue to the next tcx ingress and enqueue. They survive veth, redirect and clone. Seen from tc
 * these are cb[0] to cb[4].
 */
#define CARRY_MAGIC	 0x50434e00U
#define CARRY_MAGIC_MASK 0xffffff00U
#define CARRY_CE	 1U /* mark this packet */
#define CARRY_FB_SHIFT	 1  /* QCN sampled this packet: QntzFb, 6 bits; 0: it did not */
#define CARRY_FB_MASK	 63U
#define CARRY_UE	 0x80U /* mark this packet UE, if it is ECN-capable and not CE: TCD */

#define CARRY_WORD  0 /* magic | verdict */
#define CARRY_LOW   1 /* ideal delivery time, low word */
#define CARRY_HIGH  2
#define CARRY_QUEUE 3 /* of a sample: queue offset and change, in units of 64 bytes, 16 bits each */
#define CARRY_PORT  4 /* of a sample: the port */

#endif
