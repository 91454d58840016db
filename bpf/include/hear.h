/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Taking CNPs out of the stream that a sender receives, and checking them. */
#ifndef PCN_HEAR_H
#define PCN_HEAR_H

#include "clock.h"
#include "cnp.h"
#include "packet.h"
#include "sender.h"

enum rp_count {
	RP_DECREASE, /* CNPs and CNMs obeyed */
	RP_INCREASE,
	RP_HOLD,
	RP_MALFORMED, /* ours by its header, but not in its length or fixed fields */
	RP_BAD_ICRC,
	RP_NO_FLOW, /* no live flow of this host */
	RP_COUNTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RP_COUNTS);
	__type(key, u32);
	__type(value, u64);
} rp_counts SEC(".maps");

static __always_inline void count(u32 what)
{
	u64 *n = bpf_map_lookup_elem(&rp_counts, &what);

	if (n)
		(*n)++;
}

/* linear: some drivers leave all but the IP header in pages. */
static __always_inline void linear(struct __sk_buff *skb, u32 len)
{
	if (skb->len == len && (void *)(long)skb->data + len > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, len);
}

/* arrival_ns: when the packet arrived; ideally, if ports of ours sent it. */
static __always_inline u64 arrival_ns(const struct __sk_buff *skb)
{
	return carried(skb) ? (u64)skb->cb[CARRY_HIGH] << 32 | skb->cb[CARRY_LOW] : now_ns();
}

/* tcd: CNPs may say UE. Set by the loader. */
const volatile bool tcd = false;

/* says_ue: the CNP says UE. */
static __always_inline bool says_ue(const struct cnp_frame *f)
{
	return f->bth.becn & CNP_UE;
}

/* becn_well_formed: BECN, and UE with TCD only, and not beside CE, which overrides it. */
static __always_inline bool becn_well_formed(const struct cnp_frame *f)
{
	return f->bth.becn == CNP_BECN || (tcd && f->bth.becn == (CNP_BECN | CNP_UE) && !(f->ip.tos & ECN_MASK));
}

/*
 * well_formed: every field in which the sender has no choice. Not DSCP and TTL, which routers change, and not the
 * rest of what the ICRC covers.
 */
static __always_inline bool well_formed(const struct cnp_frame *f, u32 len)
{
	u8 ecn = f->ip.tos & ECN_MASK;
	const u8 *qp = f->bth.dest_qp;

	return len == CNP_FRAME_LEN && (!ecn || ecn == ECN_CE) && f->ip.tot_len == bpf_htons(CNP_IP_LEN) && !f->ip.id &&
	       f->ip.frag_off == bpf_htons(CNP_FRAG_OFF) && !ip_checksum(&f->ip) &&
	       f->udp.source == cnp_udp_source(f->pcn.flow_sport, f->pcn.flow_dport) &&
	       f->udp.len == bpf_htons(CNP_UDP_LEN) && !f->udp.check && !f->bth.flags && f->bth.pkey == CNP_PKEY &&
	       becn_well_formed(f) && !(qp[0] | qp[1] | qp[2]) && !f->bth.psn;
}

/*
 * hear_cnp: the CNP that the packet is, if it is one of ours and good: then *f is it. Returns what to do with the
 * packet otherwise.
 */
static __always_inline int hear_cnp(struct __sk_buff *skb, const struct cnp_frame **f)
{
	struct packet p;
	struct bth *bth;

	*f = NULL;
	linear(skb, CNP_FRAME_LEN);
	if (other_vlan(skb) || !packet_parse(skb, &p, sizeof(struct udphdr) + sizeof(*bth)))
		return TCX_NEXT;
	bth = p.l4 + sizeof(struct udphdr);
	if (p.ip->protocol != IPPROTO_UDP || ((struct udphdr *)p.l4)->dest != bpf_htons(ROCE_PORT) ||
	    bth->opcode != CNP_OPCODE)
		return TCX_NEXT;
	if ((void *)p.eth + sizeof(**f) > p.end) {
		count(RP_MALFORMED);
		return TCX_DROP;
	}
	*f = (void *)p.eth;
	if (!(*f)->pcn.flow_sport) {
		*f = NULL;
		return TCX_NEXT; /* somebody else's RoCE: their reserved bytes are zero */
	}
	if (!well_formed(*f, skb->len)) {
		count(RP_MALFORMED);
		*f = NULL;
	} else if (cnp_icrc(*f) != (*f)->icrc) {
		count(RP_BAD_ICRC);
		*f = NULL;
	}
	return TCX_DROP;
}

/* cnp_flow_key: the flow whose receiver sent the CNP. */
static __always_inline void cnp_flow_key(const struct cnp_frame *f, struct flow_key *k)
{
	flow_key_ipv4(k, f->ip.daddr, f->ip.saddr, f->pcn.flow_sport, f->pcn.flow_dport, IPPROTO_TCP);
}

#endif
