// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dcqcn: DCQCN's sender as a TCP congestion control.
 *
 * tc/bpf/rp_dcqcn.bpf.c cuts the rate as CNPs come. Here every ACK lets the timers and the byte counter do what was
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
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader; the values of SIGCOMM 2015, Fig. 14. */
const volatile struct dcqcn_params params = {
	.recovery =
		{
			.line_rate_bps = 10000000000ULL,
			.min_rate_bps = 100000000,
			.rai_bps = 40000000,
			.rhai_bps = 200000000,
			.timer_ns = 55000,
			.byte_counter_bytes = 10000000,
			.threshold = 5,
		},
	.alpha_timer_ns = 55000,
	.g = Q24_ONE / 256,
	.initial_alpha = Q24_ONE,
	.clamp_target = 1,
};

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

static __always_inline void control_loss(struct flow_entry *flow, u64 now)
{
	dcqcn_rp_loss(&flow->rp, loaded(params), now, flow->sender.sent_bytes);
}

static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->rp.recovery.rate_bps;
}

static __always_inline u64 line_rate_bps(void)
{
	return params.recovery.line_rate_bps;
}

#include "include/rate_control.h"

RATE_CONTROL("dcqcn");
