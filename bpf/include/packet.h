/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reading packets in tc programs. network_parse and transport_parse know IPv4 with options, IPv6
 * with extension headers, and 802.1Q and 802.1ad tags. The outermost tag is in the skb, not in the
 * frame; what is read here are the tags behind it. packet_parse knows only the plain IPv4 of the
 * lab's switches.
 */
#ifndef PCN_PACKET_H
#define PCN_PACKET_H

#include "flow.h"
#include "port.h"

#define ECN_MASK 3
#define ECN_CE	 3

/*
 * TCD gives a meaning to the two other codepoints of ECN-capable packets. Senders use ECT(1). A
 * switch whose port is undetermined changes that to ECT(0), which means UE, as in the authors'
 * simulator. CE overrides UE.
 */
#define ECN_ECT1 1
#define ECN_UE	 2

#define ETH_P_IPV6   0x86dd
#define ETH_P_8021Q  0x8100
#define ETH_P_8021AD 0x88a8

#define MAX_TAGS	   2 /* in the frame */
#define MAX_IPV6_EXTENSION 6 /* packets with more extension headers are not parsed */

#define MAX_HEADERS_LEN 2048 /* before TCP or UDP */

#define IPPROTO_HOPOPTS	 0
#define IPPROTO_ROUTING	 43
#define IPPROTO_FRAGMENT 44
#define IPPROTO_AH	 51
#define IPPROTO_DSTOPTS	 60

#ifndef BPF_F_RECOMPUTE_CSUM
#define BPF_F_RECOMPUTE_CSUM 1
#endif

#define FRAGMENT 0x3fff /* of IPv4's frag_off: more fragments, and the offset */

#define VLAN_BITS 12 /* of the TCI, the VLAN's number */
#define VLAN_MASK ((1U << VLAN_BITS) - 1)

struct vlan_hdr {
	__be16 tci;
	__be16 proto; /* of what follows */
};

struct ipv6hdr {
	u8 version_class; /* version, upper half of the traffic class */
	u8 class_label;	  /* lower half, and the flow label's first bits */
	__be16 label;
	__be16 payload_len;
	u8 nexthdr;
	u8 hop_limit;
	__be32 saddr[4];
	__be32 daddr[4];
};

/* The traffic class: IPv6's counterpart of TOS. */
static __always_inline u8 ipv6_class(const struct ipv6hdr *ip)
{
	return ip->version_class << 4 | ip->class_label >> 4;
}

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* Makes len bytes directly readable: some drivers leave headers in pages. */
static __always_inline void pull_headers(struct __sk_buff *skb, u32 len)
{
	if (len > skb->len)
		len = skb->len;
	if ((void *)(long)skb->data + len > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, len);
}

/* The IP header of a frame. */
struct network {
	void *header; /* struct iphdr or struct ipv6hdr, of which the fixed part may be read */
	u32 off;      /* of the IP header in the frame */
	bool v6;
};

/* False if the frame has neither IPv4 nor IPv6 behind at most MAX_TAGS tags. */
static __always_inline bool network_parse(const struct __sk_buff *skb, struct network *n)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;
	u32 off = sizeof(*eth);
	__be16 proto;

	if ((void *)(eth + 1) > end)
		return false;
	proto = eth->h_proto;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < MAX_TAGS; i++) {
		struct vlan_hdr *tag = data + off;

		if (!is_tag(proto))
			break;
		if ((void *)(tag + 1) > end)
			return false;
		proto = tag->proto;
		off += sizeof(*tag);
	}
	n->off = off;
	n->header = data + off;
	if (proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = n->header;

		n->v6 = false;
		return (void *)(ip + 1) <= end && ip->version == 4 && ip->ihl >= 5;
	}
	if (proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = n->header;

		n->v6 = true;
		return (void *)(ip + 1) <= end && ip->version_class >> 4 == 6;
	}
	return false;
}

/* True for untagged IPv4 without options that is no fragment. */
static __always_inline bool network_parse_plain(const struct __sk_buff *skb, struct network *n)
{
	struct ethhdr *eth = (void *)(long)skb->data;
	struct iphdr *ip = (void *)(eth + 1);

	n->header = ip;
	n->off = sizeof(*eth);
	n->v6 = false;
	return (void *)(ip + 1) <= (void *)(long)skb->data_end &&
	       eth->h_proto == bpf_htons(ETH_P_IP) && ip->version == 4 && ip->ihl == 5 &&
	       !(ip->frag_off & bpf_htons(FRAGMENT));
}

/* False for fragments and for IPv4 with options: programs that write the TOS let those pass. */
static __always_inline bool network_whole(const struct network *n)
{
	const struct iphdr *ip = n->header;

	if (n->v6)
		return ((const struct ipv6hdr *)n->header)->nexthdr != IPPROTO_FRAGMENT;
	return ip->ihl == 5 && !(ip->frag_off & bpf_htons(FRAGMENT));
}

