// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * np_host: PCN's notification point (Fig. 8) for real hosts. As np.bpf.c, and also over IPv6, in VLANs and for flows
 * of UDP whose port is watched; CNPs go back in the flow's family and VLAN, signed if there is a key.
 *
 * A flow's entry goes when the flow ends (FIN, RST) or is silent for idle_ns, or when the table is full and it is the
 * least recently used.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/host_cnp.h"
#include "include/port.h"
#include "algo/pcn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define TCP_FIN 1
#define TCP_RST 4

#define CLOCK_MONOTONIC 1

/* Set by the loader. */
const volatile struct pcn_np_params np_params = {.t_ns = 50000, .congested_permille = 950};
const volatile u64 idle_ns = 10000000000ULL; /* a flow without a packet for so long has ended */

/* udp_ports: whose flows are watched, as source or destination; network byte order, 0: none. */
#define UDP_PORTS 8
const volatile u16 udp_ports[UDP_PORTS] = {};

struct np_flow {
	struct pcn_np np;
	u32 id;	     /* tells it from an earlier flow of the same key */
	u32 tracked; /* it is in np_live */
};

/* Flows seen at this receiver; the least recently used goes when it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct np_flow);
} np_flows SEC(".maps");

enum np_count {
	NP_DECREASE, /* CNPs sent */
	NP_INCREASE,
	NP_NO_FLOW,    /* the flow table refused an entry */
	NP_NO_CLONE,   /* a CNP could not be sent */
	NP_EXTENSIONS, /* IPv6 packets that were not looked into */
	NP_ENDED,      /* flows that ended with FIN or RST */
	NP_IDLE,       /* and that fell silent */
	NP_UNTRACKED,  /* windows of flows that can't be tracked: the table is full, or nothing holds the maps */
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

/* The CNP between the programs at ingress and egress, which run in one softirq on one CPU. */
struct pending {
	struct ethhdr eth;
	union {
		struct cnp_ipv4 ipv4;
		struct cnp_ipv6 ipv6;
	};
	u8 pad[2];
	u32 ready; /* the packet at egress with MARK_CNP is ours */
	u32 v6;
	u32 headers_len; /* of the data packet's IP and TCP, see cut */
	u32 tags;	 /* of the data packet, if not all are in the skb: outermost first */
	struct vlan_hdr tag[1 + MAX_TAGS];
} __attribute__((packed, aligned(8)));

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct pending);
} np_pending SEC(".maps");

/*
 * Silent flows are removed by one timer, which looks at a few flows at a time: those in np_live, the one not looked at
 * for longest first. A timer for each flow would need memory at times when the kernel has none to give.
 */
struct live {
	struct flow_key key;
	u32 id;
	u64 due_ns; /* when to look at it */
};

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 131072); /* twice the flows: those that ended otherwise stay until they are looked at */
	__type(value, struct live);
} np_live SEC(".maps");

struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

struct sweeper {
	struct bpf_timer timer;
	u32 next_id;
	u32 runs;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sweeper);
} np_sweeper SEC(".maps");

#define SWEEP_FLOWS    64      /* at a time */
#define SWEEP_PAUSE_NS 1000000 /* and no sooner again */

/*
 * sweep_one: look at the flow that has waited for longest, even before it is due if there is no room. Returns how long
 * there is nothing to do.
 */
static __always_inline u64 sweep_one(u64 t_ns, bool early)
{
	struct np_flow *flow;
	struct live l;

	if (bpf_map_peek_elem(&np_live, &l))
		return ~0ULL;
	if (!early && (s64)(l.due_ns - t_ns) > 0)
		return l.due_ns - t_ns;
	if (bpf_map_pop_elem(&np_live, &l))
		return ~0ULL;
	flow = bpf_map_lookup_elem(&np_flows, &l.key);
	if (!flow || flow->id != l.id)
		return 0; /* it ended otherwise */
	if ((s64)(t_ns - flow->np.last_ns) >= (s64)idle_ns) {
		count(NP_IDLE);
		bpf_map_delete_elem(&np_flows, &l.key);
		return 0;
	}
	l.due_ns = early ? t_ns + idle_ns : flow->np.last_ns + idle_ns; /* the queue is in this order, about */
	if (bpf_map_push_elem(&np_live, &l, 0))
		flow->tracked = 0; /* its next window tries again */
	return 0;
}

