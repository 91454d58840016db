/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A notification point (NP), at a receiver: it looks at the data packets of each flow and answers
 * with CNPs. A notification point is one C file that includes this behind the definitions of
 *
 *	struct notify_state	state of a flow; all zero for a new one. It may be a macro:
 *				#define notify_state pcn_np
 *	params			a const volatile struct that the loader sets
 *	notify_wants(event)	false: the packet does not count and needs no flow entry
 *	notify_packet(state, params, event, cnp)
 *				a packet of the flow arrived. True: send a CNP that says what *cnp
 *				says, which is all zero before. state and params are pointers
 *	NOTIFY_MARKED		if notify_wants is false for all packets without a mark
 *
 * notify_event.h has the types of event and cnp.
 *
 * The program at ingress builds the CNP and sends a clone of the data packet to its own egress.
 * There np_egress cuts the clone down to the CNP. A tc program can send a packet of its own only by
 * cloning. Data packets pass unchanged. On hosts CNPs of local sockets do not pass.
 */
#ifndef PCN_NOTIFY_H
#define PCN_NOTIFY_H

#include "cnp_tag.h"
#include "counts.h"
#include "cut.h"
#include "notify_event.h"
#include "point.h"

#define TCP_RST		4 /* of tcphdr.flags */
#define CLOCK_MONOTONIC 1

/*
 * A flow ends with FIN, RST, or this long silence; then its entry is removed. 0: flows do not end,
 * and the full table forgets the least recently used one. Set by the loader.
 */
HOST_SETTING u64 idle_ns = 0;

/*
 * Flows of UDP from or to one of these ports are watched. Network byte order; the first 0 ends the
 * list. Set by the loader.
 */
#define UDP_PORTS 8
HOST_SETTING u16 udp_ports[UDP_PORTS] = {};

struct np_flow {
	struct notify_state state;
	u64 last_ns; /* arrival of the latest packet, if flows end */
	u32 id;	     /* differs from that of an earlier flow with the same key */
	u32 tracked; /* the flow is in np_live */
	u32 locked;  /* a CPU is at state; on hosts only */
	u32 pad;
};

/* Flows seen at this receiver; the least recently used goes when it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct np_flow);
} np_flows SEC(".maps");

struct np_counts {
	u64 cnp_decrease; /* CNPs sent that say CE */
	u64 cnp_increase; /* CNPs sent that say neither CE nor UE */
	u64 cnp_hold;	  /* CNPs sent that say UE */
	u64 no_flow;	  /* packets whose flow did not fit in the table */
	u64 no_clone;	  /* CNPs that could not be sent */
	u64 extensions;	  /* IPv6 packets with extension headers that were not looked into */
	u64 ended;	  /* flows that ended with FIN or RST */
	u64 idle;	  /* flows that fell silent */
	u64 no_timer;	  /* CNPs of flows that only a full table would remove */
	u64 busy;	  /* packets not counted: another CPU had the flow's state for too long */
	u64 forged;	  /* CNPs that sockets of this host sent, which were dropped */
};

COUNTS(np_counts)

#define NP(counter) COUNTER(np_counts, counter)

/* The CNP between ingress and egress, which run in one softirq on one CPU. */
struct np_pending {
	struct ethhdr eth;
	union {
		struct cnp_ipv4 ipv4;
		struct cnp_ipv6 ipv6;
	};
	u8 pad[2];
	u32 ready; /* the packet at egress with MARK_CNP is our clone */
	u32 v6;
	u32 headers_len; /* of the data packet's IP and transport headers, see cut_clone */
	u32 tags;	 /* of the data packet, if not all are in the skb: outermost first */
	struct vlan_hdr tag[1 + MAX_TAGS];
} __attribute__((packed, aligned(8)));

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct np_pending);
} np_pending SEC(".maps");

/*
 * One timer removes silent flows, a few at a time. It checks those in np_live, the longest
 * unchecked first. A timer for each flow would need memory when the kernel may have none to give.
 */
struct np_live {
	struct flow_key key;
	u32 id;
	u64 due_ns; /* when to check it */
};

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	/* twice the flows: those that ended by FIN or RST stay until they are checked */
	__uint(max_entries, 131072);
	__type(value, struct np_live);
} np_live SEC(".maps");

struct bpf_timer {
	u64 __opaque[2];
} __attribute__((aligned(8)));

