/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A port and its class queues: what user space configures, what the port is doing, and what it has
 * counted. All ports are in one map, by their id: the netdev group of their device.
 */
#ifndef NPECN_PORT_H
#define NPECN_PORT_H

#include "algo/cbfc.h"
#include "algo/fecn.h"
#include "algo/npecn.h"
#include "algo/pfc.h"
#include "algo/pfc_watchdog.h"
#include "algo/qcn.h"
#include "algo/red.h"
#include "algo/tcd.h"
#include "late.h"
#ifdef OWN_MARKER
#include OWN_MARKER
#endif

#define NEVER (~0ULL)

/* Sizes that user space must know too. */
enum port_limit {
	/*
	 * PAUSE and RESUME, or updates of credits, that may wait for one port and class. How many
	 * do depends on XOFF - XON, in packets. Updates wait for longer only while nothing is
	 * sent, and then become one.
	 */
	LINK_EVENTS = 64,
	/* Changes of a port's rate or state in a run. */
	RATE_CHANGES = 64,
	/* Values of the distribution of delays until a host looks: a power of two. */
	NOISE_DELAYS = 256,
	/* Slots of the longest ring. */
	RING_MAX = 1 << 20,
	/* What a moment of a trace sends, as mahimahi has it. */
	OPPORTUNITY_BYTES = 1500,
	/* The binary logarithm of how many moments all traces have at most. */
	TRACE_SHIFT = 20,
	/* Fixed point of a class's alpha. */
	ALPHA_SHIFT = 16,
};

/* What decides which packets a port marks. */
enum marker {
	MARKER_NONE,
	MARKER_NPECN,
	MARKER_RED,
	MARKER_QCN, /* marks nothing: samples packets for CNMs */
	MARKER_FECN,
	MARKER_OWN, /* a user's own: include/marker.h. Marks nothing unless compiled in */
};

/* Why a port dropped a packet. */
enum drop_cause {
	DROP_WRED,    /* it is not ECN-capable, and the queue was long */
	DROP_TAIL,    /* the class queue was full */
	DROP_BUFFER,  /* the node's shared buffer was full */
	DROP_RING,    /* the ring of its class had no free slot */
	DROP_CLASS,   /* the port has no queue for its class */
	DROP_RESET,   /* it was queued when the qdisc was removed */
	DROP_LINK,    /* the link lost it */
	DROP_REFUSED, /* it came by a port whose watchdog drops */
	DROP_CAUSES,
};

/*
 * A port without a propagation delay, a host's, hands a packet over by so much before its ideal
 * delivery: with the decision to send it, if it is not longer, so that one timer does both. The
 * next port takes an arrival in so near a future. Less than its lag. Set by the loader.
 */
const volatile u64 early_ns = 0;
/* Length of a bin of the sampled series; 0: none. Set by the loader. */
const volatile u64 sample_ns = 0;

/* What user space knows of a packet in a ring. */
struct packet {
	u64 t_ns; /* class queue: ideal arrival; wire: ideal delivery */
	u32 len;
	u16 ingress; /* port it came in by; 0: this host sent it */
	u8 verdict;  /* wire: CARRY_CE, CARRY_UE, and QntzFb */
	u8 not_ect;  /* class queue: WRED drops it */
	u32 queue;   /* wire: CARRY_QUEUE */
	u32 pad;
};

/* A place in a class queue or on the wire. */
struct slot {
	struct sk_buff __kptr *skb; /* first: an address less to compute */
	struct packet packet;	    /* last: where user space finds it */
};

struct ring {
	u32 base;	/* first slot */
	u32 mask;	/* slots - 1, a power of two less one; 0: no such queue */
	u32 head, tail; /* free-running */
};

/* What the peer of a port tells it, to take effect at at_ns. */
struct link_event {
	u64 at_ns;
	u64 value; /* PFC: 1 PAUSE, 0 RESUME; CBFC: blocks that are free again */
};

/*
 * The events of a class of a port. All ports of the node at the other end post to it, each on its
 * own CPU, and one takes from it. The lock also guards the count of repeated PAUSE at that class.
 */
struct link_ring {
	struct bpf_spin_lock lock;
	u32 pad;
	struct link_event events[LINK_EVENTS];
};

/* From at_ns on the port has this rate; 0: its link is down. */
struct rate_change {
	u64 at_ns; /* 0: not known yet */
	u64 rate_bps;
};

/* --- a class queue --- */

