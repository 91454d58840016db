/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TIMELY's sender: the rate follows the gradient of the round-trip time.
 *
 * Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015, Algorithm
 * 1; and the authors' code snippet (timely-code-snippet.cc), which paces every packet. Where the
 * two differ there is a parameter.
 *
 *	rtt_diff = (1 - ewma) * rtt_diff + ewma * (rtt - prev_rtt)
 *	gradient = rtt_diff / minRTT
 *	rtt < T_low:	rate += delta
 *	rtt > T_high:	rate *= 1 - beta * (1 - T_high / rtt)
 *	gradient <= 0:	rate += N * delta
 *			N = 5 after 5 completions in a row with falling RTT, else 1
 *	else		rate *= 1 - beta * gradient
 *
 * The rule for TCD is derived here. The path's marks give the direction, TIMELY the amount: while
 * CE is in force the rate only falls, while UE is it holds, without a mark it only rises. TIMELY
 * goes on measuring in all three cases.
 */
#ifndef PCN_ALGO_TIMELY_H
#define PCN_ALGO_TIMELY_H

#include "fixed.h"
#include "tcd_rp.h"

#define TIMELY_NS_SHIFT 16 /* the mean RTT difference is in units of 2^-16 ns */

struct timely_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps PARAM("Least rate of a flow", "1kbps to line_rate", "line_rate / 1000");
	u64 delta_bps PARAM("Additive increase", "1bps to 800Gbps", "line_rate / 1000");
	u64 t_low_ns PARAM("RTT below which the rate only increases", "0 to t_high", "0");
	u64 t_high_ns PARAM("RTT above which the rate only decreases", "1us to 1s", "1ms");
	/* Above 0 */
	u64 min_rtt_ns PARAM("minRTT, which normalises the gradient; 0: the network's base RTT",
			     "0 to 1s", "0") UNLESS_GIVEN("base_rtt");
	u64 segment_bytes PARAM("Acknowledged bytes per completion; 0: every ACK is a completion",
				"0 to 10MB", "0");
	q24 ewma PARAM("Weight of the newest RTT difference", "1/65536 to 1", "0.02");
	q24 beta PARAM("Multiplicative decrease", "1/65536 to 1", "0.8");
	q24 max_cut PARAM("Largest share of the rate that one update takes away", "1/65536 to 1",
			  "0.5");
	u32 hai_after PARAM("Completions with falling RTT before hyper increase; 0: never",
			    "0 to 1000", "5");
	u32 hai_factor PARAM("N, the number of steps in a hyper increase", "1 to 1000", "5");
	flag delta_factor PARAM("Scale increases and the cut above t_high by min(time since the "
				"last update / min_rtt, 1), as the authors' snippet does",
				"", "true");
	/* 0: no TCD */
	u64 tcd_hold_ns PARAM("How long a mark is in force under +tcd", "1us to 1s",
			      "55us") WITH_TCD;
	flag per_rtt PARAM("A completion is an ACK of what was sent after the one before: one a "
			   "round trip, as in HPCC's simulator. The first only measures",
			   "", "false");
	flag count_increases PARAM("Hyper increase is behind hai_after increases in a row, also "
				   "below t_low, as in HPCC's simulator",
				   "", "false");
};

struct timely_rp {
	u64 rate_bps;
	u64 prev_rtt_ns; /* 0: none yet */
	u64 update_ns;	 /* the latest update */
	u64 acked_bytes; /* since the latest update */
	s64 rtt_diff;	 /* mean, ns << TIMELY_NS_SHIFT */
	u32 falling;	 /* completions in a row with falling RTT, or increases */
	u32 pad;
	struct tcd_rp tcd;
};

static __always_inline void timely_rp_init(struct timely_rp *rp, const struct timely_params *p)
{
	*rp = (struct timely_rp){.rate_bps = p->line_rate_bps};
}

/* share is Q24. */
static __always_inline void timely_cut(struct timely_rp *rp, const struct timely_params *p,
				       u64 share)
{
	if (share > p->max_cut)
		share = p->max_cut;
	rp->rate_bps -= q24_scale(rp->rate_bps, share);
	if (rp->rate_bps < p->min_rate_bps)
		rp->rate_bps = p->min_rate_bps;
}

static __always_inline void timely_add(struct timely_rp *rp, const struct timely_params *p,
				       u64 add_bps)
{
	rp->rate_bps += add_bps;
	if (rp->rate_bps > p->line_rate_bps)
		rp->rate_bps = p->line_rate_bps;
}

