// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp_host: PCN's reaction point for real hosts. As rp.bpf.c, and also over IPv6 and in VLANs; and it trusts nobody:
 * see docs/security.md. A CNP is checked for, in this order,
 *
 *	its form; a live flow with this peer; the interface and the source's prefix; its ICRC, or with keys its tag and
 *	the tag's age; that it is no repetition; the flow's rate limit
 *
 * and the first that fails is counted.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/host_cnp.h"
#include "include/obey.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/pcn.bpf.c. Set by the loader, as all below. */
const volatile struct pcn_rp_params params = {};

const volatile u64 floor_bps = 0; /* no CNP brings a flow below it; 0: the control's own floor */
const volatile bool require_tag = false;
const volatile u32 window_stamps = 0;	/* a tag's stamp differs from the clock here by so much at most */
const volatile u64 cnp_interval_ns = 0; /* between two CNPs of a flow, in the long run; 0: any */
const volatile u64 cnp_burst_ns = 0;	/* and how far a burst may run ahead of it */

FLOW_TABLE(struct pcn_flow);

enum rp_count {
	RP_DECREASE, /* CNPs obeyed */
	RP_INCREASE,
	RP_UDP,	      /* of flows of UDP: for the application, they go on to the stack */
	RP_MALFORMED, /* ours by its header, but not in its length or fixed fields */
	RP_NO_FLOW,   /* no live flow of this host with that peer */
	RP_INTERFACE, /* on one where none are expected */
	RP_PREFIX,    /* from an address where none are expected */
	RP_BAD_ICRC,
	RP_UNSIGNED,
	RP_NO_KEY,  /* signed with a key that this host does not have */
	RP_BAD_TAG, /* not signed with the key that it says */
	RP_STALE,   /* signed too long ago, or in the future */
	RP_REPLAY,  /* signed no later than one that was obeyed */
	RP_RATE,    /* more than the flow's limit */
	RP_COUNTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RP_COUNTS);
	__type(key, u32);
	__type(value, u64);
} rp_counts SEC(".maps");

/* Where CNPs are expected from, written from user space while the program runs. */
struct source {
	u32 prefix_bits; /* of what follows */
	u32 ifindex;
	u32 addr[4]; /* network byte order; IPv4 as ::ffff:a.b.c.d */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct source);
	__type(value, u32); /* not looked at */
} rp_sources SEC(".maps");

/* How often rp_sources was changed: flows remember that their peer is in it. */
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

static __always_inline void count(u32 what)
{
	u64 *n = bpf_map_lookup_elem(&rp_counts, &what);

	if (n)
		(*n)++;
}

/* A CNP. v6 is a constant wherever this is used: the verifier is to know what header is. */
struct heard {
	const void *header; /* struct cnp_ipv6 or struct cnp_ipv4 */
	const struct cnp_body *body;
	bool v6, ce;
};

/* body_well_formed: every field in which the sender has no choice, as hear.h has it. */
static __always_inline bool body_well_formed(const struct cnp_body *b)
{
	const u8 *qp = b->bth.dest_qp;

	return b->udp.source == cnp_udp_source(b->pcn.flow_sport, b->pcn.flow_dport) &&
	       b->udp.len == bpf_htons(CNP_UDP_LEN) && !b->udp.check && !b->bth.flags && b->bth.pkey == CNP_PKEY &&
	       b->bth.becn == CNP_BECN && !(qp[0] | qp[1] | qp[2]) &&
	       (!b->bth.psn || b->bth.psn == bpf_htonl(CNP_PSN_UDP));
}

static __always_inline bool verdict_well_formed(u8 tos)
{
	return !(tos & ECN_MASK) || (tos & ECN_MASK) == ECN_CE;
}

static __always_inline bool ipv4_well_formed(const struct iphdr *ip)
{
	return verdict_well_formed(ip->tos) && ip->tot_len == bpf_htons(sizeof(struct cnp_ipv4)) && !ip->id &&
	       ip->frag_off == bpf_htons(CNP_FRAG_OFF) && !ip_checksum(ip);
}

/* Not the flow label either: routers may change it. */
static __always_inline bool ipv6_well_formed(const struct ipv6hdr *ip)
{
	return verdict_well_formed(ipv6_class(ip)) && ip->payload_len == bpf_htons(sizeof(struct cnp_body));
}

