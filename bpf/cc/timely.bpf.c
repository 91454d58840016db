// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * timely: TIMELY's sender as a TCP congestion control.
 *
 * TCP itself measures the round trip, of the packets that an ACK covers. The kernel's clock has a
 * resolution of 1 us: 1 ns of the papers' time at a dilation of 2^10, and 1 us on a real host.
 *
 * Highlights:
 *   1. cong_control runs on every ACK. This is the authors' pacing of each packet. With
 *      segment_bytes set, the rate changes once per segment.
 *   2. It needs nothing of receivers and switches, and no ECN.
 *
 * Try it: pcn run hol --algo timely
 */
#include "include/control.h"
#include "algo/timely.h"

/* clang-format off */
const volatile struct timely_params params
	SCHEME("title", "TIMELY: the rate follows the gradient of the round trip")
	SCHEME("source", "Mittal et al., TIMELY: RTT-based Congestion Control for the "
		"Datacenter, SIGCOMM 2015")
	SCHEME("sender", "rate")
	SCHEME("tcd", "yes")
	SCHEME("tcd.marker", "red")
	SCHEME("tcd.notification", "marked")
	SCHEME("tcd.hears", "cnp")
	SCHEME("tcd.values", "dcqcn")
	SCHEME("tcd.ecn", "needed")
	= {};
/* clang-format on */

struct timely_flow {
	FLOW_HEAD;
	struct timely_rp rp;
};

#define CONTROL	      timely
#define flow_entry    timely_flow
#define CONTROL_FLAGS 0

static __always_inline void control_start(struct flow_entry *flow)
{
	timely_rp_init(&flow->rp, loaded(params));
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	timely_rp_ack(&flow->rp, loaded(params), e->now_ns, e->rtt_ns, e->acked_bytes);
}

/* With TCD a CNP says in which direction the rate may change. */
static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	tcd_rp_cnp(&flow->rp.tcd, params.tcd_hold_ns, event->now_ns,
		   event->ue ? TCD_MARK_UE : TCD_MARK_CE);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	timely_rp_loss(&flow->rp, loaded(params));
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

#define CONTROL_CNP_IS_CE 1
#include "include/rate_control.h"
#include "include/react.h"
