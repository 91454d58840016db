/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Turns the clone of a data packet into a packet of our own. */
#ifndef PCN_CUT_H
#define PCN_CUT_H

#define BPF_ADJ_ROOM_MAC 1 /* linux/bpf.h: right behind the Ethernet header */

/*
 * Makes the clone len bytes long. First it leaves the clone longer by headers_len, the length of
 * the data packet's IP and transport headers. Then it removes those headers, and with them the
 * request to compute their checksum, which every segment that GRO merged has. Otherwise the device
 * would write that checksum into the new packet.
 */
static __always_inline bool cut_clone(struct __sk_buff *skb, u32 len, u32 headers_len)
{
	return !bpf_skb_change_tail(skb, len + headers_len, 0) &&
	       !bpf_skb_adjust_room(skb, -(s32)headers_len, BPF_ADJ_ROOM_MAC, 0);
}

#endif
