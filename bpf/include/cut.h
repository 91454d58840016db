/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Cutting the clone of a data packet down to a packet of one's own. */
#ifndef PCN_CUT_H
#define PCN_CUT_H

#define BPF_ADJ_ROOM_MAC 1 /* linux/bpf.h: right behind the Ethernet header */

/*
 * cut makes the clone len bytes long. First it leaves it longer by the data packet's headers_len bytes of
 * IP and transport header, then it pulls those out: with them goes the place of a checksum that is still
 * to do, which any segment that GRO merged has. Otherwise the device would write that checksum into the
 * new packet.
 */
static __always_inline bool cut(struct __sk_buff *skb, u32 len, u32 headers_len)
{
	return !bpf_skb_change_tail(skb, len + headers_len, 0) &&
	       !bpf_skb_adjust_room(skb, -(s32)headers_len, BPF_ADJ_ROOM_MAC, 0);
}

#endif
