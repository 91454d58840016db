/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reading packets in tc programs.
 *
 * network_parse and transport_parse know IPv4 with options, IPv6 with extension headers, and 802.1Q and
 * 802.1ad tags. A device's outermost tag is in the skb and not in the frame; what is read here are the
 * tags behind it. packet_parse is the lab's switches': plain IPv4 only.
 */
#ifndef PCN_PACKET_H
#define PCN_PACKET_H

#include "flow.h"
#include "port.h"

#define ECN_MASK 3
#define ECN_CE	 3

/*
 * Under TCD the two other codepoints of ECN-capable packets tell more: senders use ECT(1), and a switch whose port is
 * undetermined makes that ECT(0), UE, as the authors' simulator does. CE overrides UE, and UE never CE.
 */
#define ECN_ECT1 1
#define ECN_UE	 2

#define ETH_P_IPV6   0x86dd
#define ETH_P_8021Q  0x8100
#define ETH_P_8021AD 0x88a8

#define MAX_TAGS	   2 /* in the frame */
#define MAX_IPV6_EXTENSION 6 /* headers; a packet with more is not looked into */

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

/* ipv6_class: the traffic class, which is what IPv4 has as TOS. */
static __always_inline u8 ipv6_class(const struct ipv6hdr *ip)
{
	return ip->version_class << 4 | ip->class_label >> 4;
}

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* reach makes len bytes directly readable: some drivers leave headers in pages. */
static __always_inline void reach(struct __sk_buff *skb, u32 len)
{
	if (len > skb->len)
		len = skb->len;
	if ((void *)(long)skb->data + len > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, len);
}

/* The IP header of a frame. */
struct network {
	void *header; /* struct iphdr or struct ipv6hdr, of which the fixed part may be read */
	u32 off;      /* of it */
	bool v6;
};

/* network_parse is false if the frame has neither IPv4 nor IPv6 behind at most MAX_TAGS tags. */
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

/* network_parse_plain finds untagged IPv4 without options, not a fragment. */
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

/*
 * network_whole is false for fragments and for IPv4 with options, which programs that write the TOS let
 * pass.
 */
static __always_inline bool network_whole(const struct network *n)
{
	const struct iphdr *ip = n->header;

	if (n->v6)
		return ((const struct ipv6hdr *)n->header)->nexthdr != IPPROTO_FRAGMENT;
	return ip->ihl == 5 && !(ip->frag_off & bpf_htons(FRAGMENT));
}

/* network_tos: IPv4's TOS or IPv6's traffic class. */
static __always_inline u8 network_tos(const struct network *n)
{
	return n->v6 ? ipv6_class(n->header) : ((const struct iphdr *)n->header)->tos;
}

/* network_set_tos replaces `old`. Pointers into the packet are void afterwards. */
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

/* What a TCP segment or a UDP datagram is, whatever it came in. */
struct transport {
	struct flow_key key;
	u32 off;	 /* of the TCP or UDP header in the frame */
	u32 payload_len; /* for the application */
	u32 seq;	 /* TCP's */
	u8 tos;
	u8 flags; /* TCP's */
};

enum transport_verdict {
	TRANSPORT_OK,
	TRANSPORT_OTHER, /* neither TCP nor UDP, a fragment, or truncated */
	TRANSPORT_EXTENSIONS, /* IPv6 with more or longer extension headers than one looks at, or one not known */
};

/*
 * skip_extensions goes from the IPv6 header to what it carries. The read of the next header checks each
 * length.
 */
static __always_inline int skip_extensions(const struct __sk_buff *skb, u8 *next, u32 *off)
{
	for (u32 i = 0; i <= MAX_IPV6_EXTENSION;
	     i++) {		 /* the headers, and what is behind the last */
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

/* TCP's ports to its flags. */
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
 * read_header copies the start of TCP's or UDP's header, at off in the frame. l4 points there if a plain
 * IP header precedes it; then it is mostly within direct reach.
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

/* transport_parse reads the TCP or UDP header behind the IP header, at ingress or egress. */
static __always_inline int transport_parse(const struct __sk_buff *skb, const struct network *n,
					   struct transport *t)
{
	const void *l4 = NULL;
	u32 len, total, header_len;
	u8 protocol;

	t->key = (struct flow_key){};
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
	len = n->off + total; /* without what Ethernet pads */
	if (len > skb->len)
		return TRANSPORT_OTHER;
	if (protocol == IPPROTO_TCP) {
		struct tcp_start tcp;

		if (!read_header(skb, l4, t->off, &tcp, TCP_START_LEN))
			return TRANSPORT_OTHER;
		t->key.sport = tcp.source;
		t->key.dport = tcp.dest;
		t->seq = bpf_ntohl(tcp.seq);
		t->flags = tcp.flags;
		header_len = tcp.doff * 4;
	} else if (protocol == IPPROTO_UDP) {
		struct udphdr udp;

		if (!read_header(skb, l4, t->off, &udp, sizeof(udp)))
			return TRANSPORT_OTHER;
		t->key.sport = udp.source;
		t->key.dport = udp.dest;
		t->seq = 0;
		t->flags = 0;
		header_len = sizeof(udp);
	} else {
		return TRANSPORT_OTHER;
	}
	t->payload_len = len > t->off + header_len ? len - t->off - header_len : 0;
	return TRANSPORT_OK;
}

/* The headers of an IPv4 packet without options; l4 is checked for `need` bytes. */
struct packet {
	struct ethhdr *eth;
	struct iphdr *ip;
	void *l4;
	void *end;
};

/* packet_parse wants plain IPv4, no fragment, with at least `need` bytes of layer 4. */
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
 * other_vlan says whether the packet is for a VLAN's device, which gets it next. VLAN 0 carries only a
 * priority, for this device.
 */
static __always_inline bool other_vlan(const struct __sk_buff *skb)
{
	return skb->vlan_tci & 0xfff;
}

/* carried says whether a port of ours sent the packet: then cb holds its ideal time and mark. */
static __always_inline bool carried(const struct __sk_buff *skb)
{
	return (skb->cb[CARRY_WORD] & CARRY_MAGIC_MASK) == CARRY_MAGIC;
}

/* port_id is the device's netdev group. */
static __always_inline u32 port_id(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);

	return kernel_skb->dev->group;
}

/* DSCP to class: the class selector, as switches map it by default. */
static __always_inline u32 class_of(u8 tos)
{
	return tos >> 5;
}

/* set_tos replaces `old` in an IPv4 packet. Pointers into the packet are void afterwards. */
static __always_inline void set_tos(struct __sk_buff *skb, u8 old, u8 tos)
{
	if (tos == old)
		return;
	bpf_l3_csum_replace(skb, sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, check),
			    bpf_htons(old), bpf_htons(tos), 2);
	bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, tos),
			    &tos, 1, 0);
}

/* mark_ue marks an ECT(1) packet UE. Pointers into the packet are void afterwards. */
static __always_inline void mark_ue(struct __sk_buff *skb, u8 tos)
{
	if ((tos & ECN_MASK) == ECN_ECT1)
		set_tos(skb, tos, (tos & ~ECN_MASK) | ECN_UE);
}

#endif
