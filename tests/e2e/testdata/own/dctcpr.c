// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dctcpr: DCTCP's rule (RFC 8257) for a rate, fed by Accurate ECN.
 *
 *	once an interval:	alpha = (1 - g) * alpha + g * F		F: share of its packets that were marked
 *	if any was marked:	rate = rate * (1 - alpha / 2)
 *	else:			rate = rate + step
 */
#include "include/control.h"

struct dctcpr_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps PARAM("Rate that a flow never goes below", "1kbps to line_rate",
			       "line_rate / 1000");
	u64 step_bps PARAM("Rate that is added in an interval without marks", "1bps to 800Gbps",
			   "line_rate / 500");
	u64 interval_ns PARAM("Time between two changes of the rate; 0: the network's base RTT",
			      "0 to 1s", "0") UNLESS_GIVEN("base_rtt");
	q24 g PARAM("Weight of the newest interval in alpha", "1/65536 to 1", "1/16");
};

/* clang-format off */
const volatile struct dctcpr_params params
	SCHEME("title", "DCTCP's rule for a rate")
	SCHEME("source", "a test")
	SCHEME("sender", "rate")
	SCHEME("marker", "own ./late.h")
	SCHEME("accecn", "yes")
	SCHEME("ecn", "needed") = {};
/* clang-format on */

#include "late.h"
const struct own_marker_params marker_params PREFIX("marking") = {};

struct dctcpr_state {
	u64 rate_bps;
	u64 due_ns; /* when the interval ends */
	q24 alpha STAT("alpha, how congested the path is");
	u32 packets, marked; /* TCP's counts when it began */
	u32 pad;
};

struct flow_entry {
	FLOW_HEAD;
	struct dctcpr_state state;
};

#define CONTROL	      dctcpr
#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	if (rate_bps < params.min_rate_bps)
		rate_bps = params.min_rate_bps;
	if (rate_bps > params.line_rate_bps)
		rate_bps = params.line_rate_bps;
	flow->state.rate_bps = rate_bps;
}

static __always_inline void control_start(struct flow_entry *flow)
{
	control_set_rate(flow, params.line_rate_bps);
	flow->state.alpha = Q24_ONE;
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	struct dctcpr_state *s = &flow->state;
	u32 packets, marked;
	u64 share;

	if (e->now_ns < s->due_ns)
		return;
	packets = flow->sender.packets - s->packets;
	marked = flow->sender.marked_packets - s->marked;
	s->due_ns = e->now_ns + params.interval_ns;
	s->packets = flow->sender.packets;
	s->marked = flow->sender.marked_packets;
	share = ((u64)marked << Q24_SHIFT) / (packets ?: 1);
	if (share > Q24_ONE)
		share = Q24_ONE;
	s->alpha = s->alpha - q24_scale(s->alpha, params.g) + q24_scale(share, params.g);
	if (marked)
		control_set_rate(flow, s->rate_bps - q24_scale(s->rate_bps, s->alpha / 2));
	else
		control_set_rate(flow, s->rate_bps + params.step_bps);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	control_set_rate(flow, flow->state.rate_bps / 2);
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->state.rate_bps;
}

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#include "include/rate_control.h"
