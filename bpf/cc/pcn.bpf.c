// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pcn: PCN's sender as a TCP congestion control.
 *
 * The rate is Algorithm 1's, computed by the reaction point below as CNPs come; this file only wires it to TCP: a flow
 * enters the table when it is established, every ACK sets the pacing rate, and the window never binds.
 *
 * Highlights:
 *   1. TCP's ECN echo is ignored where marks come back in CNPs. ECN must still be negotiated, or nothing is marked.
 *   2. With feedback "ack" or "auto" it is made of what ACKs tell of marks, where no CNPs come: see bpf/algo/pcn.h.
 *   3. A loss halves the rate, once per recovery; the fabric should have none.
 *
 * Try it: pcn run hol --algo pcn
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "include/scheme.h"
#include "algo/pcn.h"
#include "include/cnp_event.h"
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* clang-format off */
const volatile struct pcn_rp_params params
	SCHEME("title", "PCN: receivers say by how much, switches say who")
	SCHEME("source", "Cheng et al., Re-architecting Congestion Management in Lossless "
		"Ethernet, NSDI 2020")
	SCHEME("sender", "rate")
	SCHEME("marker", "npecn")
	SCHEME("hears", "cnp")
	SCHEME("ecn", "needed")
	SCHEME("notification", "pcn when feedback is cnp or auto")
	SCHEME("accecn", "yes when feedback is ack or auto")
	SCHEME("counts_acks", "yes when feedback is ack or auto or ece")
	= {};
/* clang-format on */

/* What receivers are set to; and, for feedback from ACKs, what the sender makes of those. */
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

	if (params.feedback == PCN_FEEDBACK_CNP)
		return; /* the rate changes with CNPs only */
	pcn_rp_ack(&flow->rp, &flow->ack, loaded(params), loaded(np_params), params.feedback, &ack);
}

/* A CNP came: Algorithm 1, lines 4 to 11. */
static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *event)
{
	struct pcn_rp_params p = *(const struct pcn_rp_params *)loaded(params);

	if (p.min_rate_bps < event->floor_bps)
		p.min_rate_bps = event->floor_bps;
	pcn_rp_cnp(&flow->rp, &p, event->ce, event->rec_rate_bps);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now)
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