struct class_config {
	u32 marked;   /* the port's marker marks this class */
	u32 lossless; /* PFC or CBFC is on */
	u32 lossy;    /* it may lose packets in a lossless network */
	u32 alpha;    /* its longest queue is so much of the node's free buffer, Q16; 0: any */
	u32 quantum;  /* bytes of a turn, or packets; 0: strict priority */
	u32 pad;
};

/* The class at the sending end of a link: what the peer has told it. */
struct class_tx {
	u64 ready_ns;	     /* ideal time of the last RESUME, or of the credits that ended OFF */
	u64 paused_since_ns; /* ideal time of the last PAUSE */
	u64 off_since_ns;    /* CBFC: ideal time at which credits ran out */
	u64 event_last_ns;   /* events are posted in order */
	u32 event_head, event_tail;
	u32 paused;
	u32 off; /* CBFC: too few credits for the first packet */
	struct cbfc_tx credits;
};

/* The class at the receiving end: what it tells the peer. */
struct class_rx {
	u64 bytes; /* that came in by this port and are still in the node */
	struct pfc_repeat repeat;
	u64 repeat_bin, repeat_frames; /* sample bin, and the frames in it */
	struct cbfc_rx credits;
	u64 held_max_blocks;
	u32 pausing;
	u32 pad;
};

struct class_counters {
	u64 sent_packets, sent_bytes; /* started on the wire */
	u64 marked_packets;
	u64 pause_sent, resume_sent;	     /* to the peer */
	u64 pause_received, resume_received; /* obeyed */
	u64 paused_ns;			     /* of pauses that are over */
};

struct tclass {
	struct class_config config;
	struct ring queue;
	u64 arrived_bytes; /* of packets that had ideally arrived by the last decision */
	u64 next_ns;	   /* when the first that has not will have; NEVER, or 0 at first: none */
	u32 arrived;	   /* ring index behind them */
	u32 dropped;	   /* slots of the queue whose packet was dropped */
	u32 deficit;	   /* what is left of its turn */
	u32 pad;
	struct npecn_cp npecn;
	struct fecn_cp fecn;
	struct tcd_cp tcd;
	struct qcn_cp qcn; /* set by the loader */
	struct class_tx tx;
	struct class_rx rx;
	struct class_counters counters;
};

/* --- a port --- */

/* TCD, and what a port says of its packets without doing it. */
struct detection {
	u64 max_ton_ns; /* TCD's max(T_on); 0: no TCD */
	u64 over_bytes; /* the queue that TCD calls over, if it only says so */
	u64 ecn_bytes;	/* the threshold of ECN, which only says so */
	u32 tcd;	/* TCD marks, where the marker says that the queue is over */
	u32 watch;	/* all detectors say what they would mark */
};

/* What a link beyond data centres does to packets: link.h. */
struct link_params {
	/* the chances, in units of 2^-32, that a packet is lost behind one that was not, or was */
	u32 lose_begin, lose_on;
	u32 reorder;	/* the share of packets that are late, in the same units */
	u32 on;		/* it does any of it */
	u64 reorder_ns; /* by so much */
	u64 jitter_ns;	/* what any packet may take longer */
	/* the link follows a trace: these of `opportunities`; none: it has a rate */
	u32 trace_first, trace_entries;
	u64 trace_ns; /* after which it begins again */
};

/* Written by user space before the qdisc is attached, and never by the port. */
struct port_config {
	u64 rate_bps;	/* 0: no such port */
	u64 delay_ns;	/* propagation of the link it sends to */
	u64 quantum_ns; /* deliveries are rounded up to multiples of it, a power of two; 1: exact */
	u64 decide_ns;	/* the same of decisions, which are not seen as long as they are in time */
	u64 lag_ns;	/* decides only what starts before now - lag; 0 without propagation */
	u64 pfc_delay_ns; /* from crossing XOFF here to the peer's stopping */
	u64 wred_bytes;	  /* WRED's K: a longer queue drops what is not ECN-capable; 0: never */
	u64 limit_bytes;  /* buf_max: a packet that makes the queue longer is dropped; 0: never */
	u64 credits;	  /* blocks that the peer lends, if it runs CBFC; else 0 */
	u32 id;		  /* its own */
	u32 peer;	  /* port id at the other end */
	u32 node;	  /* index in nodes */
	u32 rate_changes; /* how many there are */
	u32 marker;	  /* enum marker; its parameters are among these: */
	u32 noisy;	  /* the peer is a host, and looks late at what arrives */
	u32 weighted;	  /* bit per class with a weight */
	u32 by_packets;	  /* turns are of packets, not bytes */
	struct link_params link;
	struct red_params red;
	struct qcn_cp_params qcn;
	struct fecn_params fecn;
	struct pfc_params pfc;
	struct cbfc_params cbfc; /* what it lends its peer */
	struct pfc_watchdog_params watchdog;
	struct detection detect;
};

