// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pcn_ap: PCN's sender with averaging (Alizadeh et al., SIGMETRICS 2011): half a period after each
 * change of its rate by a CNP, the rate moves half-way back. A copy of bpf/cc/pcn.bpf.c for
 * experiments, where CNPs report marks and no host doubts.
 *
 *	pcn run netns-lab/experiments/pcn-ap/pcn-ap.yaml --engine sim
 */
#include "include/control.h"
#include "algo/pcn.h"

/* clang-format off */
const volatile struct pcn_rp_params params
	SCHEME("title", "PCN with averaging: half a period later, half of a change is taken back")
	SCHEME("source", "Cheng et al., Re-architecting Congestion Management in Lossless "
		"Ethernet, NSDI 2020")
	SCHEME("sender", "rate")
	SCHEME("marker", "npecn")
	SCHEME("hears", "cnp")
	SCHEME("ecn", "needed")
	SCHEME("notification", "pcn")
	= {};
/* clang-format on */

/* Parameters of receivers. Senders know their T. */
const volatile struct pcn_np_params np_params = {};

struct pcn_ap_flow {
	FLOW_HEAD;
	struct pcn_rp rp;
	u64 before_bps; /* the rate before the latest change */
	u64 due_ns;	/* when half of it is taken back; 0: it was */
};

#define CONTROL	      pcn_ap
#define flow_entry    pcn_ap_flow
#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN

static __always_inline void control_start(struct flow_entry *flow)
{
	pcn_rp_init(&flow->rp, loaded(params));
}

static __always_inline void average(struct flow_entry *flow, u64 now_ns)
{
	if (!flow->due_ns || now_ns < flow->due_ns)
		return;
	flow->rp.send_rate_bps = (flow->rp.send_rate_bps + flow->before_bps) / 2;
	flow->due_ns = 0;
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	average(flow, e->now_ns);
}

/* Algorithm 1, lines 4 to 11, and half a period until averaging. */
static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	u64 before_bps;

	average(flow, event->now_ns);
	before_bps = flow->rp.send_rate_bps;
	pcn_rp_cnp(&flow->rp, loaded(params), event->now_ns, event->ce, event->rec_rate_bps);
	if (flow->rp.send_rate_bps == before_bps)
		return;
	flow->before_bps = before_bps;
	flow->due_ns = event->now_ns + ((const struct pcn_np_params *)loaded(np_params))->t_ns / 2;
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	pcn_rp_loss(&flow->rp, loaded(params));
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.send_rate_bps;
}

static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	flow->rp.send_rate_bps = rate_bps;
}

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#define CONTROL_RATE_UNIT_BPS pcn_rate_unit_bps(loaded(np_params))
#include "include/rate_control.h"
#include "include/react.h"
