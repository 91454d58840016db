// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dcqcn: DCQCN's sender as a TCP congestion control.
 *
 * CNPs cut the rate: the reaction point in this file calls control_cnp (include/react.h). Every ACK
 * brings the timers and the byte counter up to date and sets the pacing rate. The window never
 * binds.
 *
 * Highlights:
 *   1. No timer runs. The timers of alpha and of the rate are brought up to date at each ACK and
 *      CNP. A sender that gets no ACKs is paused, and does not need its rate.
 *   2. TCP's ECN echo is ignored: marks come back in CNPs. ECN must still be negotiated, or no
 *      packet is marked.
 *
 * Try it: pcn run hol --algo dcqcn
 */
#include "include/control.h"
#include "algo/dcqcn.h"
#include "algo/red.h"

/* clang-format off */
const volatile struct dcqcn_params params
	SCHEME("title", "DCQCN: a rate that CNPs cut, and QCN's recovery raises")
	SCHEME("source", "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, "
		"SIGCOMM 2015")
	SCHEME("sender", "rate")
	SCHEME("marker", "red")
	SCHEME("notification", "marked")
	SCHEME("hears", "cnp")
	SCHEME("ecn", "needed")
	SCHEME("tcd", "yes")
	= {};
/* clang-format on */

/* Parameters of receivers and switches. */
const struct dcqcn_np_params np_params = {};
const struct red_params marker_params PREFIX("marking") = {};

struct dcqcn_flow {
	FLOW_HEAD;
	struct dcqcn_rp rp;
};

#define CONTROL	      dcqcn
#define flow_entry    dcqcn_flow
#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN

static __always_inline void control_start(struct flow_entry *flow)
{
	dcqcn_rp_init(&flow->rp, loaded(params), now_ns());
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	dcqcn_rp_advance(&flow->rp, loaded(params), e->now_ns, flow->sender.sent_bytes);
}

static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	if (event->ue)
		dcqcn_rp_ue(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes);
	else
		dcqcn_rp_cnp(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	dcqcn_rp_loss(&flow->rp, loaded(params), now_ns, flow->sender.sent_bytes);
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.recovery.rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	recovery_set(&flow->rp.recovery, rate_bps);
}

static __always_inline u64 line_rate_bps(void)
{
	return params.recovery.line_rate_bps;
}

#define CONTROL_CNP_IS_CE 1
#define CONTROL_OBEYS_CNPS_ALONE
#include "include/rate_control.h"
#include "include/react.h"