/* What detectors said of a bin's packets. */
struct detected {
	u32 npecn, ecn, fecn;
	u32 tcd_ce, tcd_ue;
	u32 pad;
};

/* The bin of the sampled series that is not over. */
struct bin {
	u64 index; /* time / sample_ns */
	u64 end_ns;
	u64 sent_bytes;
	u64 queue_max_bytes;
	u32 sent_packets, marked_packets;
	struct detected detected;
};

struct port_state {
	u64 owner;    /* the one qdisc that is this port; 0: none */
	u64 rate_bps; /* now; set by the loader */
	u64 link_free_ns;
	u64 link_rest;	 /* the link is free so much later than link_free_ns, in ns / rate_bps */
	u64 decided_ns;	 /* nothing may arrive before this any more */
	u64 serve_ns;	 /* no class can start a packet before */
	u64 lossless_ns; /* what lossless_start returns */
	u64 poll_ns;	 /* when its watchdog looks the next time; 0: it never did */
	u64 queue_bytes; /* all classes: of packets that had ideally arrived */
	struct ring wire;
	u32 backlogged; /* bit per class with packets */
	u32 random;	/* state of the markers' choices; set by the loader, not 0 */
	u32 rate_next;	/* the rate change to come */
	u32 tcd_state;	/* after the latest packet */
	struct bin bin;
	u64 look_ns;	  /* when the host at the other end looks the next time, or last did */
	u32 noise_random; /* state of its choices; set by the loader, not 0 */
	u32 link_random;  /* state of the link's choices; set by the loader, not 0 */
	u64 link_last_ns; /* the last packet that kept its order arrives */
	u64 trace_round;  /* how often the trace has been through */
	u32 trace_next;	  /* its opportunity to come, or in use */
	u32 trace_left;	  /* bytes that this still sends */
	u32 losing;	  /* the link lost the last packet */
	u32 down;	  /* the link loses all */
	/* dropped by the dequeue that is under way: what the Qdisc still counts */
	u32 gone_packets, gone_bytes;
	u32 turn;   /* the class with a weight that is served */
	u32 chosen; /* what choose_class returns */
};

struct port_counters {
	u64 enqueued_packets, enqueued_bytes;
	u64 delivered_packets;
	u64 queue_max_bytes;
	u64 dropped[DROP_CAUSES];
	u64 causality;	      /* arrived before decided_ns: the ideal order was not kept */
	u64 events_lost;      /* link events that found no room */
	u64 lossy;	      /* of those dropped: of classes that may lose packets */
	struct lateness late; /* of deliveries */
	/* what a host's TCP sends: host.h */
	struct lateness late_acks, late_data;
};

struct port {
	struct port_config config;
	struct port_state state;
	struct port_counters counters;
	struct tclass classes[CLASSES];
#ifdef OWN_MARKER
	/* at the end: user space finds all else where it is without an own marker */
	struct {
		struct own_marker_params params; /* configuration */
		struct own_marker state[CLASSES];
	} own;
#endif
};

/* What the ports of a node share. */
struct node {
	u64 buffer_bytes; /* 0: unlimited (a host) */
	u64 used_bytes;	  /* by packets that have come */
	u64 used_max_bytes;
	u64 arrived_bytes; /* by those that have ideally arrived, from other nodes */
};

/* --- maps: how many entries each has is set by the loader --- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct node);
} nodes SEC(".maps");

/* One per class per port. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct link_ring);
} link_rings SEC(".maps");

/* What PFC's watchdog knows of a class of a port, and does to it. */
struct guard {
	struct pfc_watchdog rule;
	u64 dropped_packets; /* in the storm that is not over: of the queue */
	u64 refused_packets; /* and of those that came in by the port */
	u32 deaf;	     /* PFC is off for it, in both directions */
	u32 dropping;
};

/* One per class per port, if any has a watchdog. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct guard);
} guards SEC(".maps");

/* RATE_CHANGES per port, in order of time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rate_change);
} rate_changes SEC(".maps");

/* Of all traces: when they send OPPORTUNITY_BYTES, in ms from their start. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} opportunities SEC(".maps");

/*
 * What any port uses. What none uses is no code: the verifier, which knows these constants, leaves
 * it out. Set by the loader.
 */
