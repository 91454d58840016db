/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The end of OFF: a class queue that was paused, or lacked credits, may send again. */
#ifndef NPECN_OFF_H
#define NPECN_OFF_H

#include "ring.h"
#include "series.h"

/*
 * end_off: OFF, which began at from_ns, ends at t_ns. NP-ECN and TCD want the queue of then, in
 * packets and bytes: of those that had ideally arrived.
 */
static __always_inline void end_off(struct port *p, struct tclass *k, u32 id, u32 c, u64 from_ns,
				    u64 t_ns)
{
	const struct ring *q = &k->queue;
	u64 bytes = k->queue_bytes;
	u32 n = ring_len(q);

	/* few are later: those of the last quantum */
	bounded (RING_MAX) {
		struct slot *s;

		if (!n || !k->config.marked)
			break; /* nobody asks, and a host has many for later */
		s = slot_at(q, q->head + n - 1);
		if (!s || s->packet.t_ns <= t_ns)
			break;
		n--;
		bytes -= s->packet.len;
	}
	npecn_resume(&k->npecn, n);
	if (p->config.detect.max_ton_ns)
		tcd_on(&k->tcd, t_ns, bytes);
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

#endif
