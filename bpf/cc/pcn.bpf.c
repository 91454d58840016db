// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pcn: PCN's sender as a TCP congestion control.
 *
 * The rate is Algorithm 1's, computed by tc/bpf/rp.bpf.c as CNPs come; this file only wires it to TCP: a flow
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
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader; w_min and w_max in Q24. */
const volatile struct pcn_rp_params params = {
	.line_rate_bps = 10000000000ULL,
	.min_rate_bps = 1000000,
	.w_min = Q24_ONE / 128,
	.w_max = Q24_ONE / 2,
};

/* enum pcn_feedback; and for feedback from ACKs what NP has: T and the congested share. */
const volatile u32 feedback = PCN_FEEDBACK_CNP;
const volatile struct pcn_np_params np_params = {.t_ns = 50000, .congested_permille = 950};

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

	if (feedback == PCN_FEEDBACK_CNP)
		return; /* the rate changes with CNPs only */
	pcn_rp_ack(&flow->rp, &flow->ack, loaded(params), loaded(np_params), feedback, &ack);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now)
{
	pcn_rp_loss(&flow->rp, loaded(params));
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.send_rate_bps;
}

static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#include "include/rate_control.h"

RATE_CONTROL("pcn");
