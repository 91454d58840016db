// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* toy: what tests/contributing adds, by the words of CONTRIBUTING.md. */
#include "include/control.h"
#include "algo/toy.h"

/* clang-format off */
const volatile struct toy_params params
	SCHEME("title", "A toy: additive increase, multiplicative decrease")
	SCHEME("source", "tests/contributing")
	SCHEME("sender", "rate")
	= {};
/* clang-format on */

struct toy_flow {
	FLOW_HEAD;
	struct toy_rp rp;
};

#define CONTROL	      toy
#define flow_entry    toy_flow
#define CONTROL_FLAGS 0

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

static __always_inline void control_start(struct flow_entry *flow)
{
	toy_rp_set(&flow->rp, loaded(params), params.line_rate_bps, now_ns());
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	toy_rp_ack(&flow->rp, loaded(params), e->now_ns);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	toy_rp_loss(&flow->rp, loaded(params), now_ns);
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	flow->rp.rate_bps = rate_bps;
}

#include "include/rate_control.h"
