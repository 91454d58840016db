/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A reaction point (RP), at tcx ingress of a sender. It takes CNPs out of the stream, checks them,
 * and hands each to the congestion control of its flow. The file of a control includes this, behind
 * the definitions of
 *
 *	struct flow_entry	FLOW_HEAD, then the control's own state. It may be a macro:
 *				#define flow_entry pcn_flow
 *	flows			the table of them, by FLOW_TABLE(struct flow_entry)
 *	control_rate(flow)	the rate at which the flow is paced
 *	control_cnp(flow, event)
 *				a CNP for the flow arrived (cnp_event.h). Runs under the flow's
 *				lock, where no helper may be called
 *	CONTROL_CNP_IS_CE	optional; 1: every CNP that does not say UE means congestion, even
 *				without CE, as CNPs of RoCE do
 *	CONTROL_RATE_UNIT_BPS	optional; the unit of RecRate, if it is not 1 Mbit/s
 *
 * A real host trusts nobody: see docs/security.md. The checks of a CNP are, in this order,
 *
 *	its form
 *	a live flow with this peer
 *	on hosts, the interface and the prefix of the source
 *	its ICRC and that its sender saw the flow or, if tags are required, its tag and the age of
 *	the tag
 *	that it is not repeated
 *	the rate limit of the flow
 *
 * The first check that fails is counted (rp_counts.h).
 */
#ifndef PCN_REACT_H
#define PCN_REACT_H

#include "cnp_event.h"
#include "cnp_tag.h"
#include "point.h"
#include "rp_counts.h"
#include "sender.h"

#ifndef CONTROL_CNP_IS_CE
#define CONTROL_CNP_IS_CE 0
#endif

#ifndef CONTROL_RATE_UNIT_BPS
#define CONTROL_RATE_UNIT_BPS 1000000 /* Fig. 9 */
#endif

/* CNPs may say UE. Set by the loader, as all below. */
const volatile bool tcd = false;

/* Used on hosts only. */
const volatile u64 floor_bps = 0; /* no CNP sets a lower rate; 0: the control's own minimum */
const volatile bool require_tag = false;
const volatile u32 window_stamps = 0;	/* most that a tag's stamp may differ from the clock here */
const volatile u64 cnp_interval_ns = 0; /* mean time between two CNPs of a flow; 0: no limit */
const volatile u64 cnp_burst_ns = 0;	/* how far a burst may run ahead of it */

/* Where CNPs may come from on hosts. User space writes it while the program runs. */
struct rp_source {
	u32 prefix_bits; /* of what follows */
	u32 ifindex;
	u32 addr[4]; /* network byte order; IPv4 as ::ffff:a.b.c.d */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rp_source);
	__type(value, u32); /* not looked at */
} rp_sources SEC(".maps");

/* How often rp_sources changed. Flows remember for which version their peer was allowed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} rp_rules SEC(".maps");

/* The interfaces in rp_sources. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u32); /* not looked at */
} rp_interfaces SEC(".maps");

/* Where and when a CNP was sent. */
struct rp_order {
	u64 vlans;
	u32 ifindex;
	u32 number; /* the stamp of a signed CNP, and else the sequence number that it answers */
};

/*
 * A CNP in a packet. v6 is a constant wherever it is used, so the verifier knows the type of
 * header.
 */
struct received_cnp {
	const void *header; /* struct cnp_ipv6 or struct cnp_ipv4 */
	const struct cnp_body *body;
	u32 len;   /* of the packet, from header on */
	u64 vlans; /* as in struct cnp_guard */
	u8 tos;
	bool v6;
};

static __always_inline bool rp_well_formed(const struct received_cnp *h)
{
	if (!cnp_body_well_formed(h->body, h->tos, tcd, on_host))
		return false;
	return h->v6 ? cnp_ipv6_well_formed(h->header, h->len)
		     : cnp_ipv4_well_formed(h->header, h->len);
}

