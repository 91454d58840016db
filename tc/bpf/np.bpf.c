// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * np: PCN's notification point (Fig. 8), at the receiver.
 *
 * np_ingress counts each TCP flow's packets and marks. The first packet after T closes the window; the program
 * then builds the CNP and sends a clone of that packet to its own egress, where np_egress cuts the clone down
 * to the CNP. Cloning is how a tc program sends a packet of its own.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/clock.h"
#include "include/cnp.h"
#include "include/flow.h"
#include "include/packet.h"
#include "algo/pcn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define BPF_ADJ_ROOM_MAC 1 /* linux/bpf.h: right behind the Ethernet header */

/* Set by the loader. */
const volatile struct pcn_np_params np_params = {.t_ns = 50000, .congested_permille = 950};
/* t_jitter_ns: each window's T is drawn from np_params.t_ns +- this; less than T. */
const volatile u64 t_jitter_ns = 0;
/* ideal_time: packets carry their ideal arrival (the lab); otherwise the clock tells it. */
const volatile bool ideal_time = false;

/* Flows seen at this receiver; the least recently used goes when it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct pcn_np);
} np_flows SEC(".maps");

/* The CNP between np_ingress and np_egress, which run in one softirq on one CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cnp_frame);
} np_pending SEC(".maps");

enum np_count {
	NP_DECREASE, /* CNPs sent */
	NP_INCREASE,
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
static __always_inline void build(struct cnp_frame *f, const struct packet *p, const struct pcn_np_cnp *cnp)
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
	f->bth = (struct bth){.opcode = CNP_OPCODE, .pkey = CNP_PKEY, .becn = CNP_BECN};
	f->pcn = (struct cnp_payload){
		.rec_rate_mbps = bpf_htonl(cnp->rec_rate_mbps),
		.flow_sport = tcp->source,
		.flow_dport = tcp->dest,
	};
	f->icrc = cnp_icrc(f);
}

static __always_inline void notify(struct __sk_buff *skb, const struct packet *p, const struct pcn_np_cnp *cnp)
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
		count(cnp->ce ? NP_DECREASE : NP_INCREASE);
	skb->mark = mark;
}

/* has_data: a whole packet (the kernel drops truncated ones) with something for the application. */
static __always_inline bool has_data(const struct __sk_buff *skb, const struct packet *p)
{
	const struct tcphdr *tcp = p->l4;
	u32 len = bpf_ntohs(p->ip->tot_len);

	return len > sizeof(struct iphdr) + tcp->doff * 4 && sizeof(struct ethhdr) + len <= skb->len;
}

static __always_inline struct pcn_np *flow_of(const struct packet *p)
{
	struct tcphdr *tcp = p->l4;
	struct pcn_np fresh = {}, *np;
	struct flow_key key;

	flow_key_ipv4(&key, p->ip->saddr, p->ip->daddr, tcp->source, tcp->dest, IPPROTO_TCP);
	np = bpf_map_lookup_elem(&np_flows, &key);
	if (np)
		return np;
	bpf_map_update_elem(&np_flows, &key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&np_flows, &key);
}

/*
 * jitter_ns: what this window's T differs by, the same for each of its packets. Windows of exactly T keep their
 * phase to each other and to the rate cycles they cause, and favour the same flow for milliseconds: the phase
 * effects of Floyd and Jacobson (1991). The paper does not speak of jitter.
 */
static __always_inline s64 jitter_ns(const struct pcn_np *np)
{
	u32 h = (u32)np->start_ns * 2654435761U; /* Knuth's multiplicative hash */

	return (s64)((u64)h * (2 * t_jitter_ns) >> 32) - (s64)t_jitter_ns;
}

SEC("tc")
int np_ingress(struct __sk_buff *skb)
{
	struct pcn_np_params params = {.t_ns = np_params.t_ns, .congested_permille = np_params.congested_permille};
	u64 t_ns = ideal_time && carried(skb) ? (u64)skb->cb[CARRY_HIGH] << 32 | skb->cb[CARRY_LOW] : now_ns();
	struct pcn_np_cnp cnp;
	struct pcn_np *np;
	struct packet p;

	if (other_vlan(skb) || !packet_parse(skb, &p, sizeof(struct tcphdr)) || p.ip->protocol != IPPROTO_TCP ||
	    !has_data(skb, &p))
		return TCX_NEXT;
	np = flow_of(&p);
	if (!np) {
		count(NP_NO_FLOW);
		return TCX_NEXT;
	}
	params.t_ns += jitter_ns(np);
	cnp = pcn_np_packet(np, &params, t_ns, skb->len, (p.ip->tos & ECN_MASK) == ECN_CE);
	if (cnp.send)
		notify(skb, &p, &cnp);
	return TCX_NEXT;
}

/*
 * cut: makes the clone as long as a CNP. It is left longer by the data packet's headers first, which are then
 * pulled out: the place of a checksum still to do (any segment that GRO merged has one) goes with them. Otherwise
 * the device would write TCP's checksum into the CNP.
 */
static __always_inline bool cut(struct __sk_buff *skb)
{
	const int headers = sizeof(struct iphdr) + sizeof(struct tcphdr);

	return !bpf_skb_change_tail(skb, CNP_FRAME_LEN + headers, 0) &&
	       !bpf_skb_adjust_room(skb, -headers, BPF_ADJ_ROOM_MAC, 0);
}

SEC("tc")
int np_egress(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct cnp_frame *f;

	if (skb->mark != MARK_CNP)
		return TCX_NEXT;
	f = bpf_map_lookup_elem(&np_pending, &zero);
	if (!f || !cut(skb) || bpf_skb_store_bytes(skb, 0, f, CNP_FRAME_LEN, 0))
		return TCX_DROP;
	skb->mark = 0;
	return TCX_NEXT;
}