static int sweep(void *map, u32 *key, struct sweeper *s)
{
	u64 wait_ns = 0, t_ns = now_ns();

	for (u32 i = 0; i < SWEEP_FLOWS && !wait_ns; i++)
		wait_ns = sweep_one(t_ns, false);
	if (wait_ns == ~0ULL) {
		struct live l;

		s->runs = 0; /* track starts it again */
		if (bpf_map_peek_elem(&np_live, &l) || __sync_lock_test_and_set(&s->runs, 1))
			return 0;
	}
	if (wait_ns < SWEEP_PAUSE_NS || wait_ns == ~0ULL)
		wait_ns = SWEEP_PAUSE_NS;
	bpf_timer_start(&s->timer, to_kernel_ns(wait_ns), 0);
	return 0;
}

/* start: the sweeper, if it does not run. */
static __always_inline bool start(struct sweeper *s)
{
	if (s->runs || __sync_lock_test_and_set(&s->runs, 1))
		return true;
	bpf_timer_init(&s->timer, &np_sweeper, CLOCK_MONOTONIC); /* fails but the first time */
	if (!bpf_timer_set_callback(&s->timer, sweep) && !bpf_timer_start(&s->timer, to_kernel_ns(idle_ns), 0))
		return true;
	s->runs = 0;
	return false;
}

#define MAKE_ROOM 16 /* flows to look at; about half of them are gone */

/* push: into np_live, with room made for it. */
static __always_inline bool push(const struct live *l, u64 t_ns)
{
	if (!bpf_map_push_elem(&np_live, l, 0))
		return true;
	for (u32 i = 0; i < MAKE_ROOM; i++)
		sweep_one(t_ns, true);
	return !bpf_map_push_elem(&np_live, l, 0);
}

/* track: have the flow removed when it is silent. Called once a window, for what may have failed. */
static __noinline void track(const struct flow_key *key, struct np_flow *flow)
{
	struct live l = {.key = *key};
	u32 zero = 0;
	struct sweeper *s = bpf_map_lookup_elem(&np_sweeper, &zero);
	u64 t_ns = now_ns();

	if (!s)
		return;
	if (!flow->tracked) {
		if (!flow->id)
			flow->id = __sync_fetch_and_add(&s->next_id, 1) + 1 ?: 1;
		l.id = flow->id;
		l.due_ns = t_ns + idle_ns;
		flow->tracked = push(&l, t_ns);
	}
	if (!start(s) || !flow->tracked)
		count(NP_UNTRACKED);
}

static __always_inline struct np_flow *flow_of(const struct flow_key *key)
{
	struct np_flow fresh = {}, *flow;

	flow = bpf_map_lookup_elem(&np_flows, key);
	if (flow)
		return flow;
	bpf_map_update_elem(&np_flows, key, &fresh, BPF_NOEXIST);
	flow = bpf_map_lookup_elem(&np_flows, key);
	if (flow)
		track(key, flow);
	return flow;
}

/* sign: with the current key, if there is one. */
static __always_inline void sign(struct pending *p, struct cnp_body *body, u64 t_ns, bool ce)
{
	for (u32 i = 0; i < KEYS; i++) {
		u32 index = i;
		struct cnp_key *k = bpf_map_lookup_elem(&cnp_keys, &index);
		struct cnp_tag *tag = (void *)body->pcn.tag;

		if (!k || k->state != KEY_SIGNS)
			continue;
		tag->stamp = bpf_htonl(index << STAMP_BITS | stamp_now(t_ns));
		tag->mac = p->v6 ? mac_ipv6(&k->key, &p->ipv6, tag->stamp, ce)
				 : mac_ipv4(&k->key, &p->ipv4, tag->stamp, ce);
		return;
	}
}

/* fill: everything behind the IP header but the tag and the ICRC. */
static __always_inline void fill(struct cnp_body *b, const struct flow_key *key, u32 rec_rate)
{
	*b = (struct cnp_body){
		.udp =
			{
				.source = cnp_udp_source(key->sport, key->dport),
				.dest = bpf_htons(ROCE_PORT),
				.len = bpf_htons(CNP_UDP_LEN),
			},
		.bth =
			{
				.opcode = CNP_OPCODE,
				.pkey = CNP_PKEY,
				.becn = CNP_BECN,
				.psn = key->protocol == IPPROTO_UDP ? bpf_htonl(CNP_PSN_UDP) : 0,
			},
		.pcn =
			{
				.rec_rate = bpf_htonl(rec_rate),
				.flow_sport = key->sport,
				.flow_dport = key->dport,
			},
	};
}

