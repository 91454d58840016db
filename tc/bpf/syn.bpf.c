// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * syn: makes SYNs not ECN-capable, at a client's tcx egress, as RFC 3168, sec. 6.1.1, has them.
 *
 * Linux sends the SYN of a socket whose congestion control needs ECN as ECT(0). A server whose control does not then
 * refuses ECN, whatever its net.ipv4.tcp_ecn (tcp_ecn_create_request()). A plain SYN asks it like any other, and it
 * agrees if tcp_ecn is 1 or 2.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/packet.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define ETH_P_IPV6  0x86dd
#define ETH_P_8021Q 0x8100

#define TCP_SYN 2 /* of tcphdr.flags */
#define TCP_ACK 16

#define ECN_MASK_IPV6 0x30 /* in byte 1 of the header */

struct vlan_tag {
	__be16 tci;
	__be16 proto;
};

/* asks: it is the segment that asks for a connection. */
static __always_inline bool asks(const struct tcphdr *tcp, const void *end)
{
	return (const void *)(tcp + 1) <= end && (tcp->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

static __always_inline void plain_ipv4(struct __sk_buff *skb, struct iphdr *ip, const void *end)
{
	const u32 offset = (void *)ip - (void *)(long)skb->data;
	u8 old, tos;

	if ((void *)(ip + 1) > end || ip->protocol != IPPROTO_TCP || ip->ihl < 5 || !(ip->tos & ECN_MASK) ||
	    !asks((void *)ip + ip->ihl * 4, end))
		return;
	old = ip->tos;
	tos = old & ~ECN_MASK;
	bpf_l3_csum_replace(skb, offset + __builtin_offsetof(struct iphdr, check), bpf_htons(old), bpf_htons(tos), 2);
	bpf_skb_store_bytes(skb, offset + __builtin_offsetof(struct iphdr, tos), &tos, 1, 0);
}

/* TCP comes right behind the header: connections are not asked for with extension headers. */
static __always_inline void plain_ipv6(u8 *ip, const void *end)
{
	const u32 next_header = 6, header_len = 40;

	if ((void *)(ip + header_len) > end || ip[next_header] != IPPROTO_TCP || !asks((void *)(ip + header_len), end))
		return;
	ip[1] &= ~ECN_MASK_IPV6;
}

SEC("tc")
int syn(struct __sk_buff *skb)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end, *ip = eth + 1;
	__be16 proto;

	if (ip > end)
		return TCX_NEXT;
	proto = eth->h_proto;
	if (proto == bpf_htons(ETH_P_8021Q)) {
		struct vlan_tag *tag = ip;

		ip = tag + 1;
		if (ip > end)
			return TCX_NEXT;
		proto = tag->proto;
	}
	if (proto == bpf_htons(ETH_P_IP))
		plain_ipv4(skb, ip, end);
	else if (proto == bpf_htons(ETH_P_IPV6))
		plain_ipv6(ip, end);
	return TCX_NEXT;
}
