/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Cutting the clone of a data packet down to a packet of one's own. */
#ifndef PCN_CUT_H
#define PCN_CUT_H

#define BPF_ADJ_ROOM_MAC 1 /* linux/bpf.h: right behind the Ethernet header */

/*
 * cut: makes the clone of a TCP or UDP packet len bytes long. It is left longer by the data packet's headers first,
 * which are then pulled out: the place of a checksum still to do (any segment that GRO merged has one) goes with
 * them. Otherwise the device would write TCP's checksum into it.
 */
static __always_inline bool cut(struct __sk_buff *skb, u32 len)
{
	const int headers = sizeof(struct iphdr) + sizeof(struct tcphdr);

	return !bpf_skb_change_tail(skb, len + headers, 0) && !bpf_skb_adjust_room(skb, -headers, BPF_ADJ_ROOM_MAC, 0);
}

#endif
