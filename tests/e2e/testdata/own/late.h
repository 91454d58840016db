/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * late: a marking rule for switch ports. Marks packets that waited for longer than a threshold.
 *
 * A control uses it by SCHEME("marker", "own ./late.h"), and has its parameters by including it:
 *	#include "late.h"
 *	const struct own_marker_params marker_params PREFIX("marking") = {};
 */
#ifndef OWN_late_H
#define OWN_late_H

#include "include/marker.h"

/* Keys of the control's section, under the variable's PREFIX. */
struct own_marker_params {
	u64 threshold_ns PARAM("Time in the queue above which a packet is marked", "1ns to 1s",
			       "5us");
};

/* What a port remembers for each class; all zero at first. */
struct own_marker {
	u64 marked_packets;
};

/* A packet starts on the wire: e has now_ns, sojourn_ns, queue_bytes, rate_bps, len_bytes and random. */
static __always_inline bool own_mark(const struct own_marker_params *p, struct own_marker *state,
				     const struct mark_event *e)
{
	if (e->sojourn_ns <= p->threshold_ns)
		return false;
	state->marked_packets++;
	return true;
}

#endif
