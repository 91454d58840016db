// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pcn: PCN's sender as a TCP congestion control.
 *
 * CNPs change the rate: the reaction point in this file calls control_cnp (include/react.h), which
 * runs Algorithm 1 (algo/pcn.h). A flow enters the table when it is established. Every ACK sets the
 * pacing rate. The window never binds.
 *
 * Highlights:
 *   1. Where CNPs report marks, TCP's ECN echo is ignored. ECN must still be negotiated, or no
 *      packet is marked.
 *   2. With feedback "ack", "ece" or "auto" the sender makes CNPs of the marks that ACKs report,
 *      see algo/pcn.h.
 *   3. A loss halves the rate, once per recovery. The fabric should have none.
 *   4. On hosts a flow goes by Algorithm 1 only where marks tell of congestion: algo/doubt.h.
 *
 * Try it: pcn run hol --algo pcn
 */
#include "include/control.h"
#include "algo/pcn.h"

/* clang-format off */
const volatile struct pcn_rp_params params
	SCHEME("title", "PCN: switches identify congested flows, receivers tell them their rate")
	SCHEME("source", "Cheng et al., Re-architecting Congestion Management in Lossless "
		"Ethernet, NSDI 2020")
	SCHEME("sender", "rate")
	SCHEME("marker", "npecn")
	SCHEME("hears", "cnp")
	SCHEME("ecn", "needed")
	SCHEME("notification", "pcn when feedback is cnp or auto")
	SCHEME("accecn", "yes when feedback is ack or auto")
	SCHEME("counts_acks", "yes when feedback is ack or auto or ece")
	SCHEME("bursts_by", "burst or young")
	= {};
/* clang-format on */

/* Parameters of receivers. With feedback from ACKs the sender uses them itself. */
const volatile struct pcn_np_params np_params = {};

struct pcn_flow {
	FLOW_HEAD;
	struct pcn_rp rp;
	struct pcn_ack ack; /* feedback without CNPs */
};

#define CONTROL	      pcn
#define flow_entry    pcn_flow
#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN

static __always_inline void control_start(struct flow_entry *flow)
{
	pcn_rp_init(&flow->rp, loaded(params));
}

static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	struct pcn_ack_event ack = {
		.now_ns = e->now_ns,
		.packets = flow->sender.packets,
		.marked = flow->sender.marked_packets,
		.frame_bytes = e->frame_bytes,
		.cnps = flow->sender.cnp_decrease + flow->sender.cnp_increase,
	};

	flow->rp.app_limited = e->app_limited;
	flow->rp.rtt_ns = (u64)flow->sender.srtt_us * 1000 >> dilation_shift;
	pcn_rp_age(&flow->rp, e->acked_bytes);
	if (params.feedback == PCN_FEEDBACK_CNP)
		return; /* the rate changes with CNPs only */
	pcn_rp_ack(&flow->rp, &flow->ack, loaded(params), loaded(np_params), params.feedback, &ack);
}

/* Algorithm 1, lines 4 to 11. */
static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	struct pcn_rp_params p = *(const struct pcn_rp_params *)loaded(params);

	if (p.min_rate_bps < event->floor_bps)
		p.min_rate_bps = event->floor_bps;
	pcn_rp_cnp(&flow->rp, &p, event->now_ns, event->ce, event->rec_rate_bps);
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

/* The application paused, and sends again. */
static __always_inline void control_restart(struct flow_entry *flow)
{
	pcn_rp_restart(&flow->rp, loaded(params));
}

#define CONTROL_BURST_NS	     params.burst_ns
#define CONTROL_RESTART_NS	     (params.young_bytes ? params.t_ns : 0)
#define CONTROL_DOUBT		     (&((const struct pcn_rp_params *)loaded(params))->doubt)
#define CONTROL_ACK_DECREASES(flow_) ((flow_)->ack.decreases)
#define CONTROL_EXPECTS_CNPS                                                                       \
	(params.feedback == PCN_FEEDBACK_CNP ? DOUBT_CNPS_ALWAYS : DOUBT_CNPS_NEVER)
#define CONTROL_RATE_UNIT_BPS pcn_rate_unit_bps(loaded(np_params))
#include "include/rate_control.h"
#include "include/react.h"
