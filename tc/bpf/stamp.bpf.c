// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * stamp: the last tcx egress program of a host. It gives each packet its class. Data gets the
 * lossless class. CNPs, pure ACKs and everything else get the control class, which is never paused.
 * The class is written twice: as DSCP (class selector) of IPv4 and IPv6, for switches, and as
 * skb->priority, for the host's own port.
 *
 * Data of a socket whose IP_TOS is one of the data classes keeps it, so sockets can choose their
 * priority.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/lab.h"
#include "include/packet.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* DSCP of data and of control packets; the class is DSCP / 8. Set by the loader. */
const volatile u8 data_dscp = 26;
const volatile u8 control_dscp = 48;

/* A bit for each class that data may already have, and keeps. */
const volatile u8 data_classes = 0;

/* Makes the source MAC address 02:00 and the IPv4 source address, by which CNMs find their way. */
const volatile bool address_mac = false;

/* For switches, pure ACKs or CNPs have the class of data: in the host's own port they go first. */
const volatile bool acks_as_data = false;
const volatile bool cnps_as_data = false;

/* ECN-capable packets use ECT(1): TCD needs ECT(0) for UE. */
const volatile bool ect1 = false;

/*
 * Fragments and IPv4 with options have a DSCP, too, by their protocol: of a datagram's fragments
 * only the first has ports. On a host they are left alone.
 */
const volatile bool fragments = false;

#define ROCE_PORT 4791

/*
 * TCP with payload, or with the FIN, which must not overtake payload; or UDP other than RoCE's,
 * which here is CNPs.
 */
static __always_inline bool is_data(const struct packet *p)
{
	u32 payload = bpf_ntohs(p->ip->tot_len) - sizeof(struct iphdr);

	if (p->ip->protocol == IPPROTO_TCP) {
		struct tcphdr *tcp = p->l4;

		return (void *)(tcp + 1) <= p->end &&
		       ((tcp->flags & TCP_FIN) || payload > tcp->doff * 4);
	}
	if (p->ip->protocol == IPPROTO_UDP) {
		struct udphdr *udp = p->l4;

		return (void *)(udp + 1) <= p->end && udp->dest != bpf_htons(ROCE_PORT);
	}
	return false;
}

/* What is not data has its class for switches. */
static __always_inline bool as_data(const struct packet *p)
{
	return p->ip->protocol == IPPROTO_TCP	? acks_as_data
	       : p->ip->protocol == IPPROTO_UDP ? cnps_as_data
						: false;
}

/* Sets the MAC address that stands for the IPv4 source. */
static __always_inline void set_source(struct __sk_buff *skb, __be32 saddr)
{
	u8 mac[ETH_ALEN] = {2};

	__builtin_memcpy(mac + 2, &saddr, sizeof(saddr));
	bpf_skb_store_bytes(skb, __builtin_offsetof(struct ethhdr, h_source), mac, ETH_ALEN, 0);
}

static __always_inline u8 dscp_of(u8 tos, bool data)
{
	if (!data)
		return control_dscp;
	return data_classes >> class_of(tos) & 1 ? tos >> 2 : data_dscp;
}

static __always_inline u8 stamped_tos(u8 tos, u8 dscp)
{
	u8 ecn = tos & ECN_MASK;

	if (ect1 && ecn == ECN_UE)
		ecn = ECN_ECT1;
	return dscp << 2 | ecn;
}

/* A fragment, or IPv4 with options: like the packet that it is of, but for ACKs and CNPs. */
static __noinline u32 stamp_fragment(struct __sk_buff *skb)
{
	struct network n;
	u8 protocol, tos, dscp;

	if (!fragments || !network_parse(skb, &n))
		return control_dscp;
	if (n.v6) {
		const struct ipv6hdr *ip = n.header;
		const u8 *fragment = (const void *)(ip + 1); /* its first byte is the protocol */

		if ((const void *)(fragment + 1) > (void *)(long)skb->data_end)
			return control_dscp;
		protocol = *fragment;
	} else {
		protocol = ((const struct iphdr *)n.header)->protocol;
	}
	tos = network_tos(&n);
	dscp = dscp_of(tos, protocol == IPPROTO_TCP || protocol == IPPROTO_UDP);
	network_set_tos(skb, &n, tos, stamped_tos(tos, dscp));
	return dscp;
}

/*
 * Stamps what is not plain IPv4: IPv6, and both behind VLAN tags. Returns the DSCP of the class. A
 * packet without a class, or one that cannot be parsed, gets that of control packets.
 */
static __noinline u32 stamp_other(struct __sk_buff *skb)
{
	struct transport t;
	struct network n;
	u8 tos, dscp;
	int verdict;
	bool data;

	if (!network_parse(skb, &n))
		return control_dscp;
	if (!network_whole(&n))
		return stamp_fragment(skb);
	tos = network_tos(&n);
	verdict = transport_parse(skb, &n, &t);
	if (verdict == TRANSPORT_EXTENSIONS)
		return control_dscp;
	if (verdict != TRANSPORT_OK)
		data = false;
	else if (t.key.protocol == IPPROTO_TCP)
		data = t.payload_len || (t.flags & TCP_FIN);
	else
		data = t.key.dport != bpf_htons(ROCE_PORT);
	dscp = dscp_of(tos, data);
	network_set_tos(skb, &n, tos, stamped_tos(tos, dscp));
	if (address_mac && !n.v6)
		set_source(skb, t.key.saddr[3]);
	return dscp;
}

SEC("tc")
int stamp(struct __sk_buff *skb)
{
	struct packet p;
	u8 dscp, tos;
	__be32 saddr;
	bool data;

	if (!packet_parse(skb, &p, 0)) {
		skb->priority = (lab_only ? stamp_fragment(skb) : stamp_other(skb)) >> 3;
		return TCX_NEXT;
	}
	tos = p.ip->tos;
	data = is_data(&p);
	skb->priority = dscp_of(tos, data) >> 3;
	dscp = dscp_of(tos, data || as_data(&p));
	saddr = p.ip->saddr;
	if (address_mac)
		set_source(skb, saddr);
	set_tos(skb, tos, stamped_tos(tos, dscp));
	return TCX_NEXT;
}
