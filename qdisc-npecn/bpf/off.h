/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The end of OFF: a class queue that was paused, or lacked credits, may send again. */
#ifndef NPECN_OFF_H
#define NPECN_OFF_H

#include "ring.h"
#include "series.h"

/* queue.h, which counts in by the accounts of flow control, and so includes this */
int arrive_by(struct port *p, u32 c, u64 t_ns);

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

#endif