/* The moving average of RTT differences, signed. RTTs are below 2^37 ns. */
static __always_inline void timely_mean(struct timely_rp *rp, const struct timely_params *p,
					s64 diff_ns)
{
	s64 step = (diff_ns << TIMELY_NS_SHIFT) - rp->rtt_diff;
	u64 size = step < 0 ? -step : step;

	size = q24_scale(size, p->ewma);
	rp->rtt_diff += step < 0 ? -(s64)size : (s64)size;
}

/* min(time since the latest update / minRTT, 1), Q24: delta_factor of the snippet. */
static __always_inline u32 timely_elapsed(const struct timely_rp *rp, const struct timely_params *p,
					  u64 now_ns)
{
	u64 dt_ns = now_ns - rp->update_ns;

	if (!p->delta_factor || dt_ns >= p->min_rtt_ns)
		return Q24_ONE;
	return (dt_ns << Q24_SHIFT) / (p->min_rtt_ns ?: 1);
}

/* N, the steps of an increase behind so many falls, or increases, which are then one more. */
static __always_inline u32 timely_step_count(struct timely_rp *rp, const struct timely_params *p,
					     u32 behind)
{
	if (p->count_increases)
		rp->falling = behind + 1;
	return p->hai_after && behind >= p->hai_after ? p->hai_factor : 1;
}

/* A completion with this RTT: Algorithm 1. */
static __always_inline void timely_update(struct timely_rp *rp, const struct timely_params *p,
					  u64 now_ns, u64 rtt_ns)
{
	s64 diff_ns = rp->prev_rtt_ns ? (s64)(rtt_ns - rp->prev_rtt_ns) : 0;
	u32 elapsed = timely_elapsed(rp, p, now_ns), factor = 1, increases = rp->falling;

	rp->falling = diff_ns < 0 && !p->count_increases ? rp->falling + 1 : 0;
	timely_mean(rp, p, diff_ns);
	rp->prev_rtt_ns = rtt_ns;
	rp->update_ns = now_ns;
	if (rtt_ns < p->t_low_ns) {
		if (p->count_increases)
			factor = timely_step_count(rp, p, increases);
		timely_add(rp, p, q24_scale(factor * p->delta_bps, elapsed));
		return;
	}
	if (rtt_ns > p->t_high_ns) {
		u32 over = ((rtt_ns - p->t_high_ns) << Q24_SHIFT) / rtt_ns; /* 1 - T_high / rtt */

		timely_cut(rp, p, q24_scale(q24_scale(over, p->beta), elapsed));
		return;
	}
	if (rp->rtt_diff <= 0) {
		factor = timely_step_count(rp, p, p->count_increases ? increases : rp->falling);
		timely_add(rp, p, q24_scale(factor * p->delta_bps, elapsed));
		return;
	}
	/* Q16 of ns, over ns, times beta, in Q24 */
	timely_cut(rp, p,
		   (q24_scale(rp->rtt_diff, p->beta) << (Q24_SHIFT - TIMELY_NS_SHIFT)) /
			   (p->min_rtt_ns ?: 1));
}

/* Takes back a change that the mark in force does not allow. */
static __always_inline void timely_gate(struct timely_rp *rp, const struct timely_params *p,
					u64 now_ns, u64 before_bps)
{
	enum tcd_verdict mark;

	if (!p->tcd_hold_ns)
		return;
	mark = tcd_rp_mark(&rp->tcd, now_ns);
	if (mark == TCD_MARK_UE ||
	    (mark == TCD_MARK_CE ? rp->rate_bps > before_bps : rp->rate_bps < before_bps))
		rp->rate_bps = before_bps;
}

/* rtt_ns is that of the latest acknowledged bytes; 0: not measured. */
static __always_inline void timely_rp_ack(struct timely_rp *rp, const struct timely_params *p,
					  u64 now_ns, u64 rtt_ns, u32 acked_bytes)
{
	u64 before_bps = rp->rate_bps;

	rp->acked_bytes += acked_bytes;
	if (!rtt_ns || !acked_bytes || rp->acked_bytes < p->segment_bytes)
		return;
	if (p->per_rtt && rp->prev_rtt_ns && (s64)(now_ns - rtt_ns - rp->update_ns) < 0)
		return; /* it was sent before the latest update */
	rp->acked_bytes = 0;
	if (p->per_rtt && !rp->prev_rtt_ns) {
		rp->prev_rtt_ns = rtt_ns;
		rp->update_ns = now_ns;
		return;
	}
	timely_update(rp, p, now_ns, rtt_ns);
	timely_gate(rp, p, now_ns, before_bps);
}

/* A loss or a timeout halves the rate. The paper has no rule for it: its fabric is lossless. */
static __always_inline void timely_rp_loss(struct timely_rp *rp, const struct timely_params *p)
{
	timely_cut(rp, p, Q24_ONE / 2);
}

#endif