/* The flow whose receiver sent the CNP. */
static __always_inline void rp_flow_key(const struct __sk_buff *skb, const struct received_cnp *h,
					struct flow_key *k)
{
	const struct cnp_ipv4 *ipv4 = h->header;
	const struct cnp_ipv6 *ipv6 = h->header;

	flow_key_ipv4(k, 0, 0, h->body->pcn.flow_sport, h->body->pcn.flow_dport, IPPROTO_TCP);
	k->netns = packet_netns(skb);
	if (h->v6) {
		__builtin_memcpy(k->saddr, ipv6->ip.daddr, sizeof(k->saddr));
		__builtin_memcpy(k->daddr, ipv6->ip.saddr, sizeof(k->daddr));
	} else {
		k->saddr[3] = ipv4->ip.daddr;
		k->daddr[3] = ipv4->ip.saddr;
	}
}

/*
 * Counts CNPs from other sources. The flow remembers the result without its lock: every CPU writes
 * the same.
 */
static __always_inline bool rp_source_allowed(const struct __sk_buff *skb,
					      const struct flow_key *key, struct cnp_guard *g)
{
	u32 ifindex = skb->ifindex, zero = 0;
	u32 *rules = bpf_map_lookup_elem(&rp_rules, &zero);
	struct rp_source from = {
		.prefix_bits = 8 * (sizeof(from.ifindex) + sizeof(from.addr)),
		.ifindex = ifindex,
	};

	if (!rules)
		return false;
	if (g->ifindex == ifindex && g->rules == *rules)
		return true;
	__builtin_memcpy(from.addr, key->daddr, sizeof(from.addr));
	g->ifindex = 0;
	g->rules = *rules; /* before the lookup: a change in between makes this version old */
	if (bpf_map_lookup_elem(&rp_sources, &from)) {
		g->ifindex = ifindex;
		return true;
	}
	rp_counts_add(bpf_map_lookup_elem(&rp_interfaces, &ifindex) ? RP(prefix) : RP(interface));
	return false;
}

/*
 * Counts damaged CNPs. The register before RecRate is remembered, also without the flow's lock: it
 * is the same in all well-formed CNPs of the flow.
 */
static __always_inline bool rp_icrc_good(const struct received_cnp *h, struct cnp_guard *g)
{
	u32 known = g->crc_known, crc = g->crc;

	if (!known)
		crc = h->v6 ? crc_ipv6(h->header) : crc_ipv4(h->header);
	if ((h->v6 ? icrc_ipv6(h->header, crc) : icrc_ipv4(h->header, crc)) != h->body->icrc) {
		rp_counts_add(RP(bad_icrc));
		return false;
	}
	if (!known) {
		g->crc = crc;
		asm volatile("" ::: "memory"); /* crc_known is set last */
		g->crc_known = 1;
	}
	return true;
}

/* Bytes that one skb of segmentation offload holds, twice. */
#define RP_SIGHT_SLACK (128U << 10)

static __always_inline bool rp_near(u32 a, u32 b, u32 distance)
{
	return a - (b - distance) <= 2 * distance;
}

/*
 * Whether who sent the CNP has seen a packet of the flow: its sequence number is of what was in
 * flight lately, and its acknowledgment of what the peer may have sent. One who guesses is right
 * once in 2^28 times on a path with 128 KB in flight.
 */
static __always_inline bool rp_saw(const struct received_cnp *h, const struct cnp_guard *g)
{
	const struct cnp_sight *sight = (const void *)h->body->pcn.tag;

	return rp_near(bpf_ntohl(sight->seq), g->una, 2 * g->flight + RP_SIGHT_SLACK) &&
	       rp_near(bpf_ntohl(sight->ack), g->expected, g->window + RP_SIGHT_SLACK / 4);
}

/* Counts CNPs of who did not see the flow. Without a control on a host there is no telling. */
static __always_inline bool rp_sight_good(const struct received_cnp *h, const struct cnp_guard *g)
{
	if (!on_host || !g->sighted || rp_saw(h, g))
		return true;
	rp_counts_add(RP(unseen));
	return false;
}

