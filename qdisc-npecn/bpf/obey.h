/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sending end of flow control: when a class queue may send, by the PAUSE, RESUME and credits
 * that pfc.h and cbfc.h of the other end have posted; and the end of OFF, when a queue that was
 * paused, or lacked credits, may send again.
 */
#ifndef NPECN_OBEY_H
#define NPECN_OBEY_H

#include "queue.h"

/*
 * end_off: OFF, which began at from_ns, ends at t_ns. NP-ECN and TCD want the queue of then, in
 * packets and bytes: of those that had ideally arrived, and were not dropped.
 */
static __always_inline void end_off(struct port *p, struct tclass *k, u32 id, u32 c, u64 from_ns,
				    u64 t_ns)
{
	if (k->config.marked) { /* else nobody asks */
		arrive_by(p, c, t_ns);
		bin_reach(p, id, t_ns);
	}
	npecn_resume(&k->npecn, queue_packets(k));
	if (!(uses & USE_DETECTORS))
		return;
	if (p->config.detect.max_ton_ns)
		tcd_on(&k->tcd, t_ns, k->arrived_bytes);
	if (p->config.detect.watch) {
		struct event_off e = {
			.kind = EVENT_OFF,
			.port = id,
			.class = c,
			.from_ns = from_ns,
			.to_ns = t_ns,
		};

		emit(&e, sizeof(e));
	}
}

/* hears: whether the event is for a queue that does not obey; its watchdog hears it. */
static __always_inline bool hears(struct tclass *k, u32 id, u32 c, const struct link_event *e)
{
	struct guard *g = guard_of(id, c);

	if (!g || !g->deaf)
		return false;
	pfc_watchdog_hears(&g->rule, e->at_ns, e->value);
	k->counters.resume_received += !e->value;
	return true;
}

/* pfc_quiet: the class is not paused, and no event waits. */
static __always_inline bool pfc_quiet(const struct class_tx *tx)
{
	return tx->event_head == tx->event_tail && !tx->paused;
}

/*
 * pfc_start: the ideal time at which class c, which could otherwise at t_ns, can start its first
 * packet; NEVER while it is paused without end in sight. Applies the PAUSE and RESUME events up to
 * that time, and to limit_ns at most.
 */
static __always_inline u64 pfc_start(struct port *p, struct tclass *k, u32 id, u32 c, u64 t_ns,
				     u64 limit_ns)
{
	struct class_tx *tx = &k->tx;
	struct link_ring *r;

	if (t_ns < tx->ready_ns)
		t_ns = tx->ready_ns;
	if (tx->event_head == tx->event_tail)
		return tx->paused ? NEVER : t_ns;
	r = link_ring_of(id, c);
	if (!r)
		return NEVER;
	/* no more can wait */
	bounded (LINK_EVENTS) {
		struct link_event e;
		bool due;

		link_lock(r);
		if (tx->event_head == tx->event_tail) {
			link_unlock(r);
			break;
		}
		e = *link_event_at(r, tx->event_head);
		due = e.at_ns <= limit_ns && (!e.value || e.at_ns <= t_ns);
		if (due)
			tx->event_head++;
		link_unlock(r);
		if (!due && (e.value || !tx->paused))
			break; /* the packet starts before, or it is too early to say */
		if (due && hears(k, id, c, &e))
			continue;
		if (e.value) {
			tx->paused = 1;
			tx->paused_since_ns = e.at_ns;
			k->counters.pause_received++;
		} else {
			if (!due)
				return e.at_ns; /* known in advance, not due yet */
			tx->paused = 0;
			tx->ready_ns = e.at_ns;
			if (t_ns < e.at_ns)
				t_ns = e.at_ns;
			k->counters.paused_ns += e.at_ns - tx->paused_since_ns;
			k->counters.resume_received++;
			end_off(p, k, id, c, tx->paused_since_ns, e.at_ns);
		}
	}
	return tx->paused ? NEVER : t_ns;
}

static __always_inline void cbfc_begin_off(struct class_tx *tx, u64 t_ns)
{
	if (tx->off)
		return;
	tx->off = 1;
	tx->off_since_ns = t_ns;
}

/*
 * cbfc_start: the ideal time at which class c, which could otherwise at t_ns, can start a packet of
 * so many blocks; NEVER while no credits for it are in sight. Applies the updates up to that time,
 * and to limit_ns at most.
 */
static __always_inline u64 cbfc_start(struct port *p, struct tclass *k, u32 id, u32 c, u64 t_ns,
				      u64 limit_ns, u64 blocks)
{
	struct class_tx *tx = &k->tx;
	struct link_ring *r;

	if (t_ns < tx->ready_ns)
		t_ns = tx->ready_ns;
	if (t_ns > limit_ns)
		return t_ns; /* too early to say */
	if (tx->event_head == tx->event_tail)
		goto out;
	r = link_ring_of(id, c);
	if (!r)
		return NEVER;
	/* no more can wait */
	bounded (LINK_EVENTS) {
		struct link_event e;
		bool may, due;

		link_lock(r);
		if (tx->event_head == tx->event_tail) {
			link_unlock(r);
			break;
		}
		e = *link_event_at(r, tx->event_head);
		may = cbfc_may_send(&tx->credits, blocks);
		due = e.at_ns <= t_ns || (!may && e.at_ns <= limit_ns);
		if (due) {
			cbfc_tx_update(&tx->credits, tx->credits.fccl + e.value);
			tx->event_head++;
		}
		link_unlock(r);
		if (e.at_ns > t_ns) {
			if (may)
				break; /* the packet starts before */
			cbfc_begin_off(tx, t_ns);
			if (!due)
				return e.at_ns; /* known in advance, not due yet */
			t_ns = e.at_ns;
		}
		if (tx->off && cbfc_may_send(&tx->credits, blocks)) {
			tx->off = 0;
			tx->ready_ns = e.at_ns;
			k->counters.paused_ns += e.at_ns - tx->off_since_ns;
			end_off(p, k, id, c, tx->off_since_ns, e.at_ns);
		}
	}
out:
	if (cbfc_may_send(&tx->credits, blocks))
		return t_ns;
	cbfc_begin_off(tx, t_ns);
	return NEVER;
}

/*
 * lossless_start: the ideal time at which lossless class c, which could otherwise at t_ns, can
 * start its first packet, of so many bytes; NEVER while it may not and no end is in sight. Decides
 * up to limit_ns.
 *
 * A global function, as next_start, which has a loop around it: the verifier looks at it once. It
 * leaves the time in the port: the verifier of 6.18 takes a value that is returned there, and that
 * the caller compares, for a bug of its own.
 */
__noinline int lossless_start(struct port *p __arg_nonnull, u32 c, u64 t_ns, u64 limit_ns, u32 len)
{
	struct tclass *k = class_at(p, c);
	u32 id = p->config.id;

	if (uses & USE_CBFC && p->config.credits)
		p->state.lossless_ns = cbfc_start(p, k, id, c, t_ns, limit_ns, cbfc_blocks(len));
	else
		p->state.lossless_ns = pfc_start(p, k, id, c, t_ns, limit_ns);
	return 0;
}

#endif
