/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Marks if one of the event's fields is over a threshold, and no more than `most` packets. */
#include "include/marker.h"

struct own_marker_params {
	u64 threshold;
	u32 field; /* 0: queue_bytes, 1: len_bytes, 2: rate_bps, 3: random */
	u32 most;
};

struct own_marker {
	u32 marked;
};

static __always_inline bool own_mark(const struct own_marker_params *p, struct own_marker *state,
				     const struct mark_event *e)
{
	u64 fields[] = {e->queue_bytes, e->len_bytes, e->rate_bps, e->random};

	if (fields[p->field & 3] <= p->threshold || state->marked >= p->most)
		return false;
	state->marked++;
	return true;
}
