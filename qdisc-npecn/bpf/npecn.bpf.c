// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * npecn: the port of an emulated lossless switch or host, as a qdisc.
 *
 *	enqueue -> 8 class queues -> strict priority, PAUSE, NP-ECN -> wire (serialisation, propagation) -> dequeue
 *
 * Ideal time. Every packet has an ideal arrival; a port computes
 *	start   = max(arrival, link_free, RESUME)	link_free = start + len * 8 / rate
 *	deliver = link_free + delay
 * and sends `deliver` along with the packet, where the next port takes it as the arrival. A late timer changes
 * when work is done, never what is computed. Class queues are sorted by ideal arrival, and a port with a
 * propagation delay decides only what starts before now - lag, when everything that ideally arrived by then
 * is there: conservative simulation, with the link delay as lookahead. Timers are rounded up to the quantum.
 *
 * PFC. Bytes are counted per ingress port and class from arrival to the start of transmission. Crossing XOFF or
 * XON posts {effect time = now + delay, pause or resume} to the upstream port, in its event ring. A paused port
 * looks at its ring every delay / 2 and applies each event at its ideal time; as an event takes effect one delay
 * after it was posted, it is always seen in time.
 *
 * CBFC, in place of PFC. Blocks are counted likewise, and what leaves is told to the upstream port at the end of the
 * update period, in the same ring: {effect time = then + delay, blocks}. It may send what it has credits for. A queue
 *that is paused, or has a packet and too few credits for it, is OFF; else it is ON.
 *
 * Detectors. Beside the one that marks, a port can have others that only say what they would do: NP-ECN, ECN by a
 * threshold, FECN and TCD.
 *
 * A BPF qdisc can neither write packets nor make them: a mark is a bit in qdisc_skb_cb->data, applied at the far end
 * of the veth by tc/bpf/fabric.bpf.c or arrive.bpf.c; and a QCN sample is a few, of which the far end makes the CNM
 * and sends it back. So a CNM comes a round trip of one link late.
 *
 * Configuration, counters and queues are in maps, keyed by the netdev group:
 *	ip link set dev eth0 group 3; pcn writes ports[3]; tc qdisc add dev eth0 root npecn
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "include/clock.h"
#include "include/events.h"
#include "include/port.h"
#include "algo/cbfc.h"
#include "algo/fecn.h"
#include "algo/npecn.h"
#include "algo/pfc.h"
#include "algo/qcn.h"
#include "algo/red.h"
#include "algo/tcd.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
} __attribute__((preserve_access_index));

extern void bpf_kfree_skb(struct sk_buff *p) __ksym;
extern void bpf_qdisc_skb_drop(struct sk_buff *p, struct bpf_sk_buff_ptr *to_free) __ksym;
extern void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns) __ksym;
extern void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb) __ksym;

#define NET_XMIT_SUCCESS 0
#define NET_XMIT_DROP	 1
#define NEVER		 (~0ULL)

/*
 * PAUSE and RESUME, or updates of credits, that may wait for one port and class; how many depends on XOFF - XON, in
 * packets. Updates wait for longer only while nothing is sent, and then become one.
 */
#define PFC_EVENTS 64
/* Decisions of one dequeue call; what is left is done by the next. */
#define SERVE_MAX 64
/* Lateness histogram: buckets of 64 ns, the last one open. */
#define LATE_BUCKETS	  128
#define LATE_BUCKET_SHIFT 6
/* Rings are at most this long (per port and class). */
#define RING_MAX (1 << 20)
/* Changes of a port's rate in a run. */
#define RATE_CHANGES 8

enum marker {
	MARKER_NONE,
	MARKER_NPECN,
	MARKER_RED,
	MARKER_QCN, /* marks nothing: samples for CNMs */
	MARKER_FECN,
};

/* quantum_ns: timers are rounded up to multiples of it; a power of two. Set by the loader. */
const volatile u64 quantum_ns = 1024;
/* sample_ns: bin of the sampled series; 0: none. */
const volatile u64 sample_ns = 0;

/* A packet in a class queue or on the wire. */
struct slot {
	struct sk_buff __kptr *skb;
	u64 t_ns; /* class queue: ideal arrival; wire: ideal delivery */
	u32 len;
	u16 ingress; /* port it came in by, 0: made here */
	u8 verdict;  /* wire: CARRY_CE, CARRY_UE, and QntzFb */
	u8 not_ect;  /* class queue: WRED drops it */
	u32 queue;   /* wire: CARRY_QUEUE */
};

struct pfc_event {
	u64 at_ns;
	u64 pause; /* CBFC: blocks */
};

/* From at_ns on the port has this rate. */
struct rate_change {
	u64 at_ns; /* 0: not known yet */
	u64 rate_bps;
};

struct ring {
	u32 base;	/* first slot */
	u32 mask;	/* slots - 1, a power of two less one; 0: no such queue */
	u32 head, tail; /* free-running */
};

struct tclass {
	struct ring queue;
	u64 queue_bytes;
	u64 arrived_bytes; /* of packets that had ideally arrived by the last decision */
	u32 arrived;	   /* ring index behind them */
	u32 marked;	   /* config: the port's marker marks this class */
	u32 dropped;	   /* slots of the queue whose packet was dropped */
	u32 pad;

	/* as the upstream end of a link: told to pause by the peer */
	u64 ready_ns;	     /* ideal time of the last RESUME */
	u64 paused_since_ns; /* of the last PAUSE */
	u32 event_head, event_tail;
	u64 event_last_ns; /* events are posted in order */
	u32 paused;
	struct npecn_cp cp;
	struct tcd_cp tcd;
	struct fecn_cp fecn;
	u32 off;	  /* CBFC: too few credits for the first packet */
	u64 off_since_ns; /* CBFC */
	struct cbfc_tx tx;

	/* as the downstream end: tells the peer to pause */
	u64 ingress_bytes;
	struct pfc_repeat repeat;
	u64 repeat_bin, repeat_frames; /* sample bin, and the frames in it */
	struct cbfc_rx rx;
	u64 held_max_blocks;
	u32 pausing;
	u32 lossless; /* config: PFC or CBFC on */