struct np_sweeper {
	struct bpf_timer timer;
	u32 next_id;
	u32 runs;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct np_sweeper);
} np_sweeper SEC(".maps");

#define SWEEP_FLOWS    64      /* flows per run */
#define SWEEP_PAUSE_NS 1000000 /* least time between two runs */

/*
 * Checks the flow that has waited longest; early: even before it is due. Returns the time until
 * there is something to do; ~0: there are no flows.
 */
static __always_inline u64 sweep_one(u64 t_ns, bool early)
{
	struct np_flow *flow;
	struct np_live l;

	if (bpf_map_peek_elem(&np_live, &l))
		return ~0ULL;
	if (!early && (s64)(l.due_ns - t_ns) > 0)
		return l.due_ns - t_ns;
	if (bpf_map_pop_elem(&np_live, &l))
		return ~0ULL;
	flow = bpf_map_lookup_elem(&np_flows, &l.key);
	if (!flow || flow->id != l.id)
		return 0; /* it ended by FIN or RST */
	if ((s64)(t_ns - flow->last_ns) >= (s64)idle_ns) {
		np_counts_add(NP(idle));
		bpf_map_delete_elem(&np_flows, &l.key);
		return 0;
	}
	/* the queue is roughly in the order of due_ns */
	l.due_ns = early ? t_ns + idle_ns : flow->last_ns + idle_ns;
	if (bpf_map_push_elem(&np_live, &l, 0))
		flow->tracked = 0; /* its next CNP tries again */
	return 0;
}

static int sweep(void *map, u32 *key, struct np_sweeper *s)
{
	u64 wait_ns = 0, t_ns = now_ns();

	for (u32 i = 0; i < SWEEP_FLOWS && !wait_ns; i++)
		wait_ns = sweep_one(t_ns, false);
	if (wait_ns == ~0ULL) {
		struct np_live l;

		s->runs = 0; /* np_track starts it again */
		if (bpf_map_peek_elem(&np_live, &l) || __sync_lock_test_and_set(&s->runs, 1))
			return 0;
	}
	if (wait_ns < SWEEP_PAUSE_NS || wait_ns == ~0ULL)
		wait_ns = SWEEP_PAUSE_NS;
	if (bpf_timer_start(&s->timer, to_kernel_ns(wait_ns), 0))
		s->runs = 0;
	return 0;
}

/* Does nothing if the timer runs. */
static __always_inline bool start_sweeper(struct np_sweeper *s)
{
	if (s->runs || __sync_lock_test_and_set(&s->runs, 1))
		return true;
	bpf_timer_init(&s->timer, &np_sweeper, CLOCK_MONOTONIC); /* fails except the first time */
	if (!bpf_timer_set_callback(&s->timer, sweep) &&
	    !bpf_timer_start(&s->timer, to_kernel_ns(idle_ns), 0))
		return true;
	s->runs = 0;
	return false;
}

/*
 * Without the timer each CNP checks flows. Linux since 6.18 has none on CPUs that can't exchange
 * two words at once: x86 without cmpxchg16b, arm64 without LSE.
 */
#define SWEEP_BY_CNP 4

static __always_inline void sweep_by_cnp(u64 t_ns)
{
	for (u32 i = 0; i < SWEEP_BY_CNP; i++)
		if (sweep_one(t_ns, false))
			return;
}

#define MAKE_ROOM 16 /* flows to check; about half of them have ended */

/* Makes room if np_live is full. */
static __always_inline bool push_live(const struct np_live *l, u64 t_ns)
{
	if (!bpf_map_push_elem(&np_live, l, 0))
		return true;
	for (u32 i = 0; i < MAKE_ROOM; i++)
		sweep_one(t_ns, true);
	return !bpf_map_push_elem(&np_live, l, 0);
}

/* Has the flow removed when it falls silent. Each CNP calls it again, in case it failed before. */
static __noinline void np_track(const struct flow_key *key, struct np_flow *flow)
{
	struct np_live l = {.key = *key};
	u32 zero = 0;
	struct np_sweeper *s = bpf_map_lookup_elem(&np_sweeper, &zero);
	u64 t_ns = now_ns();

	if (!s)
		return;
	if (!flow->tracked) {
		if (!flow->id)
			flow->id = __sync_fetch_and_add(&s->next_id, 1) + 1 ?: 1;
		l.id = flow->id;
		l.due_ns = t_ns + idle_ns;
		flow->tracked = push_live(&l, t_ns);
	}
	if (!start_sweeper(s)) {
		sweep_by_cnp(t_ns);
		np_counts_add(NP(no_timer));
	} else if (!flow->tracked) {
		np_counts_add(NP(no_timer));
	}
}

