// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dcqcn: DCQCN's sender as a TCP congestion control.
 *
 * the reaction point below cuts the rate as CNPs come. Here every ACK lets the timers and the byte counter do what was
 * due, and sets the pacing rate; the window never binds.
 *
 * Highlights:
 *   1. No timer runs: alpha's and the rate's are brought up to date at each ACK and CNP. A sender that gets no ACKs
 *	is paused, and has no use for its rate.
 *   2. TCP's ECN echo is ignored: marks come back in CNPs. ECN must still be negotiated, or nothing is marked.
 *
 * Try it: pcn run hol --algo dcqcn
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "include/scheme.h"
#include "algo/dcqcn.h"
#include "algo/red.h"
#include "include/cnp_event.h"
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

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

/* What receivers and switches are set to. */
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

/* A CNP came. */
static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	if (event->ue)
		dcqcn_rp_ue(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes);
	else
		dcqcn_rp_cnp(&flow->rp, loaded(params), event->now_ns, flow->sender.sent_bytes);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now)
{
	dcqcn_rp_loss(&flow->rp, loaded(params), now, flow->sender.sent_bytes);
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
#include "include/rate_control.h"
#include "include/react.h"