/* source_allowed: counts if not. What the flow remembers is written without its lock: the same by all. */
static __always_inline bool source_allowed(const struct __sk_buff *skb, const struct flow_key *key, struct cnp_guard *g)
{
	u32 ifindex = skb->ifindex, zero = 0;
	u32 *rules = bpf_map_lookup_elem(&rp_rules, &zero);
	struct source from = {
		.prefix_bits = 8 * (sizeof(from.ifindex) + sizeof(from.addr)),
		.ifindex = ifindex,
	};

	if (!rules)
		return false;
	if (g->ifindex == ifindex && g->rules == *rules)
		return true;
	__builtin_memcpy(from.addr, key->daddr, sizeof(from.addr));
	g->ifindex = 0;
	g->rules = *rules; /* before it is looked for: a change meanwhile makes this one old */
	if (bpf_map_lookup_elem(&rp_sources, &from)) {
		g->ifindex = ifindex;
		return true;
	}
	count(bpf_map_lookup_elem(&rp_interfaces, &ifindex) ? RP_PREFIX : RP_INTERFACE);
	return false;
}

/* icrc_good: by what the flow remembers, written without its lock too. */
static __always_inline bool icrc_good(const struct heard *h, struct cnp_guard *g)
{
	u32 crc = g->crc;

	if (!g->crc_known) {
		crc = h->v6 ? crc_ipv6(h->header) : crc_ipv4(h->header);
		g->crc = crc;
		asm volatile("" ::: "memory");
		g->crc_known = 1;
	}
	return (h->v6 ? icrc_ipv6(h->header, crc) : icrc_ipv4(h->header, crc)) == h->body->icrc;
}

/* tag_good: the tag's signature and age. Counts if not. */
static __always_inline bool tag_good(const struct heard *h, u64 t_ns)
{
	const struct cnp_tag *tag = (const void *)h->body->pcn.tag;
	u32 word = bpf_ntohl(tag->stamp), index = TAG_KEY(word);
	struct cnp_key *k;
	__be32 mac;
	s32 age;

	if (!tag->stamp && !tag->mac) {
		count(RP_UNSIGNED);
		return false;
	}
	k = bpf_map_lookup_elem(&cnp_keys, &index);
	if (!k || k->state == KEY_NONE) {
		count(RP_NO_KEY);
		return false;
	}
	mac = h->v6 ? mac_ipv6(&k->key, h->header, tag->stamp, h->ce) : mac_ipv4(&k->key, h->header, tag->stamp, h->ce);
	if (mac != tag->mac) {
		count(RP_BAD_TAG);
		return false;
	}
	age = stamp_after(stamp_now(t_ns), TAG_STAMP(word));
	if (age > (s32)window_stamps || -age > (s32)window_stamps) {
		count(RP_STALE);
		return false;
	}
	return true;
}

/* guard: whether the flow takes a CNP now, under its lock. */
static __always_inline u32 guard(struct cnp_guard *g, u32 stamp, u64 t_ns)
{
	if (require_tag) {
		if (g->stamped && stamp_after(stamp, g->stamp) <= 0)
			return RP_REPLAY;
		g->stamp = stamp;
		g->stamped = 1;
	}
	if (cnp_interval_ns) { /* a token bucket, by when the next CNP is due */
		u64 due_ns = g->due_ns > t_ns ? g->due_ns : t_ns;

		if (due_ns - t_ns > cnp_burst_ns)
			return RP_RATE;
		g->due_ns = due_ns + cnp_interval_ns;
	}
	return RP_COUNTS; /* it does */
}

