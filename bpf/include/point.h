/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What notification points and reaction points have in common: which packets they look at, and when. */
#ifndef PCN_POINT_H
#define PCN_POINT_H

#include "clock.h"
#include "packet.h"

/*
 * on_host: the program runs on a real host. It then knows IPv6, VLAN tags, IPv4 options and flows of UDP,
 * and takes CNPs from allowed sources only. Otherwise it sees the lab's plain IPv4, and the verifier
 * removes the rest. Set by the loader.
 */
const volatile bool on_host = false;

/* ideal_time: packets carry their ideal arrival, as the lab's ports write it. Set by the loader. */
const volatile bool ideal_time = false;

/* arrival_ns is when the packet arrived, in the papers' time. */
static __always_inline u64 arrival_ns(const struct __sk_buff *skb)
{
	if (ideal_time && carried(skb))
		return (u64)skb->cb[CARRY_HIGH] << 32 | skb->cb[CARRY_LOW];
	return now_ns();
}

/* point_parse finds the IP header; false: the packet is none of a point's business. */
static __always_inline bool point_parse(const struct __sk_buff *skb, struct network *n)
{
	return on_host ? network_parse(skb, n) : !other_vlan(skb) && network_parse_plain(skb, n);
}

#endif
