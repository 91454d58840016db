/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A rate-based congestion control that follows in-band network telemetry: what the switches wrote
 * into the packet that an ACK is of. Only the simulator has such switches: no qdisc of ours and no
 * TCP option does that, so such a scheme is refused on Linux.
 *
 * A control includes this behind params, which has line_rate_bps, and the definitions of
 *	CONTROL		its name
 *	ALGORITHM	that of its algorithm, which has struct ALGORITHM_rp with rate_bps, and
 *	ALGORITHM_rp_init(rp, params)		a flow was established
 *	ALGORITHM_rp_ack(rp, params, sent, acked, telemetry)
 *						an ACK arrived; the packets since the flow began
 *	ALGORITHM_rp_set_rate(rp, rate_bps)	sets its rate
 */
#ifndef PCN_TELEMETRY_CONTROL_H
#define PCN_TELEMETRY_CONTROL_H

#include "../algo/hpcc.h"
#include "program.h"

#define ITS(what_) JOIN(ALGORITHM, what_)

/* The simulator writes this before it tells a control of an ACK. */
struct int_header telemetry;

struct flow_entry {
	FLOW_HEAD;
	struct ITS(rp) rp;
};

#define CONTROL_NO_LOSS_RULE
#define CONTROL_FLAGS 0

static __always_inline void control_start(struct flow_entry *flow)
{
	ITS(rp_init)(&flow->rp, loaded(params));
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	const struct sender *s = &flow->sender;

	ITS(rp_ack)
	(&flow->rp, loaded(params), s->segments - s->retransmissions, s->packets, &telemetry);
}

/* The papers have no rule for a loss: what follows it brings telemetry. */
static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	ITS(rp_set_rate)(&flow->rp, rate_bps);
}

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#include "rate_control.h"

#endif