/* Flows enter the table with their second packet, or with the first. Set by the loader. */
HOST_SETTING bool enter_second = false;

#define DOOR_SLOTS 16384

/*
 * On hosts a flow enters the table with its second packet. Anyone can send first packets of flows
 * that do not exist; an entry costs ten times what this does. A slot remembers which flow came
 * last. A flow that another one ousts enters with a later packet.
 */
struct np_door {
	u32 seed; /* so that nobody knows which flows share a slot */
	u32 came[DOOR_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct np_door);
} np_door SEC(".maps");

static __always_inline u32 key_hash(const struct flow_key *key, u32 seed)
{
	const u32 *words = (const u32 *)key;
	u64 h = seed;

	for (u32 i = 0; i < sizeof(*key) / sizeof(*words); i++) {
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return h;
}

/* Whether a packet of the flow came before. */
static __always_inline bool np_came_before(const struct flow_key *key)
{
	u32 zero = 0, hash, slot;
	struct np_door *door = bpf_map_lookup_elem(&np_door, &zero);

	if (!door)
		return true;
	if (!door->seed)
		door->seed = bpf_get_prandom_u32() | 1;
	hash = key_hash(key, door->seed);
	slot = hash % DOOR_SLOTS;
	if (door->came[slot] == hash)
		return true;
	door->came[slot] = hash;
	return false;
}

/* What an entry is at first. The stack has no room for it. */
static const struct np_flow fresh_flow = {};

/* Makes the flow's entry. It goes when the flow ends. */
static __always_inline struct np_flow *np_flow_of(const struct flow_key *key)
{
	struct np_flow *flow;

	bpf_map_update_elem(&np_flows, key, &fresh_flow, BPF_NOEXIST);
	flow = bpf_map_lookup_elem(&np_flows, key);
	if (flow && idle_ns)
		np_track(key, flow);
	return flow;
}

/*
 * Signs the CNP with the current key. If there is none, the tag tells the sequence numbers of the
 * packet that it answers, which only those know who saw it.
 */
static __always_inline void np_sign(struct np_pending *p, struct cnp_body *body,
				    const struct transport *t, u64 t_ns, bool ce)
{
	struct cnp_sight *sight = (void *)body->pcn.tag;

	for (u32 i = 0; i < KEYS; i++) {
		u32 index = i;
		struct cnp_key *k = bpf_map_lookup_elem(&cnp_keys, &index);
		struct cnp_tag *tag = (void *)body->pcn.tag;

		if (!k || k->state != KEY_SIGNS)
			continue;
		tag->stamp = bpf_htonl(index << STAMP_BITS | stamp_of(t_ns));
		tag->mac = p->v6 ? mac_ipv6(&k->key, &p->ipv6, tag->stamp, ce)
				 : mac_ipv4(&k->key, &p->ipv4, tag->stamp, ce);
		return;
	}
	sight->seq = bpf_htonl(t->seq);
	sight->ack = bpf_htonl(t->ack);
}

static __always_inline void np_build(struct np_pending *p, const struct transport *t,
				     const struct notification *cnp, u64 t_ns)
{
	const struct flow_key *key = &t->key;

	if (on_host && p->v6) {
		p->eth.h_proto = bpf_htons(ETH_P_IPV6);
		cnp_build_ipv6(&p->ipv6, key, cnp);
		np_sign(p, &p->ipv6.body, t, t_ns, cnp->ce);
		p->ipv6.body.icrc = icrc_ipv6(&p->ipv6, crc_ipv6(&p->ipv6));
	} else {
		p->eth.h_proto = bpf_htons(ETH_P_IP);
		cnp_build_ipv4(&p->ipv4, key, cnp);
		if (on_host)
			np_sign(p, &p->ipv4.body, t, t_ns, cnp->ce);
		p->ipv4.body.icrc = icrc_ipv4(&p->ipv4, crc_ipv4(&p->ipv4));
	}
}

/* Remembers the VLAN tags. Those in the frame cannot stay there, see np_egress. */
static __always_inline bool np_keep_tags(const struct __sk_buff *skb, const struct network *n,
					 struct np_pending *p)
{
	u32 in_frame = (n->off - sizeof(struct ethhdr)) / sizeof(struct vlan_hdr);

	p->tags = 0;
	if (!on_host || !in_frame)
		return true; /* the clone keeps the skb's tag */
	if (skb->vlan_present) {
		p->tag[0].tci = skb->vlan_tci;
		p->tag[0].proto = skb->vlan_proto;
		p->tags = 1;
	}
#pragma clang loop unroll(full)
	for (u32 i = 0; i < MAX_TAGS; i++) {
		const u32 off = sizeof(struct ethhdr) + i * sizeof(struct vlan_hdr);
		struct vlan_hdr h;
		__be16 proto; /* the EtherType before the tag */
		u32 to = p->tags;

		if (i >= in_frame)
			break;
		if (bpf_skb_load_bytes(skb, off - sizeof(proto), &proto, sizeof(proto)) ||
		    bpf_skb_load_bytes(skb, off, &h, sizeof(h)) || to > MAX_TAGS)
			return false;
		p->tag[to].tci = bpf_ntohs(h.tci);
		p->tag[to].proto = proto;
		p->tags = to + 1;
	}
	return true;
}

static __always_inline u32 np_sent_counter(const struct notification *cnp)
{
	if (cnp->ce)
		return NP(cnp_decrease);
	return cnp->ue ? NP(cnp_hold) : NP(cnp_increase);
}

/* Answers the data packet with the CNP. Not inline: it needs a stack of its own. */
static __noinline void np_send(struct __sk_buff *skb, const struct network *n,
			       const struct transport *t, const struct notification *cnp, u64 t_ns)
{
	u32 zero = 0, mark = skb->mark;
	struct np_pending *p = bpf_map_lookup_elem(&np_pending, &zero);
	struct ethhdr eth;
	long failed;

	if (!p || bpf_skb_load_bytes(skb, 0, &eth, sizeof(eth)) || !np_keep_tags(skb, n, p)) {
		np_counts_add(NP(no_clone));
		return;
	}
	__builtin_memcpy(p->eth.h_dest, eth.h_source, ETH_ALEN);
	__builtin_memcpy(p->eth.h_source, eth.h_dest, ETH_ALEN);
	p->v6 = n->v6;
	p->headers_len = t->off - n->off + sizeof(struct tcphdr);
	np_build(p, t, cnp, t_ns);
	p->ready = 1;
	skb->mark = MARK_CNP;
	failed = bpf_clone_redirect(skb, skb->ifindex, 0);
	skb->mark = mark;
	p->ready = 0;
	np_counts_add(failed ? NP(no_clone) : np_sent_counter(cnp));
}

/*
 * Whether a UDP flow has one of the ports, and the packet is no CNP. No flow has port 0: a CNP with
 * that port is not ours.
 */
static __always_inline bool np_watches(const struct __sk_buff *skb, const struct transport *t)
{
	u8 opcode = 0;

	if (!udp_ports[0] || !t->key.sport)
		return false;
	if (t->key.dport == bpf_htons(ROCE_PORT) &&
	    (bpf_skb_load_bytes(skb, t->off + sizeof(struct udphdr), &opcode, 1) ||
	     opcode == CNP_OPCODE))
		return false;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < UDP_PORTS; i++) {
		u16 port = udp_ports[i];

		if (port && (port == t->key.dport || port == t->key.sport))
			return true;
	}
	return false;
}