/* No check failed. */
#define RP_NO_FAULT (~0U)

/* The counter of what is wrong with the tag, or RP_NO_FAULT. */
static __always_inline u32 rp_tag_fault(const struct received_cnp *h, bool ce, u64 t_ns)
{
	const struct cnp_tag *tag = (const void *)h->body->pcn.tag;
	u32 word = bpf_ntohl(tag->stamp), index = TAG_KEY(word);
	struct cnp_key *k;
	__be32 mac;
	s32 age;

	if (!tag->stamp && !tag->mac)
		return RP(unsigned_);
	k = bpf_map_lookup_elem(&cnp_keys, &index);
	if (!k || k->state == KEY_NONE)
		return RP(no_key);
	mac = h->v6 ? mac_ipv6(&k->key, h->header, tag->stamp, ce)
		    : mac_ipv4(&k->key, h->header, tag->stamp, ce);
	if (mac != tag->mac)
		return RP(bad_tag);
	age = stamp_after(stamp_of(t_ns), TAG_STAMP(word));
	if (age > (s32)window_stamps || -age > (s32)window_stamps)
		return RP(stale);
	return RP_NO_FAULT;
}

static __always_inline bool rp_tag_good(const struct received_cnp *h, const struct cnp_guard *g,
					bool ce, u64 t_ns)
{
	u32 fault = rp_tag_fault(h, ce, t_ns);

	if (fault == RP_NO_FAULT)
		return true;
	if (g->sighted && rp_saw(h, g))
		fault = RP(unsigned_); /* the peer's NP has no key */
	rp_counts_add(fault);
	return false;
}

/* The VLANs of a packet whose IP header was found: those in the skb and in the frame. */
static __always_inline u64 rp_vlans(const struct __sk_buff *skb, const struct network *n)
{
	u64 vlans = skb->vlan_present ? skb->vlan_tci & VLAN_MASK : 0;

	if (!on_host)
		return 0;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < MAX_TAGS; i++) {
		const struct vlan_hdr *tag =
			(void *)(long)skb->data + sizeof(struct ethhdr) + i * sizeof(*tag);

		if ((const void *)(tag + 1) > n->header ||
		    (const void *)(tag + 1) > (void *)(long)skb->data_end)
			break;
		vlans = vlans << VLAN_BITS | (bpf_ntohs(tag->tci) & VLAN_MASK);
	}
	return vlans;
}

/* A path that moved is believed when no CNP came by the old one for so many seconds. */
#define RP_PLACE_S     2
#define RP_SECOND_BITS 30 /* seconds of 2^30 ns */

/* Whether a CNP came in where those of its flow do not. */
static __always_inline bool rp_elsewhere(const struct cnp_guard *g, const struct rp_order *o,
					 u64 t_ns)
{
	return g->place && (g->place != o->ifindex || g->vlans != o->vlans) &&
	       (u32)(t_ns >> RP_SECOND_BITS) - g->place_s < RP_PLACE_S;
}

/*
 * Whether the CNP is repeated. NP's windows end at one packet of the flow after the other, but for
 * those that were lost and are sent again: then doubt means slower.
 */
static __always_inline bool rp_repeated(struct cnp_guard *g, const struct cnp_event *event,
					u32 number)
{
	u16 kind = require_tag ? CNP_STAMPS : CNP_BYTES;
	bool later = g->numbered != kind || (require_tag ? stamp_after(number, g->number) > 0
							 : (s32)(number - g->number) > 0);

	if (!require_tag && !g->sighted)
		return false;
	if (later) {
		g->number = number;
		g->numbered = kind;
	}
	return !later && (require_tag || !event->ce);
}

/* Takes a token of a bucket, which is when the next CNP is due. False: there is none. */
static __always_inline bool rp_token(u64 *due_ns, u64 t_ns)
{
	u64 due = *due_ns > t_ns ? *due_ns : t_ns;

	if (due - t_ns > cnp_burst_ns)
		return false;
	*due_ns = due + cnp_interval_ns;
	return true;
}