static __always_inline void build_ipv4(struct pending *p, const struct flow_key *key, const struct pcn_np_cnp *cnp,
				       u64 t_ns)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = CNP_DSCP << 2 | (cnp->ce ? ECN_CE : 0),
		.tot_len = bpf_htons(sizeof(struct cnp_ipv4)),
		.frag_off = bpf_htons(CNP_FRAG_OFF),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = key->daddr[3],
		.daddr = key->saddr[3],
	};

	ip.check = ip_checksum(&ip);
	p->eth.h_proto = bpf_htons(ETH_P_IP);
	p->ipv4.ip = ip;
	fill(&p->ipv4.body, key, cnp->rec_rate);
	sign(p, &p->ipv4.body, t_ns, cnp->ce);
	p->ipv4.body.icrc = icrc_ipv4(&p->ipv4, crc_ipv4(&p->ipv4));
}

static __always_inline void build_ipv6(struct pending *p, const struct flow_key *key, const struct pcn_np_cnp *cnp,
				       u64 t_ns)
{
	u8 class = CNP_DSCP << 2 | (cnp->ce ? ECN_CE : 0);

	p->eth.h_proto = bpf_htons(ETH_P_IPV6);
	p->ipv6.ip = (struct ipv6hdr){
		.version_class = 6 << 4 | class >> 4,
		.class_label = class << 4,
		.payload_len = bpf_htons(sizeof(struct cnp_body)),
		.nexthdr = IPPROTO_UDP,
		.hop_limit = 64,
	};
	__builtin_memcpy(p->ipv6.ip.saddr, key->daddr, sizeof(key->daddr));
	__builtin_memcpy(p->ipv6.ip.daddr, key->saddr, sizeof(key->saddr));
	fill(&p->ipv6.body, key, cnp->rec_rate);
	sign(p, &p->ipv6.body, t_ns, cnp->ce);
	p->ipv6.body.icrc = icrc_ipv6(&p->ipv6, crc_ipv6(&p->ipv6));
}

/* keep_tags: those that are in the frame can't stay there, see np_egress. */
static __always_inline bool keep_tags(const struct __sk_buff *skb, const struct network *n, struct pending *p)
{
	u32 in_frame = (n->off - sizeof(struct ethhdr)) / sizeof(struct vlan_hdr);

	p->tags = 0;
	if (!in_frame)
		return true; /* the clone has the skb's */
	if (skb->vlan_present) {
		p->tag[0].tci = skb->vlan_tci;
		p->tag[0].proto = skb->vlan_proto;
		p->tags = 1;
	}
#pragma clang loop unroll(full)
	for (u32 i = 0; i < MAX_TAGS; i++) {
		struct vlan_hdr h;
		__be16 proto;
		u32 to = p->tags;

		if (i >= in_frame)
			break;
		/* from the EtherType before it */
		if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr) - 2 + i * sizeof(h), &proto, sizeof(proto)) ||
		    bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + i * sizeof(h), &h, sizeof(h)) || to > MAX_TAGS)
			return false;
		p->tag[to].tci = bpf_ntohs(h.tci);
		p->tag[to].proto = proto;
		p->tags = to + 1;
	}
	return true;
}

static __always_inline void notify(struct __sk_buff *skb, const struct network *n, const struct transport *t,
				   const struct pcn_np_cnp *cnp, u64 t_ns)
{
	u32 zero = 0, mark = skb->mark;
	struct pending *p = bpf_map_lookup_elem(&np_pending, &zero);
	struct ethhdr eth;
	long failed;

	if (!p || bpf_skb_load_bytes(skb, 0, &eth, sizeof(eth)) || !keep_tags(skb, n, p)) {
		count(NP_NO_CLONE);
		return;
	}
	__builtin_memcpy(p->eth.h_dest, eth.h_source, ETH_ALEN);
	__builtin_memcpy(p->eth.h_source, eth.h_dest, ETH_ALEN);
	p->v6 = n->v6;
	p->headers_len = t->off - n->off + sizeof(struct tcphdr);
	if (n->v6)
		build_ipv6(p, &t->key, cnp, t_ns);
	else
		build_ipv4(p, &t->key, cnp, t_ns);
	p->ready = 1;
	skb->mark = MARK_CNP;
	failed = bpf_clone_redirect(skb, skb->ifindex, 0);
	skb->mark = mark;
	p->ready = 0;
	count(failed ? NP_NO_CLONE : cnp->ce ? NP_DECREASE : NP_INCREASE);
}

