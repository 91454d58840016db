// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * NAME: a rate-based congestion control. Additive increase, multiplicative decrease (AIMD) on CNPs.
 *
 *	a CNP that says congested	rate = rate * (1 - cut), at most once in `interval`
 *	every `interval` without a CNP	rate = rate + step
 *
 * Compile and run it:     pcn run NAME.yaml
 *			pcn run hol --algo ./NAME.c,pcn
 *
 * This file is all there is. Parameters and statistics are described where they are defined:
 * algo/param.h explains how, include/scheme.h does so for the scheme. The functions run in the
 * kernel: integers only, no loop without a bound. The sender is paced at what control_rate returns.
 */
#include "include/control.h"
#include "algo/dcqcn_np.h"
#include "algo/red.h"

/* Parameters: keys of the section `NAME:` of an experiment. PARAM(documentation, range, default) */
struct NAME_params {
	u64 line_rate_bps FROM("line_rate"); /* users do not set this one */
	u64 min_rate_bps PARAM("Least rate of a flow", "1kbps to line_rate",
			       "min(10Mbps, line_rate / 10)");
	u64 step_bps PARAM("Rate that is added every interval", "1bps to 800Gbps",
			   "line_rate / 200");
	u64 interval_ns PARAM("Time between two increases, and between two cuts", "1us to 1s",
			      "50us");
	q24 cut PARAM("Share of the rate that a CNP takes away", "1/65536 to 1", "0.25");
};

/* The scheme: its name, and what it needs of receivers and switches. */
/* clang-format off */
const volatile struct NAME_params params
	SCHEME("title", "NAME: AIMD on CNPs")
	SCHEME("source", "your paper")
	SCHEME("sender", "rate")
	SCHEME("marker", "red")          /* switches mark by RED; or your own: "own ./mark.h" */
	SCHEME("notification", "marked") /* receivers answer a mark with a CNP; or "own ./np.c" */
	SCHEME("hears", "cnp")           /* senders hear CNPs: control_cnp below */
	SCHEME("ecn", "needed")
	= {};
/* clang-format on */

/* Parameters of receivers and switches: keys of the same section. */
const struct dcqcn_np_params np_params = {};
const struct red_params marker_params PREFIX("marking") = {};

/* State of a flow. `pcn flows` and flows.csv show what has a STAT. */
struct NAME_state {
	u64 rate_bps;
	u64 cut_at_ns;	    /* when a CNP cut the rate last; 0: never */
	u64 increase_at_ns; /* when the rate grows next */
	u32 cuts STAT("Times that a CNP cut the rate");
	u32 pad;
};

struct flow_entry {
	FLOW_HEAD;
	struct NAME_state state;
};

#define CONTROL	      NAME
#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN

/* The rate changes now, and grows after an interval. */
static __always_inline void set_rate_bps(struct flow_entry *flow, u64 rate_bps, u64 now_ns)
{
	if (rate_bps < params.min_rate_bps)
		rate_bps = params.min_rate_bps;
	if (rate_bps > params.line_rate_bps)
		rate_bps = params.line_rate_bps;
	flow->state.rate_bps = rate_bps;
	flow->state.increase_at_ns = now_ns + params.interval_ns;
}

/* A flow was established: it starts at line rate. */
static __always_inline void control_start(struct flow_entry *flow)
{
	set_rate_bps(flow, params.line_rate_bps, now_ns());
}

/* An ACK arrived. e has now_ns, rtt_ns, acked_bytes and frame_bytes. */
static __always_inline void control_ack(struct flow_entry *flow, const struct ack_event *e)
{
	if (e->now_ns >= flow->state.increase_at_ns)
		set_rate_bps(flow, flow->state.rate_bps + params.step_bps, e->now_ns);
}

/* A CNP arrived. e has now_ns, ce, ue and rec_rate_bps. */
static __always_inline void control_cnp(struct flow_entry *flow, const struct cnp_event *e)
{
	if (flow->state.cut_at_ns && e->now_ns - flow->state.cut_at_ns < params.interval_ns)
		return;
	set_rate_bps(flow, flow->state.rate_bps - q24_scale(flow->state.rate_bps, params.cut),
		     e->now_ns);
	flow->state.cut_at_ns = e->now_ns;
	flow->state.cuts++;
}

/* A packet was lost, which should not happen in a lossless network. Halve the rate. */
static __always_inline void control_loss(struct flow_entry *flow, u64 now_ns)
{
	set_rate_bps(flow, flow->state.rate_bps / 2, now_ns);
}

/* The rate at which the flow is paced. */
static __always_inline u64 control_rate(const struct flow_entry *flow)
{
	return flow->state.rate_bps;
}

/* An experiment may start a flow at another rate than the line rate. */
static __always_inline void control_set_rate(struct flow_entry *flow, u64 rate_bps)
{
	flow->state.rate_bps = rate_bps;
}

/* For flows that found the flow table full. */
static __always_inline u64 line_rate_bps(void)
{
	return params.line_rate_bps;
}

#define CONTROL_CNP_IS_CE 1 /* a CNP of `marked` means congestion, whatever it says */
#include "include/rate_control.h"
#include "include/react.h"