	u64 sent_packets, sent_bytes;
	u64 marked_packets;
	u64 pause_sent, resume_sent;
	u64 pause_received, resume_received;
	u64 paused_ns;
};

/* What detectors said of a port's packets. */
struct detected {
	u32 npecn, ecn, fecn;
	u32 tcd_ce, tcd_ue;
};

struct port {
	/* configuration, written before the qdisc is attached */
	u64 rate_bps;	  /* 0: no such port */
	u64 delay_ns;	  /* propagation of the link it sends to */
	u64 lag_ns;	  /* decides only what starts before now - lag; 0 without a propagation delay */
	u64 pfc_delay_ns; /* from crossing XOFF here to the peer's stopping */
	struct pfc_params pfc;
	u32 peer;   /* port id at the other end */
	u32 node;   /* index in nodes */
	u32 marker; /* enum marker */
	u32 rate_changes;
	struct red_params red;
	u64 wred_bytes;	 /* WRED's K: a longer queue drops what is not ECN-capable; 0: never */
	u64 limit_bytes; /* buf_max: a packet that makes the queue longer is dropped; 0: never */
	struct qcn_cp_params qcn;
	struct cbfc_params cbfc; /* what it lends its peer */
	u64 credits;		 /* the peer runs CBFC, and lends so many blocks */
	struct fecn_params fecn;
	u64 max_ton_ns; /* TCD's; 0: no TCD */
	u64 over_bytes; /* TCD, if it only says: the queue that is over */
	u64 ecn_bytes;	/* ECN, if it only says: its threshold */
	u32 tcd;	/* TCD marks, where the marker says that the queue is over */
	u32 watch;	/* all detectors say what they would do */

	/* state */
	u64 owner; /* the one qdisc that is this port; 0: none */
	u64 link_free_ns;
	u64 decided_ns; /* nothing may arrive before this any more */
	u64 serve_ns;	/* no class can start a packet before */
	struct ring wire;
	u32 backlogged; /* bit per class with packets */
	u32 random;	/* state of RED's choices; set by the loader, not 0 */
	u32 rate_next;	/* the rate change to come */
	u32 pad;
	struct qcn_cp cp; /* set by the loader */
	u64 bin_end_ns;	  /* sample bin */
	u64 bin;
	u64 bin_sent_bytes;
	u32 bin_sent_packets, bin_marked_packets;
	u64 bin_queue_max_bytes;
	struct detected bin_detected;
	u32 tcd_state;	 /* after the latest packet */
	u64 queue_bytes; /* all classes */

	/* dropped by the dequeue that is under way: what the Qdisc still counts */
	u32 gone_packets, gone_bytes;

	/* counters */
	u64 enqueued_packets, enqueued_bytes;
	u64 delivered_packets;
	u64 queue_max_bytes;
	u64 dropped_wred;   /* not ECN-capable, and the queue was long */
	u64 dropped_tail;   /* the queue was full */
	u64 dropped_buffer; /* the node's shared buffer was full */
	u64 dropped_ring;   /* a ring was full */
	u64 dropped_class;  /* no queue for this class */
	u64 dropped_reset;  /* freed with the qdisc */
	u64 causality;	    /* arrived before decided_ns: the ideal order was not kept */
	u64 pfc_overflow;   /* events lost */
	u64 late_max_ns, late_sum_ns;
	u64 late[LATE_BUCKETS];

	struct tclass classes[CLASSES];
};

/* A node: what its ports share. */
struct node {
	u64 buffer_bytes; /* 0: unlimited (a host) */
	u64 used_bytes;
	u64 used_max_bytes;
};

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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* Event rings: PFC_EVENTS per class per port. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct pfc_event);
} pfc_events SEC(".maps");

/* RATE_CHANGES per port, in order of time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rate_change);
} rate_changes SEC(".maps");

/* Keeps the types in BTF, for bpf2go. */
const struct event_pfc *unused_event_pfc __attribute__((unused));
const struct event_queue *unused_event_queue __attribute__((unused));
const struct event_repeat *unused_event_repeat __attribute__((unused));
const struct event_off *unused_event_off __attribute__((unused));
const struct event_detected *unused_event_detected __attribute__((unused));

/* Events that found the ring buffer full. */
u64 events_lost = 0;

static __always_inline struct port *port_of(u32 id)
{
	return bpf_map_lookup_elem(&ports, &id);
}

/* port_of_qdisc: the port that this qdisc is; NULL if another is, or the device's group was changed. */
static __always_inline struct port *port_of_qdisc(struct Qdisc *sch, u32 id)
{
	struct port *p = port_of(id);

	return p && p->owner == (u64)sch ? p : NULL;
}

static __always_inline struct node *node_of(const struct port *p)
{
	u32 id = p->node;

	return bpf_map_lookup_elem(&nodes, &id);
}

static __always_inline struct slot *slot_at(const struct ring *r, u32 i)
{
	u32 k = r->base + (i & r->mask);

	return bpf_map_lookup_elem(&slots, &k);
}

/* class_at: the verifier forgets across loops that c is a class, and clang that it must be told. */
static __always_inline struct tclass *class_at(struct port *p, u32 c)
{
	barrier_var(c);
	return &p->classes[c & (CLASSES - 1)];
}

static __always_inline bool ring_full(const struct ring *r)
{
	return r->tail - r->head > r->mask;
}

static __always_inline u32 ring_len(const struct ring *r)
{
	return r->tail - r->head;
}

static __always_inline struct pfc_event *event_at(u32 id, u32 c, u32 i)
{
	u32 k = (id * CLASSES + c) * PFC_EVENTS + (i & (PFC_EVENTS - 1));

	return bpf_map_lookup_elem(&pfc_events, &k);
}

