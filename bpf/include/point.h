/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What notification points and reaction points share: which packets they handle, and their clock.
 */
#ifndef PCN_POINT_H
#define PCN_POINT_H

#include "clock.h"
#include "lab.h"
#include "packet.h"

/*
 * The program runs on a real host: it knows IPv6, VLAN tags, IPv4 options and flows of UDP, and
 * takes CNPs from allowed sources only. Otherwise it sees the plain IPv4 of the lab, and the
 * verifier removes the rest. Set by the loader.
 */
HOST_SETTING bool on_host = false;

/* Packets carry their ideal arrival, which the lab's ports write. Set by the loader. */
const volatile bool ideal_time = false;

/* When the packet arrived, in the papers' time. */
static __always_inline u64 arrival_ns(const struct __sk_buff *skb)
{
	if (ideal_time && carried(skb))
		return (u64)skb->cb[CARRY_HIGH] << 32 | skb->cb[CARRY_LOW];
	return now_ns();
}

/* Finds the IP header. False: not a packet for a notification or reaction point. */
static __always_inline bool point_parse(const struct __sk_buff *skb, struct network *n)
{
	return on_host ? network_parse(skb, n) : !other_vlan(skb) && network_parse_plain(skb, n);
}

#endif