/* True for a packet of a TCP flow, or of a UDP flow that is watched. */
static __always_inline bool np_parse(struct __sk_buff *skb, struct network *n, struct transport *t)
{
	const u32 headers =
		sizeof(struct ethhdr) + MAX_TAGS * sizeof(struct vlan_hdr) + sizeof(struct ipv6hdr);
	int verdict;

	if (on_host)
		pull_headers(skb, headers);
	if (!point_parse(skb, n))
		return false;
	verdict = transport_parse(skb, n, t);
	if (verdict == TRANSPORT_EXTENSIONS)
		np_counts_add(NP(extensions));
	return verdict == TRANSPORT_OK && (t->key.protocol == IPPROTO_TCP || np_watches(skb, t));
}

/*
 * One skb may be many packets of the wire: GRO merges packets whose headers agree, marks included,
 * and a virtual device hands TSO's large packets on as they are. On the wire each has its headers.
 * gso_segs is 0 if the large packet comes from a virtual machine.
 */
static __always_inline void np_size(const struct __sk_buff *skb, const struct transport *t,
				    struct notify_event *event)
{
	u32 size = skb->gso_size, packets;

	event->packets = 1;
	event->frame_bytes = skb->len;
	if (!size)
		return;
	packets = skb->gso_segs;
	if (!packets)
		packets = (t->payload_len + size - 1) / size;
	if (packets > 1 && skb->len > t->payload_len) {
		event->packets = packets;
		event->frame_bytes += (packets - 1) * (skb->len - t->payload_len);
	}
}