/* IPv4's TOS or IPv6's traffic class. */
static __always_inline u8 network_tos(const struct network *n)
{
	return n->v6 ? ipv6_class(n->header) : ((const struct iphdr *)n->header)->tos;
}

/* Replaces `old`. Pointers into the packet are invalid afterwards. */
static __always_inline void network_set_tos(struct __sk_buff *skb, const struct network *n, u8 old,
					    u8 tos)
{
	if (tos == old)
		return;
	if (n->v6) {
		const struct ipv6hdr *ip = n->header;
		u8 start[2] = {6 << 4 | tos >> 4, tos << 4 | (ip->class_label & 15)};

		bpf_skb_store_bytes(skb, n->off, start, sizeof(start), BPF_F_RECOMPUTE_CSUM);
		return;
	}
	bpf_l3_csum_replace(skb, n->off + __builtin_offsetof(struct iphdr, check), bpf_htons(old),
			    bpf_htons(tos), 2);
	bpf_skb_store_bytes(skb, n->off + __builtin_offsetof(struct iphdr, tos), &tos, 1, 0);
}

/* A TCP segment or a UDP datagram. */
struct transport {
	struct flow_key key;
	u32 off;	 /* of the TCP or UDP header in the frame */
	u32 payload_len; /* bytes for the application */
	u32 seq, ack;	 /* TCP's */
	u8 tos;
	u8 flags; /* TCP's */
};

enum transport_verdict {
	TRANSPORT_OK,
	TRANSPORT_OTHER,      /* neither TCP nor UDP, a fragment, or truncated */
	TRANSPORT_EXTENSIONS, /* IPv6: too many or too long extension headers, or an unknown one */
};

/* Moves from the IPv6 header to what it carries. Reading the next header checks each length. */
static __always_inline int skip_extensions(const struct __sk_buff *skb, u8 *next, u32 *off)
{
	/* the headers, and what is behind the last */
	for (u32 i = 0; i <= MAX_IPV6_EXTENSION; i++) {
		u8 extension[2]; /* next header, length */

		if (*next == IPPROTO_TCP || *next == IPPROTO_UDP)
			return TRANSPORT_OK;
		if (*next == IPPROTO_FRAGMENT)
			return TRANSPORT_OTHER;
		if (*next != IPPROTO_HOPOPTS && *next != IPPROTO_ROUTING &&
		    *next != IPPROTO_DSTOPTS && *next != IPPROTO_AH)
			return i ? TRANSPORT_EXTENSIONS : TRANSPORT_OTHER;
		if (bpf_skb_load_bytes(skb, *off, extension, sizeof(extension)))
			return TRANSPORT_OTHER;
		*off += *next == IPPROTO_AH ? (extension[1] + 2) * 4 : (extension[1] + 1) * 8;
		*next = extension[0];
	}
	return TRANSPORT_EXTENSIONS;
}

/* The first bytes of the TCP header: ports to flags. */
struct tcp_start {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack_seq;
	u8 res1 : 4, doff : 4;
	u8 flags;
	u8 pad[2];
};

#define TCP_START_LEN 14

/*
 * Copies the start of the TCP or UDP header, at off in the frame. If the IP header before it is
 * plain, l4 points there; then it is mostly directly readable.
 */
static __always_inline bool read_header(const struct __sk_buff *skb, const void *l4, u32 off,
					void *to, const u32 len)
{
	if (l4 && l4 + len <= (void *)(long)skb->data_end) {
		__builtin_memcpy(to, l4, len);
		return true;
	}
	return !bpf_skb_load_bytes(skb, off, to, len);
}

/* The cookie of the network namespace that the packet is in; 0 if keys have none. */
static __always_inline u64 packet_netns(const struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb;

	if (!netns_keys)
		return 0;
	kernel_skb = bpf_cast_to_kern_ctx((void *)skb);
	return kernel_skb->dev->nd_net.net->net_cookie;
}

static __always_inline int transport_parse(const struct __sk_buff *skb, const struct network *n,
					   struct transport *t)
{
	const void *l4 = NULL;
	u32 len, total, header_len;
	u8 protocol;

