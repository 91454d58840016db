/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sending a CNP from a receiver. The program at ingress builds it and sends a clone of the data packet to its own
 * egress, where np_egress cuts the clone down to the CNP. Cloning is how a tc program sends a packet of its own.
 */
#ifndef PCN_NOTIFY_H
#define PCN_NOTIFY_H

#include "clock.h"
#include "cnp.h"
#include "cut.h"
#include "flow.h"
#include "packet.h"

/* ideal_time: packets carry their ideal arrival (the lab); otherwise the clock tells it. Set by the loader. */
const volatile bool ideal_time = false;

/* What a CNP says. */
struct notification {
	u32 rec_rate; /* 0: nothing */
	bool ce;      /* decrease */
	bool ue;      /* TCD: hold */
};

/* The CNP between the programs at ingress and egress, which run in one softirq on one CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cnp_frame);
} np_pending SEC(".maps");

enum np_count {
	NP_DECREASE, /* CNPs sent */
	NP_INCREASE,
	NP_HOLD,
	NP_NO_FLOW,  /* the flow table refused an entry */
	NP_NO_CLONE, /* a CNP could not be sent */
	NP_COUNTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NP_COUNTS);
	__type(key, u32);
	__type(value, u64);
} np_counts SEC(".maps");

static __always_inline void count(u32 what)
{
	u64 *n = bpf_map_lookup_elem(&np_counts, &what);

	if (n)
		(*n)++;
}

/* build: the CNP that answers the data packet p. */
static __always_inline void build(struct cnp_frame *f, const struct packet *p, const struct notification *cnp)
{
	struct tcphdr *tcp = p->l4;
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = CNP_DSCP << 2 | (cnp->ce ? ECN_CE : 0),
		.tot_len = bpf_htons(CNP_IP_LEN),
		.frag_off = bpf_htons(CNP_FRAG_OFF),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = p->ip->daddr,
		.daddr = p->ip->saddr,
	};

	__builtin_memcpy(f->eth.h_dest, p->eth->h_source, ETH_ALEN);
	__builtin_memcpy(f->eth.h_source, p->eth->h_dest, ETH_ALEN);
	f->eth.h_proto = bpf_htons(ETH_P_IP);
	ip.check = ip_checksum(&ip);
	f->ip = ip;
	f->udp = (struct udphdr){
		.source = cnp_udp_source(tcp->source, tcp->dest),
		.dest = bpf_htons(ROCE_PORT),
		.len = bpf_htons(CNP_UDP_LEN),
	};
	f->bth = (struct bth){.opcode = CNP_OPCODE, .pkey = CNP_PKEY, .becn = CNP_BECN | (cnp->ue ? CNP_UE : 0)};
	f->pcn = (struct cnp_payload){
		.rec_rate = bpf_htonl(cnp->rec_rate),
		.flow_sport = tcp->source,
		.flow_dport = tcp->dest,
	};
	f->icrc = cnp_icrc(f);
}

static __always_inline void notify(struct __sk_buff *skb, const struct packet *p, const struct notification *cnp)
{
	u32 zero = 0, mark = skb->mark;
	struct cnp_frame *f = bpf_map_lookup_elem(&np_pending, &zero);

	if (!f)
		return;
	build(f, p, cnp);
	skb->mark = MARK_CNP;
	if (bpf_clone_redirect(skb, skb->ifindex, 0))
		count(NP_NO_CLONE);
	else
		count(cnp->ce ? NP_DECREASE : cnp->ue ? NP_HOLD : NP_INCREASE);
	skb->mark = mark;
}

/* has_data: a whole packet (the kernel drops truncated ones) with something for the application. */
static __always_inline bool has_data(const struct __sk_buff *skb, const struct packet *p)
{
	const struct tcphdr *tcp = p->l4;
	u32 len = bpf_ntohs(p->ip->tot_len);

	return len > sizeof(struct iphdr) + tcp->doff * 4 && sizeof(struct ethhdr) + len <= skb->len;
}

/* arrival_ns: when the packet arrived, ideally. */
static __always_inline u64 arrival_ns(const struct __sk_buff *skb)
{
	return ideal_time && carried(skb) ? (u64)skb->cb[CARRY_HIGH] << 32 | skb->cb[CARRY_LOW] : now_ns();
}

/* np_takes: data of a TCP flow, which p is then parsed as. */
static __always_inline bool np_takes(struct __sk_buff *skb, struct packet *p)
{
	return !other_vlan(skb) && packet_parse(skb, p, sizeof(struct tcphdr)) && p->ip->protocol == IPPROTO_TCP &&
	       has_data(skb, p);
}

/* np_flow_key: of the flow that the packet is of. */
static __always_inline void np_flow_key(const struct packet *p, struct flow_key *k)
{
	const struct tcphdr *tcp = p->l4;

	flow_key_ipv4(k, p->ip->saddr, p->ip->daddr, tcp->source, tcp->dest, IPPROTO_TCP);
}

SEC("tc")
int np_egress(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct cnp_frame *f;

	if (skb->mark != MARK_CNP)
		return TCX_NEXT;
	f = bpf_map_lookup_elem(&np_pending, &zero);
	if (!f || !cut(skb, CNP_FRAME_LEN) || bpf_skb_store_bytes(skb, 0, f, CNP_FRAME_LEN, 0))
		return TCX_DROP;
	skb->mark = 0;
	return TCX_NEXT;
}

#endif