/* CNPs that slow down may hold back for so many intervals those that speed up. */
#define RP_MAX_RISE_DEBT 64

/*
 * A CNP that slows down takes two tokens of those that speed up. A receiver sends one CNP in T, two
 * intervals: while it says that there is congestion, nobody else can say that there is none.
 */
static __always_inline void rp_hold_rises(struct cnp_guard *g, u64 t_ns)
{
	u64 due = g->rise_ns > t_ns ? g->rise_ns : t_ns,
	    most = t_ns + cnp_burst_ns + RP_MAX_RISE_DEBT * cnp_interval_ns;

	due += 2 * cnp_interval_ns;
	g->rise_ns = due < most ? due : most;
}

/*
 * The counter of why the flow takes no CNP now, or RP_NO_FAULT. Under the flow's lock. CNPs that
 * slow down have tokens of their own, so that no flood of others crowds them out.
 */
static __always_inline u32 rp_guard(struct cnp_guard *g, const struct cnp_event *event,
				    const struct rp_order *o)
{
	u64 t_ns = event->now_ns;

	if (on_host && rp_elsewhere(g, o, t_ns))
		return RP(elsewhere);
	if (rp_repeated(g, event, o->number))
		return RP(replayed);
	if (on_host) {
		g->place = o->ifindex;
		g->vlans = o->vlans;
		g->place_s = t_ns >> RP_SECOND_BITS;
	}
	if (!cnp_interval_ns)
		return RP_NO_FAULT;
	if (!event->ce && !event->ue)
		return rp_token(&g->rise_ns, t_ns) ? RP_NO_FAULT : RP(rise_limited);
	if (!rp_token(&g->due_ns, t_ns))
		return RP(rate_limited);
	if (event->ce)
		rp_hold_rises(g, t_ns);
	return RP_NO_FAULT;
}

/*
 * Hands the CNP to the control, and keeps the flow's statistics. Returns the counter of what it
 * did. Under the flow's lock.
 */
static __always_inline u32 rp_apply(struct flow_entry *flow, const struct cnp_event *event)
{
	control_cnp(flow, event);
	if (!flow->sender.plain_window)
		flow->sender.send_rate_bps = control_rate(flow);
	if (event->ue) {
		flow->sender.cnp_hold++;
		return RP(cnp_hold);
	}
	if (!event->ce) {
		flow->sender.cnp_increase++;
		return RP(cnp_increase);
	}
	flow->sender.rec_rate_bps = event->rec_rate_bps;
	flow->sender.cnp_decrease++;
	return RP(cnp_decrease);
}

#ifdef __wasm__
/* The simulator's CNPs need no checks. */
SIMULATED("simulate_cnp") void simulate_cnp(u32 rec_rate, u32 ce, u32 ue)
{
	struct cnp_event event = {
		.now_ns = now_ns(),
		.rec_rate_bps = (u64)rec_rate * CONTROL_RATE_UNIT_BPS,
		.ce = ce || (CONTROL_CNP_IS_CE && !ue),
		.ue = ue,
	};

	rp_apply(simulated_flow(), &event);
}
#endif

/* One function for IPv4 and IPv6, so that the control's code is there once. */
static __noinline void rp_react(struct flow_entry *flow, const struct cnp_event *event,
				const struct rp_order *o, bool ce_lost)
{
	u32 counter;

	bpf_spin_lock(&flow->lock);
	counter = rp_guard(&flow->guard, event, o);
	if (counter == RP_NO_FAULT)
		counter = rp_apply(flow, event);
	bpf_spin_unlock(&flow->lock);
	if (counter == RP(cnp_decrease) && ce_lost)
		counter = RP(cnp_ce_lost);
	rp_counts_add(counter);
}

/*
 * The CNP names a rate, so it was sent with CE, and something on its way cleared the ECN field. It
 * counts as what it was: an increase would be the opposite of what the receiver said. The lab's
 * switches clear nothing.
 */