enum use {
	USE_CBFC = 1 << 0,
	USE_DROPS = 1 << 1,	/* WRED, or a limit */
	USE_DETECTORS = 1 << 2, /* TCD, and what says what it would mark */
	USE_RATE_CHANGES = 1 << 3,
	USE_RED = 1 << 4,
	USE_QCN = 1 << 5,
	USE_FECN = 1 << 6,
	USE_NOISE = 1 << 7,
	USE_LINK = 1 << 8, /* links lose packets, or delay them at random */
	USE_REORDER = 1 << 9,
	USE_TRACE = 1 << 10,
	USE_PARTITIONS = 1 << 11,
	USE_WATCHDOG = 1 << 12,
	USE_WEIGHTS = 1 << 13,
};

const volatile u32 uses = ~0U;

/* Equally likely delays from an arrival at a host until it looks. Set by the loader. */
const volatile u64 noise_delays[NOISE_DELAYS] = {};

static __always_inline struct port *port_of(u32 id)
{
	return bpf_map_lookup_elem(&ports, &id);
}

/*
 * port_of_qdisc: NULL if another qdisc is the port. A qdisc keeps its port's id in `limit`, which
 * the kernel does not read: the device's group costs two checked loads.
 */
static __always_inline struct port *port_of_qdisc(struct Qdisc *sch)
{
	struct port *p = port_of(sch->limit);

	return p && p->state.owner == (u64)sch ? p : NULL;
}

static __always_inline struct node *node_of(const struct port *p)
{
	return bpf_map_lookup_elem(&nodes, &p->config.node);
}

/* class_at: the verifier forgets across loops that c is a class; the mask tells it again. */
static __always_inline struct tclass *class_at(struct port *p, u32 c)
{
	barrier_var(c); /* or clang, which knows, leaves the mask out */
	return &p->classes[c & (CLASSES - 1)];
}

/* queue_packets: how many wait, of those that have ideally arrived and were not dropped. */
static __always_inline u32 queue_packets(const struct tclass *k)
{
	return k->arrived - k->queue.head - k->dropped;
}

static __always_inline struct link_ring *link_ring_of(u32 id, u32 c)
{
	u32 k = id * CLASSES + c;

	return bpf_map_lookup_elem(&link_rings, &k);
}

static __always_inline struct link_event *link_event_at(struct link_ring *r, u32 i)
{
	return &r->events[i & (LINK_EVENTS - 1)];
}

/* Ports run on more than one CPU. If not, a lock is no code. Set by the loader. */
const volatile u32 several_cpus = 1;

static __always_inline void link_lock(struct link_ring *r)
{
	if (several_cpus)
		bpf_spin_lock(&r->lock);
}

static __always_inline void link_unlock(struct link_ring *r)
{
	if (several_cpus)
		bpf_spin_unlock(&r->lock);
}

/* guard_of: NULL unless a watchdog may act on class c of port id. */
static __always_inline struct guard *guard_of(u32 id, u32 c)
{
	u32 k = id * CLASSES + c;

	return uses & USE_WATCHDOG ? bpf_map_lookup_elem(&guards, &k) : NULL;
}

/* deaf: the watchdog has turned PFC off for the class of guard_of. */
static __always_inline bool deaf(const struct guard *g)
{
	return g && *(volatile const u32 *)&g->deaf;
}

/* rate_change_of: change i of a port; NULL if there is none. */
static __always_inline struct rate_change *rate_change_of(const struct port *p, u32 id, u32 i)
{
	u32 key = id * RATE_CHANGES + i;

	return i < p->config.rate_changes ? bpf_map_lookup_elem(&rate_changes, &key) : NULL;
}

/* change_rate: apply the rate changes that are due at t_ns. */
static __always_inline void change_rate(struct port *p, u32 id, u64 t_ns)
{
	if (!(uses & USE_RATE_CHANGES))
		return;
	bounded (RATE_CHANGES) {
		struct rate_change *c = rate_change_of(p, id, p->state.rate_next);

		if (!c || !c->at_ns || c->at_ns > t_ns)
			break;
		p->state.down = !c->rate_bps;
		if (c->rate_bps)
			p->state.rate_bps = c->rate_bps;
		p->state.link_rest = 0; /* less than 1 ns of the rate that was */
		p->state.rate_next++;
	}
}

#endif