/* react: to a well-formed CNP. */
static __always_inline void react(const struct __sk_buff *skb, const struct heard *h, const struct flow_key *key)
{
	u64 rec_rate_bps = (u64)bpf_ntohl(h->body->pcn.rec_rate) * PCN_RATE_UNIT_BPS, t_ns;
	u32 stamp = TAG_STAMP(bpf_ntohl(((const struct cnp_tag *)h->body->pcn.tag)->stamp)), refused;
	struct pcn_rp_params p = *(const struct pcn_rp_params *)loaded(params);
	struct pcn_flow *flow;

	if (p.min_rate_bps < floor_bps)
		p.min_rate_bps = floor_bps;
	flow = bpf_map_lookup_elem(&flows, key);
	if (!flow) {
		count(RP_NO_FLOW);
		return;
	}
	if (!source_allowed(skb, key, &flow->guard))
		return;
	t_ns = require_tag || cnp_interval_ns ? now_ns() : 0;
	if (require_tag) {
		if (!tag_good(h, t_ns))
			return;
	} else if (!icrc_good(h, &flow->guard)) {
		count(RP_BAD_ICRC);
		return;
	}
	bpf_spin_lock(&flow->lock);
	refused = guard(&flow->guard, stamp, t_ns);
	if (refused == RP_COUNTS)
		pcn_flow_cnp(flow, &p, h->ce, rec_rate_bps);
	bpf_spin_unlock(&flow->lock);
	count(refused != RP_COUNTS ? refused : h->ce ? RP_DECREASE : RP_INCREASE);
}

/* cnp_flow_key: of the flow whose receiver sent the CNP. */
static __always_inline void cnp_flow_key(const struct heard *h, struct flow_key *k)
{
	const struct cnp_ipv4 *ipv4 = h->header;
	const struct cnp_ipv6 *ipv6 = h->header;

	flow_key_ipv4(k, 0, 0, h->body->pcn.flow_sport, h->body->pcn.flow_dport, IPPROTO_TCP);
	if (h->v6) {
		__builtin_memcpy(k->saddr, ipv6->ip.daddr, sizeof(k->saddr));
		__builtin_memcpy(k->daddr, ipv6->ip.saddr, sizeof(k->daddr));
	} else {
		k->saddr[3] = ipv4->ip.daddr;
		k->daddr[3] = ipv4->ip.saddr;
	}
}

static __always_inline bool well_formed(const struct heard *h, u32 len)
{
	if (!body_well_formed(h->body))
		return false;
	return h->v6 ? len == sizeof(struct cnp_ipv6) && ipv6_well_formed(h->header)
		     : len == sizeof(struct cnp_ipv4) && ipv4_well_formed(h->header);
}

/* hear: the packet, if it is a CNP. */
static __always_inline int hear(const struct __sk_buff *skb, const struct network *n, bool v6)
{
	const struct iphdr *ipv4 = n->header;
	const struct ipv6hdr *ipv6 = n->header;
	const void *end = (void *)(long)skb->data_end;
	struct heard h = {.header = n->header, .v6 = v6};
	struct flow_key key;

	h.body = v6 ? (const void *)(ipv6 + 1) : (const void *)(ipv4 + 1);
	if ((const void *)&h.body->pcn > end)
		return TCX_NEXT;
	if (v6 ? ipv6->nexthdr != IPPROTO_UDP
	       : ipv4->protocol != IPPROTO_UDP || ipv4->ihl != 5 || ipv4->frag_off & bpf_htons(FRAGMENT))
		return TCX_NEXT;
	if (h.body->udp.dest != bpf_htons(ROCE_PORT) || h.body->bth.opcode != CNP_OPCODE)
		return TCX_NEXT;
	if ((const void *)(h.body + 1) > end) {
		count(RP_MALFORMED);
		return TCX_DROP;
	}
	if (!h.body->pcn.flow_sport)
		return TCX_NEXT; /* somebody else's RoCE: their reserved bytes are zero */
	if (!well_formed(&h, skb->len - n->off)) {
		count(RP_MALFORMED);
		return TCX_DROP;
	}
	if (h.body->bth.psn) {
		count(RP_UDP);
		return TCX_NEXT;
	}
	h.ce = ((v6 ? ipv6_class(ipv6) : ipv4->tos) & ECN_MASK) == ECN_CE;
	cnp_flow_key(&h, &key);
	react(skb, &h, &key);
	return TCX_DROP;
}

SEC("tc")
int rp_ingress(struct __sk_buff *skb)
{
	const u32 longest = sizeof(struct ethhdr) + MAX_TAGS * sizeof(struct vlan_hdr) + sizeof(struct cnp_ipv6);
	struct network n;

	if (skb->len <= longest)
		reach(skb, skb->len);
	if (!network_parse(skb, &n))
		return TCX_NEXT;
	return n.v6 ? hear(skb, &n, true) : hear(skb, &n, false);
}
