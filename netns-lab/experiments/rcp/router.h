/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RCP's router (Dukkipati, McKeown; B. Prabhakar, slide 37): every T it computes
 *
 *	R = R (1 + T/d0 (alpha (C - y) - beta q/d0) / C)
 *
 * of the rate y that arrived in T and the queue q, and tells R to each packet's sender.
 */
#ifndef RCP_ROUTER_H
#define RCP_ROUTER_H

#include "include/marker.h"

/*
 * Senders hear of R in units of 8 kbit/s: 24 bits of feedback are up to 134 Gbit/s. With averaging
 * R moves further than the rates of senders, which take a part of each change.
 */
#define RCP_UNIT_BPS 8000
#define RCP_MAX_BPS  ((1ULL << 24) * RCP_UNIT_BPS - RCP_UNIT_BPS)

/* f in units of 2^-20 */
#define RCP_SHIFT 20

struct own_marker_params {
	u64 period_ns KEY("T") PARAM("Time between two values of R", "1us to 1s", "100us");
	u64 d0_ns PARAM("d0, a typical round trip", "1us to 1s", "100us");
	q24 alpha PARAM("Weight of the spare rate", "0 to 10", "0.1");
	q24 beta PARAM("Weight of the queue", "0 to 10", "1");
	u64 first_bps KEY("first_rate") PARAM("R at first", "1Mbps to 10Gbps", "1Gbps");
};

struct own_marker {
	u64 rate_bps; /* R; 0: no packet came yet */
	u64 start_ns; /* of the running T */
	u64 sent_bytes;
	u64 queue_bytes; /* at its start */
};

static __always_inline u64 rcp_scale(u64 value, q24 weight)
{
	return value * weight >> Q24_SHIFT;
}

/* Ends a T: arrivals are what was sent and what the queue has gained. */
static __always_inline void rcp_update(const struct own_marker_params *p, struct own_marker *s,
				       const struct mark_event *e)
{
	u64 elapsed_ns = e->now_ns - s->start_ns;
	u64 capacity = e->rate_bps / 1000 * elapsed_ns / 8000000; /* bytes */
	u64 arrived = s->sent_bytes + e->queue_bytes - s->queue_bytes;
	u64 used = (arrived << RCP_SHIFT) / (capacity ?: 1);
	u64 queue_ns = e->queue_bytes * 8000000 / (e->rate_bps / 1000);
	u64 more = 1ULL << RCP_SHIFT, up, down, change;

	up = used < more ? rcp_scale(more - used, p->alpha) : 0;
	down = used > more ? rcp_scale(used - more, p->alpha) : 0;
	down += rcp_scale((queue_ns << RCP_SHIFT) / p->d0_ns, p->beta);
	change = (up > down ? up - down : down - up) * p->period_ns / p->d0_ns;
	if (up > down)
		s->rate_bps += (s->rate_bps >> 4) * change >> (RCP_SHIFT - 4);
	else if (change < more)
		s->rate_bps -= (s->rate_bps >> 4) * change >> (RCP_SHIFT - 4);
	else
		s->rate_bps = RCP_UNIT_BPS;
	if (s->rate_bps > RCP_MAX_BPS)
		s->rate_bps = RCP_MAX_BPS;
	if (s->rate_bps < p->first_bps / 1000)
		s->rate_bps = p->first_bps / 1000;
}

/* Returns R in units of RCP_UNIT_BPS. */
#define OWN_FEEDBACK
static __always_inline u32 own_feedback(const struct own_marker_params *p, struct own_marker *s,
					const struct mark_event *e)
{
	if (!s->rate_bps) {
		s->rate_bps = p->first_bps;
		s->start_ns = e->now_ns;
	}
	if (e->now_ns - s->start_ns >= p->period_ns) {
		rcp_update(p, s, e);
		s->start_ns = e->now_ns;
		s->sent_bytes = 0;
		s->queue_bytes = e->queue_bytes;
	}
	s->sent_bytes += e->len_bytes;
	return s->rate_bps / RCP_UNIT_BPS;
}

/* Nothing is marked. */
static __always_inline bool own_mark(const struct own_marker_params *p, struct own_marker *state,
				     const struct mark_event *e)
{
	return false;
}

#endif
