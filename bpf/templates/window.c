// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * NAME: a window-based congestion control. Additive increase, multiplicative decrease (AIMD) on
 * marks.
 *
 *	an ACK without marks	window = window + step * packets / window
 *	an ACK with marks	window = window * (1 - cut), at most once a round trip
 *
 * Compile and run it:     pcn run NAME.yaml
 *			pcn run hol --algo ./NAME.c,pcn
 *
 * This file is all there is. Parameters and statistics are described where they are defined:
 * algo/param.h explains how, include/scheme.h does so for the scheme. The functions run in the
 * kernel: integers only, no loop without a bound. control_window says how many packets may be in
 * flight.
 */
#include "include/control.h"
#include "include/echo.h"
#include "algo/red.h"

/* Parameters: keys of the section `NAME:` of an experiment. PARAM(documentation, range, default) */
struct NAME_params {
	u32 initial_packets KEY("initial_window")
		PARAM("Window at the start, in packets", "1 to 100000", "10");
	u32 pad;
	q24 step PARAM("Growth of the window in a round trip, in packets", "1/65536 to 100", "1");
	q24 cut PARAM("Share of the window that a mark takes away", "1/65536 to 1", "0.25");
};

/* The scheme: its name, and what it needs of switches. */
/* clang-format off */
const volatile struct NAME_params params
	SCHEME("title", "NAME: AIMD on marks")
	SCHEME("source", "your paper")
	SCHEME("sender", "window")
	SCHEME("marker", "red") /* switches mark by RED; or your own: "own ./mark.h" */
	SCHEME("ecn", "needed")
	= {};
/* clang-format on */

/* Parameters of switches: keys of the same section. */
const struct red_params marker_params PREFIX("marking") = {};

/* State of a flow. `pcn flows` and flows.csv show what has a STAT. */
struct NAME_state {
	wide_q24 window KEY("window_packets") STAT("The window, in packets");
	u64 cut_at_ns; /* when a mark cut the window last */
	u32 cuts STAT("Times that a mark cut the window");
	u32 pad;
};

struct flow_entry {
	FLOW_HEAD;
	struct echo receiver; /* what ACKs report of marks */
	struct NAME_state state;
};

#define CONTROL NAME

/* A flow was established. */
static __always_inline void control_start(struct flow_entry *flow)
{
	flow->state.window = (u64)params.initial_packets << Q24_SHIFT;
}

static __always_inline void cut(struct flow_entry *flow, u32 share, u64 now_ns)
{
	flow->state.window -= q24_scale(flow->state.window, share);
	if (flow->state.window < Q24_ONE)
		flow->state.window = Q24_ONE;
	flow->state.cut_at_ns = now_ns;
	flow->state.cuts++;
}

/* An ACK arrived. e has now_ns, rtt_ns, packets, marked and limited. */
static __always_inline void control_ack(struct flow_entry *flow, const struct window_event *e)
{
	u64 grown;

	if (e->marked) {
		if (e->now_ns - flow->state.cut_at_ns >= e->rtt_ns)
			cut(flow, params.cut, e->now_ns);
		return;
	}
	if (!e->limited)
		return;
	grown = ((u64)e->packets * params.step << Q24_SHIFT) / (flow->state.window ?: 1);
	flow->state.window += grown;
}

/* A packet was lost, which should not happen in a lossless network. Halve the window. */
static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	cut(flow, Q24_ONE / 2, now_ns);
}

/* Packets that may be in flight. */
static __always_inline u32 control_window(const struct flow_entry *flow)
{
	return flow->state.window >> Q24_SHIFT;
}

#include "include/window_control.h"