/* watched: UDP of one of the ports, and not a CNP. Port 0 is no flow's: a CNP with it would be somebody else's. */
static __always_inline bool watched(const struct __sk_buff *skb, const struct transport *t)
{
	u8 opcode = 0;

	if (!t->key.sport)
		return false;
	if (t->key.dport == bpf_htons(ROCE_PORT) &&
	    (bpf_skb_load_bytes(skb, t->off + sizeof(struct udphdr), &opcode, 1) || opcode == CNP_OPCODE))
		return false;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < UDP_PORTS; i++) {
		u16 port = udp_ports[i];

		if (port && (port == t->key.dport || port == t->key.sport))
			return true;
	}
	return false;
}

SEC("tc")
int np_ingress(struct __sk_buff *skb)
{
	struct transport t;
	struct network n;
	struct np_flow *flow;
	struct pcn_np_cnp cnp;
	u64 t_ns;
	bool ends;
	int verdict;

	reach(skb, sizeof(struct ethhdr) + MAX_TAGS * sizeof(struct vlan_hdr) + sizeof(struct ipv6hdr));
	if (!network_parse(skb, &n))
		return TCX_NEXT;
	verdict = transport_parse(skb, &n, &t);
	if (verdict == TRANSPORT_EXTENSIONS)
		count(NP_EXTENSIONS);
	if (verdict != TRANSPORT_OK)
		return TCX_NEXT;
	if (t.key.protocol == IPPROTO_UDP && !watched(skb, &t))
		return TCX_NEXT;
	ends = t.flags & (TCP_FIN | TCP_RST);
	if (ends) {
		if (!bpf_map_delete_elem(&np_flows, &t.key))
			count(NP_ENDED);
		return TCX_NEXT;
	}
	if (!t.payload_len)
		return TCX_NEXT;
	flow = flow_of(&t.key);
	if (!flow) {
		count(NP_NO_FLOW);
		return TCX_NEXT;
	}
	t_ns = now_ns();
	cnp = pcn_np_packet(&flow->np, loaded(np_params), t_ns, skb->len, (t.tos & ECN_MASK) == ECN_CE);
	if (!cnp.send)
		return TCX_NEXT;
	track(&t.key, flow);
	notify(skb, &n, &t, &cnp, t_ns);
	return TCX_NEXT;
}

/*
 * cut: makes the clone the CNP's length. See cut.h: it is left longer by the data packet's headers first, which are
 * then pulled out, and with them the place of a checksum that was still to do.
 */
static __always_inline bool cut(struct __sk_buff *skb, u32 len, u32 headers_len)
{
	return !bpf_skb_change_tail(skb, len + headers_len, 0) &&
	       !bpf_skb_adjust_room(skb, -(s32)headers_len, 1 /* BPF_ADJ_ROOM_MAC */, 0);
}

SEC("tc")
int np_egress(struct __sk_buff *skb)
{
	u32 zero = 0, len, headers_len, tags;
	struct pending *p;

	if (skb->mark != MARK_CNP)
		return TCX_NEXT;
	p = bpf_map_lookup_elem(&np_pending, &zero);
	if (!p || !p->ready)
		return TCX_NEXT;
	p->ready = 0;
	headers_len = p->headers_len;
	tags = p->tags;
	/* adjust_room wants IP behind the Ethernet header: all tags off, and back on at the end */
#pragma clang loop unroll(full)
	for (u32 i = 0; i < 1 + MAX_TAGS; i++)
		if (i < tags && bpf_skb_vlan_pop(skb))
			return TCX_DROP;
	len = sizeof(struct ethhdr) + (p->v6 ? sizeof(struct cnp_ipv6) : sizeof(struct cnp_ipv4));
	if (headers_len > MAX_HEADERS_LEN + sizeof(struct tcphdr) || !cut(skb, len, headers_len))
		return TCX_DROP;
	if (p->v6 ? bpf_skb_store_bytes(skb, 0, p, sizeof(struct ethhdr) + sizeof(struct cnp_ipv6), 0)
		  : bpf_skb_store_bytes(skb, 0, p, sizeof(struct ethhdr) + sizeof(struct cnp_ipv4), 0))
		return TCX_DROP;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < 1 + MAX_TAGS; i++) {
		u32 from = MAX_TAGS - i; /* the innermost first */

		if (from < tags && bpf_skb_vlan_push(skb, p->tag[from].proto, p->tag[from].tci))
			return TCX_DROP;
	}
	skb->mark = 0;
	return TCX_NEXT;
}
