// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * stamp: a host's last tcx egress program. Gives each packet its class: data rides the lossless class, and
 * CNPs, pure ACKs and everything else ride the control class, which is never paused. The class is written as
 * DSCP (class selector), where switches read it, and as skb->priority, where the host's own port does.
 *
 * Sockets that set IP_TOS themselves pass without a rewrite.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/packet.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* DSCP of data and of control packets; the class is DSCP / 8. Set by the loader. */
const volatile u8 data_dscp = 26;
const volatile u8 control_dscp = 48;

/* address_mac: make the source address 02:00 and the IPv4 source address, by which CNMs find back. */
const volatile bool address_mac = false;

/* ect1: what is ECN-capable is ECT(1), as TCD marks with ECT(0). */
const volatile bool ect1 = false;

#define ROCE_PORT 4791

/* is_data: TCP with payload, or UDP that is not RoCE's (which here are CNPs). */
static __always_inline bool is_data(const struct packet *p)
{
	u32 payload = bpf_ntohs(p->ip->tot_len) - sizeof(struct iphdr);

	if (p->ip->protocol == IPPROTO_TCP) {
		struct tcphdr *tcp = p->l4;

		return (void *)(tcp + 1) <= p->end && payload > tcp->doff * 4;
	}
	if (p->ip->protocol == IPPROTO_UDP) {
		struct udphdr *udp = p->l4;

		return (void *)(udp + 1) <= p->end && udp->dest != bpf_htons(ROCE_PORT);
	}
	return false;
}

/* set_source: the Ethernet address that stands for the IPv4 source. */
static __always_inline void set_source(struct __sk_buff *skb, __be32 saddr)
{
	u8 mac[ETH_ALEN] = {2};

	__builtin_memcpy(mac + 2, &saddr, sizeof(saddr));
	bpf_skb_store_bytes(skb, __builtin_offsetof(struct ethhdr, h_source), mac, ETH_ALEN, 0);
}

/* capable: the packet's ECN field. */
static __always_inline u8 capable(u8 tos)
{
	u8 ecn = tos & ECN_MASK;

	return ect1 && ecn == ECN_UE ? ECN_ECT1 : ecn;
}

SEC("tc")
int stamp(struct __sk_buff *skb)
{
	struct packet p;
	u8 dscp, tos;
	__be32 saddr;

	if (!packet_parse(skb, &p, 0)) {
		skb->priority = control_dscp >> 3;
		return TCX_NEXT;
	}
	dscp = is_data(&p) ? data_dscp : control_dscp;
	skb->priority = dscp >> 3;
	tos = p.ip->tos;
	saddr = p.ip->saddr;
	if (address_mac)
		set_source(skb, saddr);
	set_tos(skb, tos, dscp << 2 | capable(tos));
	return TCX_NEXT;
}
