// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dctcp_rate: the DCTCP of HPCC's simulator as a TCP congestion control. It paces, and starts at
 * line rate.
 *
 * Highlights:
 *   1. Accurate ECN: every ACK counts the packets that arrived marked. HPCC's ACKs carry the mark
 *      of the packet that they acknowledge.
 *   2. HPCC's sender has a window too: in the simulator, `transport: {window: bdp, scale_window:
 *      true}`.
 *
 * Try it: pcn run hol --algo dctcp_rate
 */
#include "include/control.h"
#include "algo/dctcp_rate.h"
#include "algo/red.h"

/* clang-format off */
const volatile struct dctcp_rate_params params
	SCHEME("title", "HPCC's DCTCP: a rate that follows the share of marked packets")
	SCHEME("source", "github.com/alibaba-edu/High-Precision-Congestion-Control, "
		"simulation/run.py --cc dctcp")
	SCHEME("sender", "rate")
	SCHEME("marker", "red")
	SCHEME("accecn", "yes")
	SCHEME("ecn", "needed")
	= {};
/* clang-format on */

/* Parameters of switches: a threshold. The defaults are those of run.py. */
const struct red_params marker_params PREFIX("marking") = {};

struct dctcp_rate_flow {
	FLOW_HEAD;
	struct dctcp_rp rp;
};

#define CONTROL		 dctcp_rate
#define flow_entry	 dctcp_rate_flow
#define CONTROL_LOSS_CUT "false" /* HPCC's simulator has no rule */
#define CONTROL_FLAGS	 TCP_CONG_NEEDS_ECN

static __always_inline void control_start(struct flow_entry *flow)
{
	dctcp_rp_init(&flow->rp, loaded(params));
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	const struct sender *s = &flow->sender;
	u32 sent = s->segments - s->retransmissions, acked = s->packets;

	if ((s32)(acked - sent) > 0)
		acked = sent; /* Linux counts the SYN as delivered, but not as sent */
	dctcp_rp_ack(&flow->rp, loaded(params), sent, acked, s->marked_packets);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	dctcp_rp_loss(&flow->rp, loaded(params));
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	flow->rp.rate_bps = rate_bps;
}

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#include "include/rate_control.h"
