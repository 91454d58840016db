// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * hpcc: HPCC's sender as a congestion control, for the simulator.
 *
 * Highlights:
 *   1. Its switches write telemetry into packets, and receivers echo it. No qdisc of ours and no
 *      TCP option does that, so the scheme is refused on Linux.
 *   2. It is paced, and has a window of its rate times T.
 *
 * Try it: pcn run hpcc
 */
#include "include/control.h"
#include "include/telemetry.h"
#include "algo/hpcc.h"

/* clang-format off */
const volatile struct hpcc_params params
	SCHEME("title", "HPCC: the rate follows what the switches of the path measure")
	SCHEME("source", "Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019")
	SCHEME("sender", "rate")
	SCHEME("telemetry", "int")
	= {};
/* clang-format on */

struct hpcc_flow {
	FLOW_HEAD;
	struct hpcc_rp rp;
};

#define CONTROL	   hpcc
#define flow_entry hpcc_flow
#define CONTROL_NO_LOSS_RULE
#define CONTROL_FLAGS 0

static __always_inline void control_start(struct flow_entry *flow)
{
	hpcc_rp_init(&flow->rp, loaded(params));
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	const struct sender *s = &flow->sender;

	hpcc_rp_ack(&flow->rp, loaded(params), s->segments - s->retransmissions, s->packets,
		    &telemetry);
}

/* HPCC has no rule for a loss: what follows it brings telemetry. */
static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	hpcc_rp_set_rate(&flow->rp, rate_bps);
}

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#include "include/rate_control.h"
