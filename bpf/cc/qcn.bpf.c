// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qcn: QCN's reaction point as a TCP congestion control: a rate limiter for each flow.
 *
 * tc/bpf/rp_qcn.bpf.c cuts the rate as CNMs come from switches. Here every ACK lets the timer and the byte counter do
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
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader; the defaults of 802.1Qau for 10 Gbit/s. */
const volatile struct qcn_rp_params params = {
	.recovery =
		{
			.line_rate_bps = 10000000000ULL,
			.min_rate_bps = 5000000,
			.rai_bps = 5000000,
			.rhai_bps = 50000000,
			.timer_ns = 15000000,
			.byte_counter_bytes = 150000,
			.threshold = 5,
			.half = RECOVERY_HALF_ACTIVE,
		},
	.gd = Q24_ONE / 128,
	.min_decrease_factor = Q24_ONE / 2,
};

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

static __always_inline void control_loss(struct flow_entry *flow, u64 now)
{
	qcn_rp_loss(&flow->rp, loaded(params), now, flow->sender.sent_bytes);
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

RATE_CONTROL("qcn");