	t->key = (struct flow_key){.netns = packet_netns(skb)};
	if (n->v6) {
		const struct ipv6hdr *ip = n->header;
		int verdict;

		t->off = n->off + sizeof(*ip);
		total = bpf_ntohs(ip->payload_len);
		total = total ? total + sizeof(*ip)
			      : skb->len - n->off; /* 0: a jumbogram, as GRO makes them */
		t->tos = ipv6_class(ip);
		__builtin_memcpy(t->key.saddr, ip->saddr, 2 * sizeof(ip->saddr));
		protocol = ip->nexthdr;
		if (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP)
			l4 = ip + 1;
		verdict = l4 ? TRANSPORT_OK : skip_extensions(skb, &protocol, &t->off);
		if (verdict != TRANSPORT_OK)
			return verdict;
		if (t->off > n->off + MAX_HEADERS_LEN)
			return TRANSPORT_EXTENSIONS;
	} else {
		const struct iphdr *ip = n->header;

		if (ip->frag_off & bpf_htons(FRAGMENT))
			return TRANSPORT_OTHER;
		t->off = n->off + ip->ihl * 4;
		if (ip->ihl == 5)
			l4 = ip + 1;
		total = bpf_ntohs(ip->tot_len)
				?: skb->len - n->off; /* 0: longer than 64 KB, by GRO */
		t->tos = ip->tos;
		t->key.saddr[2] = t->key.daddr[2] = bpf_htonl(0xffff);
		t->key.saddr[3] = ip->saddr;
		t->key.daddr[3] = ip->daddr;
		protocol = ip->protocol;
	}
	t->key.protocol = protocol;
	len = n->off + total; /* without the padding of Ethernet */
	if (len > skb->len)
		return TRANSPORT_OTHER;
	if (protocol == IPPROTO_TCP) {
		struct tcp_start tcp;

		if (!read_header(skb, l4, t->off, &tcp, TCP_START_LEN))
			return TRANSPORT_OTHER;
		t->key.sport = tcp.source;
		t->key.dport = tcp.dest;
		t->seq = bpf_ntohl(tcp.seq);
		t->ack = bpf_ntohl(tcp.ack_seq);
		t->flags = tcp.flags;
		header_len = tcp.doff * 4;
	} else if (protocol == IPPROTO_UDP) {
		struct udphdr udp;

		if (!read_header(skb, l4, t->off, &udp, sizeof(udp)))
			return TRANSPORT_OTHER;
		t->key.sport = udp.source;
		t->key.dport = udp.dest;
		t->seq = t->ack = 0;
		t->flags = 0;
		header_len = sizeof(udp);
	} else {
		return TRANSPORT_OTHER;
	}
	t->payload_len = len > t->off + header_len ? len - t->off - header_len : 0;
	return TRANSPORT_OK;
}

/* The headers of an IPv4 packet without options. */
struct packet {
	struct ethhdr *eth;
	struct iphdr *ip;
	void *l4;
	void *end;
};

/* True for plain IPv4, no fragment, with at least `need` bytes behind the IP header. */
static __always_inline bool packet_parse(struct __sk_buff *skb, struct packet *p, u32 need)
{
	p->eth = (void *)(long)skb->data;
	p->end = (void *)(long)skb->data_end;
	p->ip = (void *)(p->eth + 1);
	p->l4 = p->ip + 1;
	if (p->l4 + need > p->end)
		return false;
	return p->eth->h_proto == bpf_htons(ETH_P_IP) && p->ip->version == 4 && p->ip->ihl == 5 &&
	       !(p->ip->frag_off & bpf_htons(FRAGMENT));
}

/*
 * Whether the packet is for the device of a VLAN, which receives it next. VLAN 0 only carries a
 * priority; such packets are for this device.
 */
static __always_inline bool other_vlan(const struct __sk_buff *skb)
{
	return skb->vlan_tci & VLAN_MASK;
}

/* Whether one of our ports sent the packet: then cb holds its ideal time and its mark. */
static __always_inline bool carried(const struct __sk_buff *skb)
{
	return (skb->cb[CARRY_WORD] & CARRY_MAGIC_MASK) == CARRY_MAGIC;
}

/* The id of a port is the netdev group of its device. */
static __always_inline u32 port_id(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);

	return kernel_skb->dev->group;
}

/* The class of a DSCP is its class selector, the default mapping of switches. */
static __always_inline u32 class_of(u8 tos)
{
	return tos >> 5;
}

/* Replaces `old` in an IPv4 packet. Pointers into the packet are invalid afterwards. */
static __always_inline void set_tos(struct __sk_buff *skb, u8 old, u8 tos)
{
	if (tos == old)
		return;
	bpf_l3_csum_replace(skb, sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, check),
			    bpf_htons(old), bpf_htons(tos), 2);
	bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, tos),
			    &tos, 1, 0);
}

/* Marks an ECT(1) packet UE. Pointers into the packet are invalid afterwards. */
static __always_inline void mark_ue(struct __sk_buff *skb, u8 tos)
{
	if ((tos & ECN_MASK) == ECN_ECT1)
		set_tos(skb, tos, (tos & ~ECN_MASK) | ECN_UE);
}

#endif