static __always_inline bool rp_ce_lost(const struct received_cnp *h, bool ce, bool ue)
{
	return on_host && !ce && !ue && h->body->pcn.rec_rate;
}

/* h is a well-formed CNP for a flow of TCP. */
static __always_inline void rp_handle(const struct __sk_buff *skb, const struct received_cnp *h)
{
	const struct cnp_tag *tag = (const void *)h->body->pcn.tag;
	bool ue = h->body->bth.becn & CNP_UE, marked = (h->tos & ECN_MASK) == ECN_CE,
	     ce_lost = rp_ce_lost(h, marked, ue), ce = marked || ce_lost;
	struct cnp_event event = {
		.rec_rate_bps = (u64)bpf_ntohl(h->body->pcn.rec_rate) * CONTROL_RATE_UNIT_BPS,
		.floor_bps = floor_bps,
		.ce = ce || (CONTROL_CNP_IS_CE && !ue),
		.ue = ue,
	};
	struct rp_order order = {.ifindex = skb->ifindex, .vlans = h->vlans};
	u32 word = bpf_ntohl(tag->stamp);
	struct flow_entry *flow;
	struct flow_key key;

	rp_flow_key(skb, h, &key);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		rp_counts_add(RP(no_flow));
		return;
	}
	if (on_host && !rp_source_allowed(skb, &key, &flow->guard))
		return;
	event.now_ns = arrival_ns(skb);
	if (require_tag ? !rp_tag_good(h, &flow->guard, ce, event.now_ns)
			: !rp_icrc_good(h, &flow->guard) || !rp_sight_good(h, &flow->guard))
		return;
	order.number = require_tag ? TAG_STAMP(word) : word;
	rp_react(flow, &event, &order, ce_lost);
}

/* Handles the packet if it is a CNP. */
static __always_inline int rp_parse(const struct __sk_buff *skb, const struct network *n, bool v6)
{
	const struct iphdr *ipv4 = n->header;
	const struct ipv6hdr *ipv6 = n->header;
	const void *end = (void *)(long)skb->data_end;
	struct received_cnp h = {.header = n->header, .len = skb->len - n->off, .v6 = v6};

	h.body = v6 ? (const void *)(ipv6 + 1) : (const void *)(ipv4 + 1);
	if ((const void *)&h.body->pcn > end)
		return TCX_NEXT;
	if (v6 ? ipv6->nexthdr != IPPROTO_UDP
	       : ipv4->protocol != IPPROTO_UDP || ipv4->ihl != 5 ||
			    ipv4->frag_off & bpf_htons(FRAGMENT))
		return TCX_NEXT;
	if (h.body->udp.dest != bpf_htons(ROCE_PORT) || h.body->bth.opcode != CNP_OPCODE)
		return TCX_NEXT;
	if ((const void *)(h.body + 1) > end) {
		rp_counts_add(RP(malformed));
		return TCX_DROP;
	}
	if (!h.body->pcn.flow_sport)
		return TCX_NEXT; /* another implementation's RoCE: its reserved bytes are zero */
	h.tos = v6 ? ipv6_class(ipv6) : ipv4->tos;
	h.vlans = rp_vlans(skb, n);
	if (!rp_well_formed(&h)) {
		rp_counts_add(RP(malformed));
		return TCX_DROP;
	}
	if (h.body->bth.psn) {
		rp_counts_add(RP(cnp_udp));
		return TCX_NEXT;
	}
	rp_handle(skb, &h);
	return TCX_DROP;
}

SEC("tc")
int rp_ingress(struct __sk_buff *skb)
{
	const u32 longest = sizeof(struct ethhdr) + MAX_TAGS * sizeof(struct vlan_hdr) +
			    sizeof(struct cnp_ipv6);
	struct network n;

	if (skb->len <= longest)
		pull_headers(skb, skb->len);
	if (!point_parse(skb, &n))
		return TCX_NEXT;
	return n.v6 ? rp_parse(skb, &n, true) : rp_parse(skb, &n, false);
}

#endif
