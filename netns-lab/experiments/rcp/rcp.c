// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rcp: RCP's sender, which takes the rate R of the router (router.h), and AP-RCP's, which averages:
 * it obeys, and then moves half-way back to its rate before, once or twice until the next R is due
 * (slides 33 to 43 of B. Prabhakar). The switch tells R as QCN's feedback, which has room for it in
 * the simulator only:
 *
 *	pcn run netns-lab/experiments/rcp/rcp.yaml --engine sim
 */
#include "include/control.h"
#include "router.h"

struct rcp_params {
	u64 line_rate_bps FROM("line_rate");
	u64 period_ns KEY("period") PARAM("T of the router", "1us to 1s", "100us");
	u32 steps PARAM("How often the rate moves half-way back: 0 is RCP, 1 AP-RCP, 2 two-step",
			"0 to 3", "0");
	u32 pad;
};

/* clang-format off */
const volatile struct rcp_params params
	SCHEME("title", "RCP: switches compute the rate; AP-RCP: senders average")
	SCHEME("source", "Prabhakar, Congestion Management for Data Centers, slides 33 to 43")
	SCHEME("sender", "rate")
	SCHEME("marker", "own ./router.h")
	SCHEME("hears", "cnm")
	= {};
/* clang-format on */

const struct own_marker_params marker_params PREFIX("router") = {};

struct rcp_state {
	u64 rate_bps, before_bps; /* now, and before the latest change of R */
	u64 told_bps;		  /* R */
	u64 told_ns;		  /* when it changed */
	u32 done;		  /* steps of averaging since then */
	u32 pad;
};

struct rcp_flow {
	FLOW_HEAD;
	struct rcp_state state;
};

#define CONTROL	      rcp
#define flow_entry    rcp_flow
#define CONTROL_FLAGS 0

static __always_inline void control_start(struct flow_entry *flow)
{
	flow->state.rate_bps = params.line_rate_bps;
}

/* Moves half-way back as often as it is time to. */
static __always_inline void rcp_average(struct rcp_state *s, u64 now_ns)
{
	u64 part_ns = params.period_ns / (params.steps + 1), i;

	for (i = 0; i < 3; i++) {
		if (s->done >= params.steps || now_ns < s->told_ns + (s->done + 1) * part_ns)
			return;
		s->rate_bps = (s->rate_bps + s->before_bps) / 2;
		s->done++;
	}
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	rcp_average(&flow->state, e->now_ns);
}

static __always_inline void control_cnm(struct flow_entry *flow, const struct cnm_event *event)
{
	struct rcp_state *s = &flow->state;
	u64 told_bps = (u64)event->qntz_fb * RCP_UNIT_BPS;

	rcp_average(s, event->now_ns);
	if (told_bps == s->told_bps || !told_bps)
		return;
	while (s->told_bps && s->done < params.steps) {
		s->rate_bps = (s->rate_bps + s->before_bps) / 2;
		s->done++;
	}
	s->before_bps = s->rate_bps;
	/* A change in proportion: without averaging this is R itself. */
	if (s->told_bps && params.steps)
		s->rate_bps = s->rate_bps * (told_bps / 100) / (s->told_bps / 100 ?: 1);
	else
		s->rate_bps = told_bps;
	s->told_bps = told_bps;
	s->told_ns = event->now_ns;
	s->done = 0;
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->state.rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	flow->state.rate_bps = rate_bps;
}

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#include "include/rate_control.h"
#include "include/react_cnm.h"
