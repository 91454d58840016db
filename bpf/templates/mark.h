/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * NAME: a marking rule for switch ports. It marks packets that waited longer than a threshold.
 *
 * A control uses it by SCHEME("marker", "own ./NAME.h"), and sets its parameters by including it:
 *	#include "NAME.h"
 *	const struct own_marker_params marker_params PREFIX("marking") = {};
 */
#ifndef OWN_NAME_H
#define OWN_NAME_H

#include "include/marker.h"

/* Keys of the control's section, under the variable's PREFIX. */
struct own_marker_params {
	u64 threshold_ns PARAM("Time in the queue above which a packet is marked", "1ns to 1s",
			       "5us");
};

/* State of a port, for each class; all zero at first. */
struct own_marker {
	u64 marked_packets;
};

/*
 * A packet starts on the wire. e has now_ns, sojourn_ns, queue_bytes, rate_bps, len_bytes and
 * random.
 */
static __always_inline bool own_mark(const struct own_marker_params *p, struct own_marker *state,
				     const struct mark_event *e)
{
	if (e->sojourn_ns <= p->threshold_ns)
		return false;
	state->marked_packets++;
	return true;
}

#endif