static __always_inline void np_flow_ended(const struct flow_key *key)
{
	if (!bpf_map_delete_elem(&np_flows, key))
		np_counts_add(NP(ended));
}

#define LOCK_TRIES 64

/*
 * Takes the lock of the flow's state. Packets of one flow may arrive on two CPUs at once: when its
 * interrupt moves, or over two links of a bond. A map that forgets flows (LRU) can't hold a
 * bpf_spin_lock. The CPU that has the lock may be a virtual one that is stopped, so waiting has an
 * end: false. The lab runs on one CPU and needs no lock.
 */
static __always_inline bool np_lock(struct np_flow *flow)
{
	if (!on_host)
		return true;
	for (u32 i = 0; i < LOCK_TRIES; i++)
		if (!__sync_lock_test_and_set(&flow->locked, 1))
			return true;
	return false;
}

static __always_inline void np_unlock(struct np_flow *flow)
{
	if (on_host)
		__sync_lock_test_and_set(&flow->locked, 0);
}

/* Counts the packet. True: a CNP is to be sent. */
static __always_inline bool np_count(struct np_flow *flow, const struct notify_event *event,
				     struct notification *cnp)
{
	bool send;

	if (!np_lock(flow)) {
		np_counts_add(NP(busy));
		return false;
	}
	send = notify_packet(&flow->state, loaded(params), event, cnp);
	np_unlock(flow);
	return send;
}

SEC("tc")
int np_ingress(struct __sk_buff *skb)
{
	struct notification cnp = {};
	struct notify_event event;
	struct np_flow *flow;
	struct transport t;
	struct network n;

	if (!np_parse(skb, &n, &t))
		return TCX_NEXT;
	if (idle_ns && t.flags & (TCP_FIN | TCP_RST)) {
		np_flow_ended(&t.key);
		return TCX_NEXT;
	}
	if (!t.payload_len)
		return TCX_NEXT;
	np_size(skb, &t, &event);
	event.ecn = t.tos & ECN_MASK;
	if (!notify_wants(&event))
		return TCX_NEXT;
	flow = bpf_map_lookup_elem(&np_flows, &t.key);
	if (!flow) {
		if (enter_second && !np_came_before(&t.key))
			return TCX_NEXT;
		flow = np_flow_of(&t.key);
	}
	if (!flow) {
		np_counts_add(NP(no_flow));
		return TCX_NEXT;
	}
	event.now_ns = arrival_ns(skb);
	if (idle_ns)
		flow->last_ns = event.now_ns;
	if (!np_count(flow, &event, &cnp))
		return TCX_NEXT;
	if (idle_ns)
		np_track(&t.key, flow);
	np_send(skb, &n, &t, &cnp, event.now_ns);
	return TCX_NEXT;
}

#ifdef __wasm__
/* For the simulator: bytes of a flow's state. */
SIMULATED("simulate_state_bytes") u32 simulate_state_bytes(void)
{
	return sizeof(struct notify_state);
}

/* What the simulator gets: 0: send nothing; or 1, 2 if the CNP says CE, 4 if it says UE, and
 * rec_rate << 32.
 */
static __always_inline u64 simulated(bool send, const struct notification *cnp)
{
	return send ? 1 | (u32)cnp->ce << 1 | (u32)cnp->ue << 2 | (u64)cnp->rec_rate << 32 : 0;
}

/* For the simulator, which keeps the state of each flow. */
SIMULATED("simulate_packet")
u64 simulate_packet(struct notify_state *state, u64 t_ns, u32 frame_bytes, u32 ecn)
{
	struct notify_event event = {
		.now_ns = t_ns, .frame_bytes = frame_bytes, .packets = 1, .ecn = ecn};
	struct notification cnp = {};

	return simulated(notify_wants(&event) && notify_packet(state, loaded(params), &event, &cnp),
			 &cnp);
}