static __always_inline void emit(void *event, u64 size)
{
	if (bpf_ringbuf_output(&events, event, size, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&events_lost, 1);
}

/* --- sampled series --- */

static __noinline void sample_flush(struct port *p, u32 id, u64 t_ns)
{
	struct event_queue e = {
		.kind = EVENT_QUEUE,
		.port = id,
		.bin = p->bin,
		.sent_bytes = p->bin_sent_bytes,
		.sent_packets = p->bin_sent_packets,
		.marked_packets = p->bin_marked_packets,
		.queue_bytes = p->queue_bytes,
		.queue_max_bytes = p->bin_queue_max_bytes,
	};

	struct event_detected d = {
		.kind = EVENT_DETECTED,
		.port = id,
		.bin = p->bin,
		.npecn_packets = p->bin_detected.npecn,
		.ecn_packets = p->bin_detected.ecn,
		.fecn_packets = p->bin_detected.fecn,
		.tcd_ce_packets = p->bin_detected.tcd_ce,
		.tcd_ue_packets = p->bin_detected.tcd_ue,
		.tcd_state = p->tcd_state,
	};

	if (p->bin_end_ns)
		emit(&e, sizeof(e));
	if (p->bin_end_ns && p->watch)
		emit(&d, sizeof(d));
	p->bin = t_ns / sample_ns;
	p->bin_end_ns = (p->bin + 1) * sample_ns;
	p->bin_sent_bytes = 0;
	p->bin_sent_packets = 0;
	p->bin_marked_packets = 0;
	p->bin_detected = (struct detected){};
	p->bin_queue_max_bytes = p->queue_bytes;
}

/* sample: something happens at t_ns; if that is past the bin's end, the bin is over. */
static __always_inline void sample(struct port *p, u32 id, u64 t_ns)
{
	if (sample_ns && t_ns >= p->bin_end_ns)
		sample_flush(p, id, t_ns);
}

/* --- PFC --- */

/* pfc_post: tell the port at the other end of `in` to stop or go on, as of t_ns here. */
static __noinline void pfc_post(struct port *in, u32 c, u64 t_ns, u32 pause)
{
	u32 up_id = in->peer;
	struct port *up = port_of(up_id);
	struct event_pfc log = {.kind = EVENT_PFC, .port = up_id, .class = c, .pause = pause};
	struct pfc_event *e;
	struct tclass *uc;
	u64 at_ns = t_ns + in->pfc_delay_ns;
	u32 i;

	if (!up)
		return;
	uc = class_at(up, c);
	if (at_ns < uc->event_last_ns) /* ports decide one after the other: not before the latest */
		at_ns = uc->event_last_ns;
	uc->event_last_ns = at_ns;
	i = uc->event_tail;
	if (i - uc->event_head < PFC_EVENTS) {
		e = event_at(up_id, c, i);
		if (!e)
			return;
		e->at_ns = at_ns;
		e->pause = pause;
		__sync_fetch_and_add(&uc->event_tail, 1);
	} else { /* drop it and the one before, its opposite: nobody stays paused for good */
		__sync_fetch_and_sub(&uc->event_tail, 1);
		__sync_fetch_and_add(&up->pfc_overflow, 2);
	}
	if (pause)
		class_at(in, c)->pause_sent++;
	else
		class_at(in, c)->resume_sent++;
	log.sent_ns = at_ns - in->pfc_delay_ns;
	log.effect_ns = at_ns;
	emit(&log, sizeof(log));
}

/* pause_repeated: a port that repeats PAUSE has sent so many more by t_ns. They count in the bin of then. */
static __noinline void pause_repeated(u32 id, struct tclass *ic, u32 c, u64 t_ns, u32 frames)
{
	u64 bin = sample_ns ? t_ns / sample_ns : 0;
	struct event_repeat e = {
		.kind = EVENT_REPEAT,
		.port = id,
		.class = c,
		.bin = ic->repeat_bin,
		.frames = ic->repeat_frames,
	};

	if (bin > ic->repeat_bin) {
		if (e.frames)
			emit(&e, sizeof(e));
		ic->repeat_bin = bin;
		ic->repeat_frames = 0;
	}
	ic->repeat_frames += frames;
}

/* --- CBFC --- */

/*
 * credit_post: tell the port at the other end of `in`, when the update period ends, that blocks are free again as of
 * t_ns. The ports of a node do not work in the order of time, to within their lag: so the update is sorted in.
 */
static __noinline void credit_post(struct port *in, u32 c, u64 t_ns, u64 blocks)
{
	u32 up_id = in->peer, i, k;
	u64 at_ns = cbfc_tick(&in->cbfc, t_ns) + in->pfc_delay_ns;
	struct port *up = port_of(up_id);
	struct pfc_event *e, *prev;
	struct tclass *uc;

	if (!up)
		return;
	uc = class_at(up, c);
	i = uc->event_tail;
	bounded (PFC_EVENTS) /* no more can wait */
	{
		if (i == uc->event_head)
			break;
		e = event_at(up_id, c, i - 1);
		if (!e)
			return;
		if (e->at_ns == at_ns) {
			__sync_fetch_and_add(&e->pause, blocks);
			return;
		}
		if (e->at_ns < at_ns)
			break;
		i--;
	}
	if (uc->event_tail - uc->event_head >= PFC_EVENTS) { /* the sender sleeps: the first has long been in force */
		e = event_at(up_id, c, uc->event_head);
		if (!e)
			return;
		cbfc_tx_update(&uc->tx, uc->tx.fccl + e->pause);
		uc->event_head++;
	}
	k = uc->event_tail;
	bounded (PFC_EVENTS) /* later updates move up */
	{
		if (k == i)
			break;
		e = event_at(up_id, c, k);
		prev = event_at(up_id, c, k - 1);
		if (!e || !prev)
			return;
		*e = *prev;
		k--;
	}
	e = event_at(up_id, c, i);
	if (!e)
		return;
	e->at_ns = at_ns;
	e->pause = blocks;
	__sync_fetch_and_add(&uc->event_tail, 1);
}

/* credit_account: a packet that came in by `in` entered or left the node. */
static __always_inline void credit_account(struct port *in, struct tclass *ic, u32 c, s64 bytes, u64 t_ns)
{
	u64 blocks = cbfc_blocks(bytes > 0 ? bytes : -bytes);

	if (bytes > 0) {
		cbfc_receive(&ic->rx, blocks);
		if (ic->rx.held > ic->held_max_blocks)
			ic->held_max_blocks = ic->rx.held;
		return;
	}
	cbfc_release(&ic->rx, blocks);
	credit_post(in, c, t_ns, blocks);
}

/* ingress_account: bytes that came in by port `id` entered or left the node; PAUSE or RESUME its peer. */
static __always_inline void ingress_account(u32 id, u32 c, s64 bytes, u64 free_bytes, u64 t_ns)
{
	struct port *in = port_of(id);
	struct tclass *ic;
	u64 held;
	u32 frames;

	if (!in)
		return;
	ic = class_at(in, c);
	if (!ic->lossless)
		return;
	if (in->cbfc.buffer_blocks) {
		credit_account(in, ic, c, bytes, t_ns);
		return;
	}
	held = __sync_fetch_and_add(&ic->ingress_bytes, bytes) + bytes;
	frames = pfc_repeat(&ic->repeat, t_ns, bytes > 0, held > pfc_xoff_bytes(&in->pfc, free_bytes));
	if (frames)
		pause_repeated(id, ic, c, t_ns, frames);
	switch (pfc_check(&in->pfc, ic->pausing, held, free_bytes)) {
	case PFC_PAUSE: /* the exchange lets one CPU post, if two cross at once */
		if (!__sync_lock_test_and_set(&ic->pausing, 1))
			pfc_post(in, c, t_ns, 1);
		break;
	case PFC_RESUME:
		if (__sync_lock_test_and_set(&ic->pausing, 0))
			pfc_post(in, c, t_ns, 0);
		break;
	case PFC_NONE:
		break;
	}
}

/* buffer_account: bytes entered or left the node's shared buffer. Returns what is free. */
static __always_inline u64 buffer_account(struct node *n, s64 bytes)
{
	u64 used = __sync_fetch_and_add(&n->used_bytes, bytes) + bytes;

	if (used > n->used_max_bytes)
		n->used_max_bytes = used;
	return n->buffer_bytes > used ? n->buffer_bytes - used : 0;
}

/*
 * switched_on: OFF, which began at from_ns, ends. NP-ECN and TCD want the queue of then, in packets and bytes: of those
 * that had ideally arrived.
 */
static __always_inline void switched_on(struct port *p, struct tclass *k, u32 id, u32 c, u64 from_ns, u64 t_ns)
{
	const struct ring *q = &k->queue;
	u64 bytes = k->queue_bytes;
	u32 n = ring_len(q);

	bounded (RING_MAX) { /* few are later: those of the last quantum */
		struct slot *s;

		if (!n || !k->marked)
			break; /* nobody asks, and a host has many for later */
		s = slot_at(q, q->head + n - 1);
		if (!s || s->t_ns <= t_ns)
			break;
		n--;
		bytes -= s->len;
	}
	npecn_resume(&k->cp, n);
	if (p->max_ton_ns)
		tcd_on(&k->tcd, t_ns, bytes);
	if (p->watch) {
		struct event_off e = {.kind = EVENT_OFF, .port = id, .class = c, .from_ns = from_ns, .to_ns = t_ns};

		emit(&e, sizeof(e));
	}
}

/*
 * class_start: the ideal time at which class c can start its first packet, NEVER while it is paused without
 * end in sight. Applies the PAUSE and RESUME events up to that time, and to limit_ns at most.
 */
static __always_inline u64 class_start(struct port *p, struct tclass *k, u32 id, u32 c, u64 t_ns, u64 limit_ns)
{
	if (t_ns < k->ready_ns)
		t_ns = k->ready_ns;
	bounded (PFC_EVENTS) /* no more can wait */
	{
		struct pfc_event *e;

		if (k->event_head == k->event_tail)
			break;
		e = event_at(id, c, k->event_head);
		if (!e)
			break;
		if (e->pause) {
			if (e->at_ns > t_ns || e->at_ns > limit_ns)
				break; /* the packet starts before, or it is too early to say */
			k->paused = 1;
			k->paused_since_ns = e->at_ns;
			k->pause_received++;
		} else {
			if (e->at_ns > limit_ns)
				return e->at_ns; /* known in advance, not due yet */
			k->paused = 0;
			k->ready_ns = e->at_ns;
			if (t_ns < e->at_ns)
				t_ns = e->at_ns;
			k->paused_ns += e->at_ns - k->paused_since_ns;
			k->resume_received++;
			switched_on(p, k, id, c, k->paused_since_ns, e->at_ns);
		}
		k->event_head++;
	}
	return k->paused ? NEVER : t_ns;
}

/*
 * credit_start: the ideal time at which class c, which could otherwise at t_ns, can start a packet of so many blocks;
 * NEVER while no credits for it are in sight. Applies the updates up to that time, and to limit_ns at most.
 */
static __always_inline u64 credit_start(struct port *p, struct tclass *k, u32 id, u32 c, u64 t_ns, u64 limit_ns,
					u64 blocks)
{
	if (t_ns < k->ready_ns)
		t_ns = k->ready_ns;
	if (t_ns > limit_ns)
		return t_ns; /* too early to say */
	bounded (PFC_EVENTS) /* no more can wait */
	{
		struct pfc_event *e;

		if (k->event_head == k->event_tail)
			break;
		e = event_at(id, c, k->event_head);
		if (!e)
			break;
		if (e->at_ns > t_ns) {
			if (cbfc_may_send(&k->tx, blocks))
				break; /* the packet starts before */
			if (!k->off) {
				k->off = 1;
				k->off_since_ns = t_ns;
			}
			if (e->at_ns > limit_ns)
				return e->at_ns; /* known in advance, not due yet */
			t_ns = e->at_ns;
		}
		cbfc_tx_update(&k->tx, k->tx.fccl + e->pause);
		k->event_head++;
		if (k->off && cbfc_may_send(&k->tx, blocks)) {
			k->off = 0;
			k->ready_ns = e->at_ns;
			k->paused_ns += e->at_ns - k->off_since_ns;
			switched_on(p, k, id, c, k->off_since_ns, e->at_ns);
		}
	}
	if (cbfc_may_send(&k->tx, blocks))
		return t_ns;
	if (!k->off) {
		k->off = 1;
		k->off_since_ns = t_ns;
	}
	return NEVER;
}

/*
 * lossless_start: the ideal time at which lossless class c, which could otherwise at t_ns, can start its first packet,
 * of so many bytes; NEVER while it may not and no end is in sight. Decides up to limit_ns.
 *
 * A global function, as next_start, which has a loop around it: the verifier looks at it once.
 */
__noinline u64 lossless_start(u32 id, u32 c, u64 t_ns, u64 limit_ns, u32 len)
{
	struct port *p = port_of(id);
	struct tclass *k;

	if (!p)
		return NEVER;
	k = class_at(p, c);
	if (p->credits)
		return credit_start(p, k, id, c, t_ns, limit_ns, cbfc_blocks(len));
	return class_start(p, k, id, c, t_ns, limit_ns);
}

/* --- the port --- */

/* joins: the packet is in the class queue from now on. */
static __always_inline void joins(struct port *p, struct tclass *k, u32 len)
{
	k->queue_bytes += len;
	p->queue_bytes += len;
	if (p->queue_bytes > p->bin_queue_max_bytes)
		p->bin_queue_max_bytes = p->queue_bytes;
	if (p->queue_bytes > p->queue_max_bytes)
		p->queue_max_bytes = p->queue_bytes;
}

/* leaves: bytes of class c that came in by port `ingress` leave the node's buffer and that port's account. */
static __always_inline void leaves(struct port *p, u32 c, u32 len, u32 ingress, u64 t_ns)
{
	struct node *n = node_of(p);
	u64 free_bytes;

	if (!n)
		return;
	free_bytes = buffer_account(n, -(s64)len);
	if (ingress)
		ingress_account(ingress, c, -(s64)len, free_bytes, t_ns);
}

/* judged: whether packets of the class may be dropped when they ideally arrive, and join the queue only then. */
static __always_inline bool judged(const struct port *p, const struct tclass *k)
{
	return k->marked && (p->wred_bytes || p->limit_bytes);
}

/* refuse: the cause to count if the queue does not take the packet, which has ideally arrived; NULL if it does. */
static __always_inline u64 *refuse(struct port *p, const struct tclass *k, const struct slot *s)
{
	if (!k->arrived_bytes)
		return NULL; /* the first of a queue is always taken */
	if (p->limit_bytes && k->arrived_bytes + s->len > p->limit_bytes)
		return &p->dropped_tail;
	if (p->wred_bytes && s->not_ect && k->arrived_bytes >= p->wred_bytes)
		return &p->dropped_wred;
	return NULL;
}

/* drop_slot: the packet is gone; its slot stays, without a length, until the queue's head gets there. */
static __always_inline void drop_slot(struct port *p, struct tclass *k, u32 c, struct slot *s, u64 t_ns)
{
	struct sk_buff *skb = bpf_kptr_xchg(&s->skb, NULL);

	if (skb)
		bpf_kfree_skb(skb);
	k->dropped++;
	p->gone_packets++;
	p->gone_bytes += s->len;
	leaves(p, c, s->len, s->ingress, t_ns);
	s->len = 0;
}

/*
 * arrive_by: count in what had ideally arrived by t_ns. Between two starts packets only arrive, so each finds the queue
 * that it would ideally have found: WRED and the queue's limit judge by it.
 */
static __always_inline void arrive_by(struct port *p, struct tclass *k, u32 c, u64 t_ns)
{
	bool may_drop = judged(p, k);

	bounded (RING_MAX) { /* each packet is counted in once */
		struct slot *s;
		u64 *cause;

		if (k->arrived == k->queue.tail)
			break;
		s = slot_at(&k->queue, k->arrived);
		if (!s || s->t_ns > t_ns)
			break;
		k->arrived++;
		if (may_drop) {
			cause = refuse(p, k, s);
			if (cause) {
				(*cause)++;
				drop_slot(p, k, c, s, t_ns);
				continue;
			}
			joins(p, k, s->len);
		}
		k->arrived_bytes += s->len;
	}
}

/* skip_dropped: the head of the queue is a packet, or none. */
static __always_inline void skip_dropped(struct tclass *k)
{
	struct ring *q = &k->queue;

	bounded (RING_MAX) { /* each is skipped once */
		struct slot *s;

		if (q->head == q->tail)
			break;
		s = slot_at(q, q->head);
		if (!s || s->len)
			break;
		q->head++;
		k->dropped--;
	}
}

/* change_rate: apply the rate changes that are due at t_ns. */
static __always_inline void change_rate(struct port *p, u32 id, u64 t_ns)
{
	bounded (RATE_CHANGES) {
		u32 key = id * RATE_CHANGES + p->rate_next;
		struct rate_change *c;

		if (p->rate_next >= p->rate_changes)
			break;
		c = bpf_map_lookup_elem(&rate_changes, &key);
		if (!c || !c->at_ns || c->at_ns > t_ns)
			break;
		p->rate_bps = c->rate_bps;
		p->rate_next++;
	}
}

/* congestion_point: QCN's. Returns the verdict, and what the CNM says of the queue. */
static __always_inline u8 congestion_point(struct port *p, struct tclass *k, u32 len, u32 *queue)
{
	struct qcn_sample s = qcn_cp_packet(&p->cp, &p->qcn, k->arrived_bytes, len);

	*queue = (u32)(u16)qcn_units(s.qoff_bytes) << 16 | (u16)qcn_units(s.qdelta_bytes);
	return s.qntz_fb << CARRY_FB_SHIFT;
}

/*
 * judge: what to do about the packet that class k sends at t_ns, by the queue it leaves behind: who had arrived by
 * then. It waited for a RESUME or for credits, or not. Returns the verdict; detectors that only say something change
 * none.
 */
static __always_inline u8 judge(struct port *p, struct tclass *k, const struct slot *s, u32 len, u64 t_ns, bool waited,
				u32 *queue)
{
	bool npecn = false, fecn = false, over;
	enum tcd_verdict tcd;
	u8 verdict = 0;

	*queue = 0;
	if (!k->marked)
		return 0;
	if (p->watch || p->marker == MARKER_NPECN)
		npecn = npecn_transmit(&k->cp, k->arrived - k->queue.head);
	if (p->watch || p->marker == MARKER_FECN)
		fecn = fecn_mark(&k->fecn, &p->fecn, k->arrived_bytes, len, waited);
	switch (p->marker) {
	case MARKER_NPECN:
		verdict = npecn ? CARRY_CE : 0;
		break;
	case MARKER_RED:
		if (p->wred_bytes && s->not_ect)
			break; /* WRED let it pass */
		verdict = red_mark(&p->red, k->arrived_bytes, random_next(&p->random)) ? CARRY_CE : 0;
		break;
	case MARKER_QCN:
		verdict = congestion_point(p, k, len, queue);
		break;
	case MARKER_FECN:
		verdict = fecn ? CARRY_CE : 0;
		break;
	}
	if (p->watch) {
		p->bin_detected.npecn += npecn;
		p->bin_detected.fecn += fecn;
		p->bin_detected.ecn += k->arrived_bytes > p->ecn_bytes;
	}
	if (!p->max_ton_ns)
		return verdict;
	over = p->tcd ? verdict & CARRY_CE : k->arrived_bytes > p->over_bytes;
	tcd = tcd_dequeue(&k->tcd, p->max_ton_ns, t_ns, k->arrived_bytes, over);
	p->tcd_state = k->tcd.state;
	p->bin_detected.tcd_ce += tcd == TCD_MARK_CE;
	p->bin_detected.tcd_ue += tcd == TCD_MARK_UE;
	if (!p->tcd)
		return verdict;
	return tcd == TCD_MARK_CE ? CARRY_CE : tcd == TCD_MARK_UE ? CARRY_UE : 0;
}

/* sort_in: make room at the tail's ideal place: later packets move up by one. Returns the free index. */
static __always_inline u32 sort_in(struct ring *q, u64 t_ns)
{
	u32 i = q->tail;

	bounded (RING_MAX) { /* few are later: those of the last quantum, and what a host has for later */
		struct slot *prev, *s;
		struct sk_buff *skb;

		if (i == q->head)
			break;
		prev = slot_at(q, i - 1);
		s = slot_at(q, i);
		if (!prev || !s || prev->t_ns <= t_ns)
			break;
		s->t_ns = prev->t_ns;
		s->len = prev->len;
		s->ingress = prev->ingress;
		s->not_ect = prev->not_ect;
		skb = bpf_kptr_xchg(&prev->skb, NULL);
		if (skb) {
			skb = bpf_kptr_xchg(&s->skb, skb);
			if (skb)
				bpf_kfree_skb(skb);
		}
		i--;
	}
	return i;
}

/*
 * arrival_ns: the ideal arrival the packet carries, if it came by a port of ours. One made here arrives now, or at
 * the departure time its sender gave it (SO_TXTIME), so that bursts of many hosts can start at the same instant.
 */
static __always_inline u64 arrival_ns(struct sk_buff *skb, u32 ingress, u64 now)
{
	struct qdisc_skb_cb *cb = (void *)skb->cb;
	u64 t_ns;

	if (!ingress) {
		t_ns = (u64)skb->tstamp >> dilation_shift;
		return t_ns > now ? t_ns : now;
	}
	t_ns = (u64) * (u32 *)&cb->data[CARRY_HIGH * 4] << 32 | *(u32 *)&cb->data[CARRY_LOW * 4];
	return t_ns < now ? t_ns : now;
}

/* refused: a packet that came in by this port is dropped at once: its credits go back. */
static __always_inline void refused(u32 ingress, u32 c, u32 len, u64 t_ns)
{
	struct port *in = port_of(ingress);

	if (in && in->cbfc.buffer_blocks && class_at(in, c)->lossless)
		credit_post(in, c, t_ns, cbfc_blocks(len));
}

SEC("struct_ops/npecn_enqueue")
int BPF_PROG(npecn_enqueue, struct sk_buff *skb, struct Qdisc *sch, struct bpf_sk_buff_ptr *to_free)
{
	u32 id = sch->dev_queue->dev->group, c = skb->priority & (CLASSES - 1), len = skb->len, mark = skb->mark;
	u32 ingress = (mark & MARK_INGRESS_MASK) == MARK_INGRESS ? mark & MARK_PORT_MASK : 0;
	struct port *p = port_of_qdisc(sch, id);
	u64 now = now_ns(), t_ns, free_bytes, *cause;
	struct tclass *k;
	struct node *n;
	struct slot *s;
	bool late;
	u32 i;

	if (!p)
		goto drop_silent;
	t_ns = arrival_ns(skb, ingress, now);
	k = &p->classes[c];
	cause = &p->dropped_class;
	if (!k->queue.mask)
		goto drop;
	cause = &p->dropped_ring;
	if (ring_full(&k->queue))
		goto drop;
	n = node_of(p);
	cause = &p->dropped_buffer;
	if (!n || (n->buffer_bytes && n->used_bytes + len > n->buffer_bytes))
		goto drop;

	if (t_ns < p->decided_ns)
		p->causality++;
	i = sort_in(&k->queue, t_ns);
	s = slot_at(&k->queue, i);
	if (!s)
		goto drop;
	late = (s32)(i - k->arrived) < 0;
	if (late) { /* among those that count as arrived */
		k->arrived++;
		k->arrived_bytes += len;
	}
	s->t_ns = t_ns;
	s->len = len;
	s->ingress = ingress;
	s->not_ect = ingress && mark & MARK_NOT_ECT;
	skb = bpf_kptr_xchg(&s->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	k->queue.tail++;
	p->backlogged |= 1 << c;

	sample(p, id, t_ns < now ? t_ns : now); /* what a host has for later does not end a bin early */
	if (late || !judged(p, k))
		joins(p, k, len);
	p->enqueued_packets++;
	p->enqueued_bytes += len;
	if (t_ns < p->serve_ns)
		p->serve_ns = t_ns;
	sch->q.qlen++;
	sch->qstats.backlog += len;

	free_bytes = buffer_account(n, len);
	if (ingress)
		ingress_account(ingress, c, len, free_bytes, t_ns);
	return NET_XMIT_SUCCESS;
drop:
	(*cause)++;
	if (ingress)
		refused(ingress, c, len, t_ns);
drop_silent:
	sch->qstats.drops++;
	bpf_qdisc_skb_drop(skb, to_free);
	return NET_XMIT_DROP;
}

/* transmit: class c starts its first packet at t_ns; it goes on the wire. A global function, as next_start. */
__noinline int transmit(u32 id, u32 c, u64 t_ns)
{
	struct port *p = port_of(id);
	struct sk_buff *skb;
	struct slot *s, *w;
	struct tclass *k;
	bool waited;
	u32 len;

	if (!p)
		return 0;
	k = class_at(p, c);
	s = slot_at(&k->queue, k->queue.head);
	w = slot_at(&p->wire, p->wire.tail);
	if (!s || !w)
		return 0;
	len = s->len;
	waited = k->ready_ns > s->t_ns && k->ready_ns > p->link_free_ns;
	sample(p, id, t_ns);
	change_rate(p, id, t_ns);
	arrive_by(p, k, c, t_ns);
	p->link_free_ns = t_ns + (u64)len * 8000000000ULL / (p->rate_bps ?: 1);
	p->decided_ns = t_ns;
	k->queue.head++;
	k->queue_bytes -= len;
	p->queue_bytes -= len;
	k->arrived_bytes -= len;
	if (p->credits && k->lossless)
		cbfc_send(&k->tx, cbfc_blocks(len));
	w->verdict = judge(p, k, s, len, t_ns, waited, &w->queue);
	if (w->verdict & CARRY_CE) {
		k->marked_packets++;
		p->bin_marked_packets++;
	}
	k->sent_packets++;
	k->sent_bytes += len;
	p->bin_sent_packets++;
	p->bin_sent_bytes += len;
	leaves(p, c, len, s->ingress, t_ns);
	w->t_ns = p->link_free_ns + p->delay_ns;
	w->len = len;
	skb = bpf_kptr_xchg(&s->skb, NULL);
	if (!skb)
		return 0;
	skb = bpf_kptr_xchg(&w->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	p->wire.tail++;
	skip_dropped(k);
	if (!ring_len(&k->queue))
		p->backlogged &= ~(1 << c);
	return 0;
}

/*
 * next_start: the earliest ideal time at which a class can start a packet, and among equals the highest class
 * (strict priority, no preemption), as time * CLASSES + class. If that is after limit_ns, it is when to look again,
 * at the PAUSE events too; NEVER if no class has a packet.
 *
 * A global function, so that the verifier looks at it by itself: the load is many times faster.
 */
__noinline u64 next_start(u32 id, u64 now, u64 limit_ns)
{
	u64 best_ns = NEVER, poll_ns = NEVER;
	struct port *p = port_of(id);
	u32 best = 0;

	if (!p)
		return NEVER;
	for (u32 i = 0; i < CLASSES; i++) {
		u32 c = CLASSES - 1 - i;
		struct tclass *k = class_at(p, c);
		struct slot *s;
		u64 t_ns;

		if (!(p->backlogged & (1 << c)))
			continue;
		s = slot_at(&k->queue, k->queue.head);
		if (!s)
			continue;
		t_ns = s->t_ns > p->link_free_ns ? s->t_ns : p->link_free_ns;
		if (k->lossless) {
			t_ns = lossless_start(id, c, t_ns, limit_ns, s->len);
			if (t_ns == NEVER)
				poll_ns = now + p->pfc_delay_ns / 2;
		}
		if (t_ns < best_ns) {
			best_ns = t_ns;
			best = c;
		}
	}
	if (best_ns > limit_ns && poll_ns < best_ns)
		best_ns = poll_ns;
	return best_ns == NEVER ? NEVER : best_ns * CLASSES + best;
}

/*
 * serve: decide every packet that starts by limit_ns, in ideal order. Returns the ideal time at which there is
 * something to decide again: a start, or a look at the PAUSE events.
 */
static __always_inline u64 serve(struct port *p, u32 id, u64 now, u64 limit_ns)
{
	bounded (SERVE_MAX) {
		u64 next;

		if (!p->backlogged)
			return NEVER;
		if (ring_full(&p->wire))
			return limit_ns; /* dequeue makes room */
		next = next_start(id, now, limit_ns);
		if (next == NEVER)
			return NEVER;
		if (next / CLASSES > limit_ns)
			return next / CLASSES;
		transmit(id, next % CLASSES, next / CLASSES);
	}
	return limit_ns; /* more than SERVE_MAX: go on at once */
}

static __always_inline void count_lateness(struct port *p, u64 late_ns)
{
	u64 b = late_ns >> LATE_BUCKET_SHIFT;

	if (b >= LATE_BUCKETS)
		b = LATE_BUCKETS - 1;
	barrier_var(b); /* or clang checks another register than it indexes by */

	if (late_ns > p->late_max_ns)
		p->late_max_ns = late_ns;
	p->late_sum_ns += late_ns;
	p->late[b]++;
}

/*
 * carry: write the ideal delivery and the verdict into the packet. A global function, for its argument's tag: from 7.3
 * on the verifier lets no program write to an sk_buff that it took out of a map, unless it is passed as trusted.
 */
__noinline int carry(struct sk_buff *skb __arg_trusted, u64 t_ns, u32 verdict, u32 queue, u32 id)
{
	struct qdisc_skb_cb *cb = (void *)skb->cb;

	*(u32 *)&cb->data[CARRY_WORD * 4] = CARRY_MAGIC | verdict;
	*(u32 *)&cb->data[CARRY_LOW * 4] = t_ns;
	*(u32 *)&cb->data[CARRY_HIGH * 4] = t_ns >> 32;
	if (verdict >> CARRY_FB_SHIFT & CARRY_FB_MASK) {
		*(u32 *)&cb->data[CARRY_QUEUE * 4] = queue;
		*(u32 *)&cb->data[CARRY_PORT * 4] = id;
	}
	return 0;
}

SEC("struct_ops/npecn_dequeue")
struct sk_buff *BPF_PROG(npecn_dequeue, struct Qdisc *sch)
{
	u32 id = sch->dev_queue->dev->group;
	struct port *p = port_of_qdisc(sch, id);
	u64 now = now_ns(), wake_ns;
	struct sk_buff *skb;
	struct slot *w;

	if (!p)
		return NULL;
	if (p->serve_ns + p->lag_ns <= now)
		p->serve_ns = serve(p, id, now, now - p->lag_ns);
	if (p->gone_packets) {
		sch->q.qlen -= p->gone_packets;
		sch->qstats.backlog -= p->gone_bytes;
		sch->qstats.drops += p->gone_packets;
		p->gone_packets = p->gone_bytes = 0;
	}
	wake_ns = p->serve_ns == NEVER ? NEVER : p->serve_ns + p->lag_ns;

	if (ring_len(&p->wire)) {
		w = slot_at(&p->wire, p->wire.head);
		if (!w)
			return NULL;
		if (w->t_ns <= now) {
			skb = bpf_kptr_xchg(&w->skb, NULL);
			p->wire.head++;
			if (!skb)
				return NULL;
			carry(skb, w->t_ns, w->verdict, w->queue, id);
			count_lateness(p, now - w->t_ns);
			p->delivered_packets++;
			sch->q.qlen--;
			sch->qstats.backlog -= w->len;
			bpf_qdisc_bstats_update(sch, skb);
			return skb;
		}
		if (w->t_ns < wake_ns)
			wake_ns = w->t_ns;
	}
	if (wake_ns == NEVER)
		return NULL;
	/* a host's port is on time to the ns: TCP small queues wait for its packets to leave */
	if (p->delay_ns)
		wake_ns = (wake_ns + quantum_ns - 1) & ~(quantum_ns - 1);
	bpf_qdisc_watchdog_schedule(sch, to_kernel_ns(wake_ns), 0);
	return NULL;
}

SEC("struct_ops/npecn_init")
int BPF_PROG(npecn_init, struct Qdisc *sch, struct nlattr *opt, struct netlink_ext_ack *extack)
{
	struct port *p = port_of(sch->dev_queue->dev->group);

	if (!p || !p->rate_bps)
		return -19; /* -ENODEV: the device's group is no configured port */
	if (p->owner)
		return -16; /* -EBUSY: the port has a qdisc, here or at another device */
	p->owner = (u64)sch;
	sch->limit = RING_MAX;
	p->serve_ns = NEVER;
	return 0;
}

/* flush: free what a ring holds. */
static __always_inline u64 flush(struct ring *r)
{
	u64 freed = 0;

	bounded (RING_MAX) {
		struct sk_buff *skb;
		struct slot *s;

		if (r->head == r->tail)
			break;
		s = slot_at(r, r->head++);
		if (!s)
			break;
		skb = bpf_kptr_xchg(&s->skb, NULL);
		if (!skb)
			continue;
		bpf_kfree_skb(skb);
		freed++;
	}
	return freed;
}

/* release: a class queue's packets leave the shared buffer and their ingress ports' accounts. */
static __always_inline void release(struct port *p, u32 c)
{
	struct node *n = node_of(p);
	struct tclass *k = class_at(p, c);
	struct ring *q = &k->queue;
	u32 i = q->head;

	bounded (RING_MAX) {
		struct slot *s;

		if (i == q->tail || !n)
			break;
		s = slot_at(q, i++);
		if (!s)
			break;
		if (s->ingress)
			ingress_account(s->ingress, c, -(s64)s->len, buffer_account(n, -(s64)s->len), now_ns());
		else
			buffer_account(n, -(s64)s->len);
	}
	p->queue_bytes -= k->queue_bytes;
	k->queue_bytes = 0;
	k->arrived_bytes = 0;
	k->arrived = q->tail;
	k->dropped = 0;
}

SEC("struct_ops/npecn_reset")
void BPF_PROG(npecn_reset, struct Qdisc *sch)
{
	struct port *p = port_of_qdisc(sch, sch->dev_queue->dev->group);

	if (!p)
		return;
	for (u32 c = 0; c < CLASSES; c++) {
		release(p, c);
		p->dropped_reset += flush(&class_at(p, c)->queue);
	}
	p->dropped_reset += flush(&p->wire);
	p->backlogged = 0;
	p->serve_ns = NEVER;
	sch->q.qlen = 0;
	sch->qstats.backlog = 0;
}

SEC("struct_ops/npecn_destroy")
void BPF_PROG(npecn_destroy, struct Qdisc *sch)
{
	struct port *p = port_of_qdisc(sch, sch->dev_queue->dev->group);

	if (p)
		p->owner = 0; /* reset has freed everything */
}

struct Qdisc_ops {
	int (*enqueue)(struct sk_buff *, struct Qdisc *, struct bpf_sk_buff_ptr *);
	struct sk_buff *(*dequeue)(struct Qdisc *);
	int (*init)(struct Qdisc *, struct nlattr *, struct netlink_ext_ack *);
	void (*reset)(struct Qdisc *);
	void (*destroy)(struct Qdisc *);
	char id[16];
} __attribute__((preserve_access_index));

SEC(".struct_ops.link")
struct Qdisc_ops npecn = {
	.enqueue = (void *)npecn_enqueue,
	.dequeue = (void *)npecn_dequeue,
	.init = (void *)npecn_init,
	.reset = (void *)npecn_reset,
	.destroy = (void *)npecn_destroy,
	.id = "npecn",
};
