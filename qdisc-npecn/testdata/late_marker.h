/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A threshold in time instead of bytes: mark what waited in the queue for longer. */
#include "include/marker.h"

struct own_marker_params {
	u64 threshold_ns;
};

struct own_marker {
	u64 marked;
};

static __always_inline bool own_mark(const struct own_marker_params *p, struct own_marker *state,
				     const struct mark_event *e)
{
	if (e->sojourn_ns <= p->threshold_ns)
		return false;
	state->marked++;
	return true;
}
