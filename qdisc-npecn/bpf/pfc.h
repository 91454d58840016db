/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PFC between two ports: the receiving one posts PAUSE and RESUME, the sending one obeys them.
 * Thresholds are in algo/pfc.h.
 */
#ifndef NPECN_PFC_H
#define NPECN_PFC_H

#include "off.h"

/* post_pause: tell the port at the other end of `in` to stop or go on, as of t_ns here. */
static __noinline void post_pause(struct port *in, u32 c, u64 t_ns, u32 pause)
{
	u32 up_id = in->config.peer;
	struct port *up = port_of(up_id);
	struct event_pfc log = {.kind = EVENT_PFC, .port = up_id, .class = c, .pause = pause};
	struct link_event *e;
	struct class_tx *tx;
	u64 at_ns = t_ns + in->config.pfc_delay_ns;
	u32 i;

	if (!up)
		return;
	tx = &class_at(up, c)->tx;
	if (at_ns < tx->event_last_ns) /* ports decide one after the other: not before the latest */
		at_ns = tx->event_last_ns;
	tx->event_last_ns = at_ns;
	i = tx->event_tail;
	if (i - tx->event_head < LINK_EVENTS) {
		e = link_event_at(up_id, c, i);
		if (!e)
			return;
		e->at_ns = at_ns;
		e->value = pause;
		__sync_fetch_and_add(&tx->event_tail, 1);
	} else { /* drop it and the one before, its opposite: nobody stays paused for good */
		__sync_fetch_and_sub(&tx->event_tail, 1);
		__sync_fetch_and_add(&up->counters.events_lost, 2);
	}
	if (pause)
		class_at(in, c)->counters.pause_sent++;
	else
		class_at(in, c)->counters.resume_sent++;
	log.sent_ns = at_ns - in->config.pfc_delay_ns;
	log.effect_ns = at_ns;
	emit(&log, sizeof(log));
}

/* pause_repeated: a port that repeats PAUSE has sent so many more by t_ns, and they count there. */
static __noinline void pause_repeated(u32 id, struct tclass *k, u32 c, u64 t_ns, u32 frames)
{
	u64 bin = sample_ns ? t_ns / sample_ns : 0;
	struct class_rx *rx = &k->rx;
	struct event_repeat e = {
		.kind = EVENT_REPEAT,
		.port = id,
		.class = c,
		.bin = rx->repeat_bin,
		.frames = rx->repeat_frames,
	};

	if (bin > rx->repeat_bin) {
		if (e.frames)
			emit(&e, sizeof(e));
		rx->repeat_bin = bin;
		rx->repeat_frames = 0;
	}
	rx->repeat_frames += frames;
}

/* pfc_account: bytes that came in by `in`, port id, entered or left the node. */
static __always_inline void pfc_account(struct port *in, struct tclass *k, u32 id, u32 c, s64 bytes,
					u64 free_bytes, u64 t_ns)
{
	const struct pfc_params *params = &in->config.pfc;
	struct class_rx *rx = &k->rx;
	u64 held = __sync_fetch_and_add(&rx->bytes, bytes) + bytes;
	bool over = held > pfc_xoff_bytes(params, free_bytes);
	u32 frames = pfc_repeat(&rx->repeat, t_ns, bytes > 0, over);

	if (frames)
		pause_repeated(id, k, c, t_ns, frames);
	switch (pfc_check(params, rx->pausing, held, free_bytes)) {
	case PFC_PAUSE: /* the exchange lets one CPU post, if two cross at once */
		if (!__sync_lock_test_and_set(&rx->pausing, 1))
			post_pause(in, c, t_ns, 1);
		break;
	case PFC_RESUME:
		if (__sync_lock_test_and_set(&rx->pausing, 0))
			post_pause(in, c, t_ns, 0);
		break;
	case PFC_NONE:
		break;
	}
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

	if (t_ns < tx->ready_ns)
		t_ns = tx->ready_ns;
	if (tx->event_head == tx->event_tail)
		return tx->paused ? NEVER : t_ns;
	/* no more can wait */
	bounded (LINK_EVENTS) {
		struct link_event *e;

		if (tx->event_head == tx->event_tail)
			break;
		e = link_event_at(id, c, tx->event_head);
		if (!e)
			break;
		if (e->value) {
			if (e->at_ns > t_ns || e->at_ns > limit_ns)
				break; /* the packet starts before, or it is too early to say */
			tx->paused = 1;
			tx->paused_since_ns = e->at_ns;
			k->counters.pause_received++;
		} else {
			if (e->at_ns > limit_ns)
				return e->at_ns; /* known in advance, not due yet */
			tx->paused = 0;
			tx->ready_ns = e->at_ns;
			if (t_ns < e->at_ns)
				t_ns = e->at_ns;
			k->counters.paused_ns += e->at_ns - tx->paused_since_ns;
			k->counters.resume_received++;
			end_off(p, k, id, c, tx->paused_since_ns, e->at_ns);
		}
		tx->event_head++;
	}
	return tx->paused ? NEVER : t_ns;
}

#endif
