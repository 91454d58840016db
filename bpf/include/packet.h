/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reading packets in tc programs. */
#ifndef PCN_PACKET_H
#define PCN_PACKET_H

#include "port.h"

#define ECN_MASK 3
#define ECN_CE	 3

/*
 * Under TCD the two other codepoints of ECN-capable packets tell more: senders use ECT(1), and a switch whose port is
 * undetermined makes that ECT(0), UE, as the authors' simulator does. CE overrides UE, and UE never CE.
 */
#define ECN_ECT1 1
#define ECN_UE	 2

/* The headers of an IPv4 packet without options; l4 is checked for `need` bytes. */
struct packet {
	struct ethhdr *eth;
	struct iphdr *ip;
	void *l4;
	void *end;
};

/* packet_parse: false if it is not plain IPv4, is a fragment, or is shorter than `need` bytes of layer 4. */
static __always_inline bool packet_parse(struct __sk_buff *skb, struct packet *p, u32 need)
{
	p->eth = (void *)(long)skb->data;
	p->end = (void *)(long)skb->data_end;
	p->ip = (void *)(p->eth + 1);
	p->l4 = p->ip + 1;
	if (p->l4 + need > p->end)
		return false;
	return p->eth->h_proto == bpf_htons(ETH_P_IP) && p->ip->version == 4 && p->ip->ihl == 5 &&
	       !(p->ip->frag_off & bpf_htons(0x3fff)); /* more fragments, offset */
}

/* other_vlan: it is for a VLAN's device, which gets it next. VLAN 0 carries a priority only, for this device. */
static __always_inline bool other_vlan(const struct __sk_buff *skb)
{
	return skb->vlan_tci & 0xfff;
}

/* carried: whether a port of ours sent the packet, so that cb holds its ideal time and mark. */
static __always_inline bool carried(const struct __sk_buff *skb)
{
	return (skb->cb[CARRY_WORD] & CARRY_MAGIC_MASK) == CARRY_MAGIC;
}

/* port_id: the device's netdev group. */
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

/* set_tos: of an IPv4 packet, where `old` is now. Pointers into the packet are void afterwards. */
static __always_inline void set_tos(struct __sk_buff *skb, u8 old, u8 tos)
{
	if (tos == old)
		return;
	bpf_l3_csum_replace(skb, sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, check), bpf_htons(old),
			    bpf_htons(tos), 2);
	bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + __builtin_offsetof(struct iphdr, tos), &tos, 1, 0);
}

/* mark_ue: marks the packet UE, if it is ECT(1). Pointers into the packet are void afterwards. */
static __always_inline void mark_ue(struct __sk_buff *skb, u8 tos)
{
	if ((tos & ECN_MASK) == ECN_ECT1)
		set_tos(skb, tos, (tos & ~ECN_MASK) | ECN_UE);
}

#endif
