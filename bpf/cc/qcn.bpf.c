// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qcn: QCN's reaction point as a TCP congestion control. Each flow has its own rate limiter.
 *
 * CNMs from switches cut the rate: the reaction point in this file calls control_cnm
 * (include/react_cnm.h). Every ACK brings the timer and the byte counter up to date and sets the
 * pacing rate. The window never binds.
 *
 * Highlights:
 *   1. No timer runs. The state is brought up to date at each ACK and CNM.
 *   2. QCN works at layer 2 and needs no ECN.
 *
 * Try it: pcn run hol --algo qcn
 */
#include "include/control.h"
#include "algo/qcn.h"

/* clang-format off */
const volatile struct qcn_rp_params params
	SCHEME("title", "QCN: switches tell senders how long their queue is")
	SCHEME("source", "IEEE 802.1Qau; Prabhakar, QCN: Quantized Congestion Notification "
		"(slides)")
	SCHEME("sender", "rate")
	SCHEME("marker", "qcn")
	SCHEME("hears", "cnm")
	= {};
/* clang-format on */

/* Parameters of switches. */
const struct qcn_cp_params marker_params = {};

struct qcn_flow {
	FLOW_HEAD;
	struct qcn_rp rp;
};

#define CONTROL	      qcn
#define flow_entry    qcn_flow
#define CONTROL_FLAGS 0

static __always_inline void control_start(struct flow_entry *flow)
{
	qcn_rp_init(&flow->rp, loaded(params), now_ns());
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	qcn_rp_advance(&flow->rp, loaded(params), e->now_ns, flow->sender.sent_bytes);
}

static __always_inline void control_cnm(struct flow_entry *flow, const struct cnm_event *event)
{
	qcn_rp_cnm(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes,
		   event->qntz_fb);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	qcn_rp_loss(&flow->rp, loaded(params), now_ns, flow->sender.sent_bytes);
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.recovery.rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	recovery_set(&flow->rp.recovery, rate_bps);
	flow->rp.limited = 1; /* as after a CNM: the rate recovers from here */
}

static __always_inline u64 line_rate_bps(void)
{
	return params.recovery.line_rate_bps;
}

#include "include/rate_control.h"
#include "include/react_cnm.h"
