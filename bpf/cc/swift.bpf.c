// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * swift: Swift's sender as a TCP congestion control.
 *
 * Highlights:
 *   1. The delay is TCP's round trip. It needs nothing of switches. Hosts of the emulation take no
 *      time, so the delay is the fabric's, and there is no window for the endpoint.
 *   2. The window is not below one packet: Swift paces such flows, and TCP's window is in packets.
 *   3. Flows negotiate ECN, as all windows here do, and no switch marks.
 *
 * Try it: pcn run swift
 */
#include "include/control.h"
#include "include/echo.h"
#include "algo/swift.h"

/* clang-format off */
const volatile struct swift_params params
	SCHEME("title", "Swift: a window that keeps the delay at a target")
	SCHEME("source", "Kumar et al., Swift: Delay is Simple and Effective for Congestion "
		"Control in the Datacenter, SIGCOMM 2020")
	SCHEME("sender", "window")
	SCHEME("ecn", "needed")
	= {};
/* clang-format on */

struct flow_entry {
	FLOW_HEAD;
	struct echo receiver;
	struct swift_rp rp;
};

#define CONTROL swift

static __always_inline void control_start(struct flow_entry *flow)
{
	swift_rp_init(&flow->rp, loaded(params));
}

static __always_inline void control_ack(struct flow_entry *flow, const struct window_event *e)
{
	swift_rp_ack(&flow->rp, loaded(params), e->now_ns, e->rtt_ns, e->packets, e->limited);
}

static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	swift_rp_loss(&flow->rp, loaded(params), now_ns);
}

static __always_inline u32 control_window(const struct flow_entry *flow)
{
	return flow->rp.cwnd >> Q24_SHIFT;
}

#include "include/window_control.h"