#ifdef NOTIFY_MARKED
/* The simulator need not call for packets without a mark. */
SIMULATED("simulate_ignores_unmarked") u32 simulate_ignores_unmarked(void)
{
	return 1;
}
#endif

#ifdef NOTIFY_TIMER
/* Whether windows end by a timer; when that of a flow does, 0: at no time; and the timer. */
SIMULATED("simulate_timed") u32 simulate_timed(void)
{
	return notify_timed(loaded(params));
}

SIMULATED("simulate_due") u64 simulate_due(const struct notify_state *state)
{
	return notify_due_ns(state, loaded(params));
}

SIMULATED("simulate_expire") u64 simulate_expire(struct notify_state *state, u64 t_ns)
{
	struct notification cnp = {};

	return simulated(notify_expire(state, loaded(params), t_ns, &cnp), &cnp);
}
#endif
#endif

/*
 * Whether a socket of this host sends what a reaction point would take for a CNP. Nobody but this
 * notification point sends CNPs from here: any user may open a socket of UDP, and could slow down
 * or speed up the flows of others. Of several packets in one skb only the first is to be seen, so
 * one to RoCE's port is taken for such a packet. What is forwarded is of another host.
 */
static __always_inline bool np_forged(struct __sk_buff *skb)
{
	struct cnp_body body;
	struct network n;
	u32 off;

	if (skb->ingress_ifindex || !network_parse(skb, &n))
		return false;
	if (n.v6) {
		const struct ipv6hdr *ip = n.header;

		if (ip->nexthdr != IPPROTO_UDP)
			return false;
		off = n.off + sizeof(*ip);
	} else {
		const struct iphdr *ip = n.header;

		if (ip->protocol != IPPROTO_UDP || ip->ihl != 5)
			return false;
		off = n.off + sizeof(*ip);
	}
	if (bpf_skb_load_bytes(skb, off, &body.udp, sizeof(body.udp)) ||
	    body.udp.dest != bpf_htons(ROCE_PORT))
		return false;
	if (skb->gso_size)
		return true;
	return !bpf_skb_load_bytes(skb, off, &body, sizeof(body)) &&
	       body.bth.opcode == CNP_OPCODE && body.pcn.flow_sport;
}

/* A packet that is no clone of the ingress program's. */
static __always_inline int np_others(struct __sk_buff *skb)
{
	if (!on_host || !np_forged(skb))
		return TCX_NEXT;
	np_counts_add(NP(forged));
	return TCX_DROP;
}

SEC("tc")
int np_egress(struct __sk_buff *skb)
{
	u32 zero = 0, len, headers_len, tags;
	struct np_pending *p;

	if (skb->mark != MARK_CNP)
		return np_others(skb);
	p = bpf_map_lookup_elem(&np_pending, &zero);
	if (!p || !p->ready)
		return np_others(skb);
	p->ready = 0;
	headers_len = p->headers_len;
	tags = on_host ? p->tags : 0;
	/*
	 * adjust_room needs IP behind the Ethernet header: take all tags off, and put them back at
	 * the end
	 */
#pragma clang loop unroll(full)
	for (u32 i = 0; i < 1 + MAX_TAGS; i++)
		if (i < tags && bpf_skb_vlan_pop(skb))
			return TCX_DROP;
	len = sizeof(struct ethhdr) + (p->v6 ? sizeof(struct cnp_ipv6) : sizeof(struct cnp_ipv4));
	if (headers_len > MAX_HEADERS_LEN + sizeof(struct tcphdr) ||
	    !cut_clone(skb, len, headers_len))
		return TCX_DROP;
	if (p->v6 ? bpf_skb_store_bytes(skb, 0, p, sizeof(struct ethhdr) + sizeof(struct cnp_ipv6),
					0)
		  : bpf_skb_store_bytes(skb, 0, p, sizeof(struct ethhdr) + sizeof(struct cnp_ipv4),
					0))
		return TCX_DROP;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < 1 + MAX_TAGS; i++) {
		u32 from = MAX_TAGS - i; /* innermost first */

		if (from < tags && bpf_skb_vlan_push(skb, p->tag[from].proto, p->tag[from].tci))
			return TCX_DROP;
	}
	skb->mark = 0;
	return TCX_NEXT;
}

#endif
