// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qcn: QCN's reaction point as a TCP congestion control: a rate limiter for each flow.
 *
 * the reaction point below cuts the rate as CNMs come from switches. Here every ACK lets the timer and the byte counter do
 * what was due, and sets the pacing rate; the window never binds.
 *
 * Highlights:
 *   1. No timer runs: it is brought up to date at each ACK and CNM.
 *   2. QCN is of layer 2 and needs no ECN.
 *
 * Try it: pcn run hol --algo qcn
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "include/scheme.h"
#include "algo/qcn.h"
#include "include/cnp_event.h"
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

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

/* What switches are set to. */
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

/* A CNM came. */
static __always_inline void control_cnm(struct flow_entry *flow, const struct cnm_event *event)
{
	qcn_rp_cnm(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes,
		   event->qntz_fb);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now)
{
	qcn_rp_loss(&flow->rp, loaded(params), now, flow->sender.sent_bytes);
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.recovery.rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	recovery_set(&flow->rp.recovery, rate_bps);
	flow->rp.limited = 1; /* as after a CNM: it goes on from here */
}

static __always_inline u64 line_rate_bps(void)
{
	return params.recovery.line_rate_bps;
}

#include "include/rate_control.h"
#include "include/react_cnm.h"
