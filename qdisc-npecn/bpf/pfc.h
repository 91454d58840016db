/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PFC between two ports: the receiving one posts PAUSE and RESUME. The sending one obeys them in
 * obey.h. Thresholds are in algo/pfc.h.
 */
#ifndef NPECN_PFC_H
#define NPECN_PFC_H

#include "ring.h"

/*
 * post_pause: tell the port at the other end of `in` to stop or go on, as of t_ns here, if the
 * bytes still ask for it. Other CPUs change them meanwhile: so the choice, the state and the event
 * are one step. Returns whether it told.
 */
static __noinline bool post_pause(struct port *in, u32 c, u64 t_ns, u64 free_bytes)
{
	u32 up_id = in->config.peer;
	struct port *up = port_of(up_id);
	struct link_ring *r = link_ring_of(up_id, c);
	struct guard *g = guard_of(in->config.id, c); /* which no lock allows to look up */
	struct event_pfc log = {.kind = EVENT_PFC, .port = up_id, .class = c};
	struct tclass *k = class_at(in, c);
	struct link_event *e;
	struct class_tx *tx;
	enum pfc_action action;
	u64 at_ns = t_ns + in->config.pfc_delay_ns;
	u32 i, lost = 0;

	if (!up || !r)
		return false;
	tx = &class_at(up, c)->tx;
	link_lock(r);
	if (deaf(g))
		action = k->rx.pausing ? PFC_RESUME : PFC_NONE;
	else
		action = pfc_check(&in->config.pfc, k->rx.pausing, *(volatile u64 *)&k->rx.bytes,
				   free_bytes);
	if (action == PFC_NONE) {
		link_unlock(r);
		return false;
	}
	log.pause = action == PFC_PAUSE;
	/* a full barrier: who changes the bytes from here on sees it */
	__sync_lock_test_and_set(&k->rx.pausing, log.pause);
	if (at_ns < tx->event_last_ns) /* ports decide one after the other: not before the latest */
		at_ns = tx->event_last_ns;
	tx->event_last_ns = at_ns;
	i = tx->event_tail;
	if (i - tx->event_head < LINK_EVENTS) {
		e = link_event_at(r, i);
		e->at_ns = at_ns;
		e->value = log.pause;
		tx->event_tail = i + 1;
	} else { /* drop it and the one before, its opposite: nobody stays paused for good */
		tx->event_tail = i - 1;
		lost = 2;
	}
	if (log.pause)
		k->counters.pause_sent++;
	else
		k->counters.resume_sent++;
	link_unlock(r);
	if (lost)
		__sync_fetch_and_add(&up->counters.events_lost, lost);
	log.sent_ns = at_ns - in->config.pfc_delay_ns;
	log.effect_ns = at_ns;
	emit(&log, sizeof(log));
	return true;
}

/*
 * post_pauses: until the peer knows what the bytes ask for. Bytes that another CPU changed before
 * it could see `pausing` are seen here in the next turn.
 */
static __noinline void post_pauses(struct port *in, u32 c, u64 t_ns, u64 free_bytes)
{
	bounded (LINK_EVENTS) {
		if (!post_pause(in, c, t_ns, free_bytes) || !several_cpus)
			break;
	}
}

/* tell_repeats: a bin with frames is over. Not inline: most packets come without. */
static __noinline void tell_repeats(u32 id, u32 c, u64 bin, u64 frames)
{
	struct event_repeat e = {
		.kind = EVENT_REPEAT, .port = id, .class = c, .bin = bin, .frames = frames};

	emit(&e, sizeof(e));
}

/* repeat_pause: count the frames that a port that repeats PAUSE has sent by t_ns. */
static __always_inline void repeat_pause(struct class_rx *rx, u32 id, u32 c, u64 t_ns, bool arrived,
					 bool over)
{
	struct link_ring *r = several_cpus ? link_ring_of(id, c) : NULL;
	u64 bin, told_bin = 0, told = 0;
	u32 frames;

	if (several_cpus && !r)
		return;
	if (r)
		link_lock(r);
	frames = pfc_repeat(&rx->repeat, t_ns, arrived, over);
	if (frames) {
		bin = sample_ns ? t_ns / sample_ns : 0;
		if (bin > rx->repeat_bin) {
			told_bin = rx->repeat_bin;
			told = rx->repeat_frames;
			rx->repeat_bin = bin;
			rx->repeat_frames = 0;
		}
		rx->repeat_frames += frames;
	}
	if (r)
		link_unlock(r);
	if (told)
		tell_repeats(id, c, told_bin, told);
}

/* pfc_account: bytes that came in by `in`, port id, entered or left the node. */
static __always_inline void pfc_account(struct port *in, struct tclass *k, u32 id, u32 c, s64 bytes,
					u64 free_bytes, u64 t_ns)
{
	const struct pfc_params *params = &in->config.pfc;
	struct class_rx *rx = &k->rx;
	u64 held = __sync_fetch_and_add(&rx->bytes, bytes) + bytes;

	if (deaf(guard_of(id, c)))
		return;
	repeat_pause(rx, id, c, t_ns, bytes > 0, held > pfc_xoff_bytes(params, free_bytes));
	if (pfc_check(params, *(volatile u32 *)&rx->pausing, held, free_bytes) != PFC_NONE)
		post_pauses(in, c, t_ns, free_bytes);
}

#endif
