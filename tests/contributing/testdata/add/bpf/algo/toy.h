/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The toy of tests/contributing: additive increase, multiplicative decrease.
 *
 *	a loss			rate = rate / 2
 *	every interval		rate = rate + step
 */
#ifndef PCN_ALGO_TOY_H
#define PCN_ALGO_TOY_H

#include "fixed.h"

struct toy_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps PARAM("Least rate of a flow", "1kbps to line_rate",
			       "min(10Mbps, line_rate / 10)");
	u64 step_bps PARAM("Rate that is added every interval", "1bps to 800Gbps",
			   "line_rate / 200");
	u64 interval_ns PARAM("Time between two increases", "1us to 1s", "50us");
	u32 slots PARAM("A count that divides 100", "1 to 100", "10") DIVIDES("100");
	u32 pad;
};

struct toy_rp {
	u64 rate_bps;
	u64 increase_at_ns; /* when the rate grows next */
	u32 losses STAT("Losses that cut the rate");
	u32 pad;
};

static __always_inline void toy_rp_set(struct toy_rp *t, const struct toy_params *p, u64 rate_bps,
				       u64 now_ns)
{
	t->rate_bps = bounded_rate(rate_bps, p->min_rate_bps, p->line_rate_bps);
	t->increase_at_ns = now_ns + p->interval_ns;
}

static __always_inline void toy_rp_ack(struct toy_rp *t, const struct toy_params *p, u64 now_ns)
{
	if (now_ns >= t->increase_at_ns)
		toy_rp_set(t, p, t->rate_bps + p->step_bps, now_ns);
}

static __always_inline void toy_rp_loss(struct toy_rp *t, const struct toy_params *p, u64 now_ns)
{
	toy_rp_set(t, p, t->rate_bps / 2, now_ns);
	t->losses++;
}

#endif
