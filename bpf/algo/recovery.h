/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rate increase of QCN's reaction point (802.1Qau), which DCQCN took over: a byte counter and a timer, each in
 * fast recovery for its first F cycles after a cut.
 *
 *	both below F:	    fast recovery	CR = (CR + TR) / 2
 *	one at F or above:  active increase	TR = TR + R_AI, CR = (CR + TR) / 2
 *	both:		    hyper increase	TR = TR + (min(stages) - F + 1) * R_HAI, CR = (CR + TR) / 2
 *
 * The state is brought up to date when something is asked of it: at an ACK and at a notification. So one call may
 * find several cycles over; the timer's are taken first.
 */
#ifndef PCN_ALGO_RECOVERY_H
#define PCN_ALGO_RECOVERY_H

#include "fixed.h"

/* Cycles that one call takes; the next call takes the rest. */
#define RECOVERY_CYCLES 32

/* From which stage on the timer and the byte counter run twice as fast. */
enum recovery_half {
	RECOVERY_HALF_NEVER,
	RECOVERY_HALF_AI,  /* active increase: QCN, slide 27 */
	RECOVERY_HALF_HAI, /* hyper increase: ns3-rdma */
};

struct recovery_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps KEY("min_rate") PARAM("Rate that a flow never goes below",
					       "1kbps to line_rate", "min(5Mbps, line_rate / 10)");
	u64 rai_bps KEY("rate_ai")
		PARAM("R_AI, the step of active increase", "1bps to 800Gbps", "line_rate / 2000");
	u64 rhai_bps KEY("rate_hai")
		PARAM("R_HAI, the step of hyper increase", "1bps to 800Gbps", "line_rate / 200");
	u64 timer_ns PARAM("Period of the increase timer", "1us to 1s", "15ms");
	/* 0: the timer alone, and hyper increase follows active increase */
	u64 byte_counter_bytes KEY("byte_counter")
		PARAM("Bytes sent in a cycle of the byte counter; 0: the timer alone", "0 to 10GB",
		      "150KB");
	u64 hyper_bytes FROM("0"); /* no hyper increase before so much was sent since the cut */
	u32 threshold KEY("fast_recovery") PARAM("F, the cycles of fast recovery", "1 to 100", "5");
	enum recovery_half
		half FROM("0"); /* when the timer and the byte counter run twice as fast */
	flag target_guard
		FROM("0"); /* the first cycle after a deep cut lowers the target: 802.1Qau */
	u32 pad;
};

struct recovery {
	u64 rate_bps; /* CR */
	u64 target_bps KEY("target_rate_bps") STAT("TR, the rate that the flow recovers to");
	u64 timer_at_ns, counter_at_bytes; /* when the cycles end */
	u64 cut_at_bytes;
	u32 time_stage, byte_stage;
};

static __always_inline u64 recovery_limit(u64 rate_bps, const struct recovery_params *p)
{
	if (rate_bps < p->min_rate_bps)
		return p->min_rate_bps;
	return rate_bps > p->line_rate_bps ? p->line_rate_bps : rate_bps;
}

static __always_inline void recovery_init(struct recovery *r, const struct recovery_params *p,
					  u64 now_ns)
{
	*r = (struct recovery){
		.rate_bps = p->line_rate_bps,
		.target_bps = p->line_rate_bps,
		.timer_at_ns = now_ns + p->timer_ns,
		.counter_at_bytes = p->byte_counter_bytes,
	};
}

/* recovery_set: the flow is at this rate, and has nothing to recover. */
static __always_inline void recovery_set(struct recovery *r, u64 rate_bps)
{
	r->rate_bps = rate_bps;
	r->target_bps = rate_bps;
}

static __always_inline bool recovery_active(const struct recovery *r,
					    const struct recovery_params *p)
{
	if (!p->byte_counter_bytes) /* the timer alone: HPCC's simulator counts a cycle afterwards */
		return r->time_stage > p->threshold;
	return r->time_stage >= p->threshold || r->byte_stage >= p->threshold;
}

/* recovery_hyper_stage: min(stages) - F + 1; 0: not in hyper increase. */
static __always_inline u32 recovery_hyper_stage(const struct recovery *r,
						const struct recovery_params *p, u64 sent_bytes)
{
	u32 stage = r->time_stage;

	if (!p->byte_counter_bytes) /* one cycle of active increase, then R_HAI each */
		return stage > p->threshold + 1;
	if (r->byte_stage < stage)
		stage = r->byte_stage;
	if (stage < p->threshold || sent_bytes - r->cut_at_bytes < p->hyper_bytes)
		return 0;
	return stage - p->threshold + 1;
}

/* recovery_divisor: 2 if the next cycle of the timer or the byte counter, which is at this stage, is halved. */
static __always_inline u32 recovery_divisor(const struct recovery *r,
					    const struct recovery_params *p, u32 stage,
					    u64 sent_bytes)
{
	if (p->half == RECOVERY_HALF_AI)
		return stage >= p->threshold ? 2 : 1;
	if (p->half == RECOVERY_HALF_HAI)
		return recovery_hyper_stage(r, p, sent_bytes) ? 2 : 1;
	return 1;
}

/* recovery_increase: a cycle of the timer or of the byte counter is over. */
static __always_inline void recovery_increase(struct recovery *r, const struct recovery_params *p,
					      u64 sent_bytes)
{
	u32 hyper = recovery_hyper_stage(r, p, sent_bytes);

	if (p->target_guard && (r->time_stage == 1 || r->byte_stage == 1) &&
	    r->target_bps > 10 * r->rate_bps)
		r->target_bps /= 8;
	else if (hyper)
		r->target_bps += hyper * p->rhai_bps;
	else if (recovery_active(r, p))
		r->target_bps += p->rai_bps;
	r->target_bps = recovery_limit(r->target_bps, p);
	r->rate_bps = recovery_limit((r->rate_bps + r->target_bps) / 2, p);
}

/* recovery_advance: what the cycles did that have ended by now. sent_bytes counts from the flow's start. */
static __always_inline void recovery_advance(struct recovery *r, const struct recovery_params *p,
					     u64 now_ns, u64 sent_bytes)
{
	for (u32 i = 0; i < RECOVERY_CYCLES; i++) {
		asm volatile(
			"" ::
				: "memory"); /* no value stays in a register: one verification for all cycles */
		if ((s64)(now_ns - r->timer_at_ns) >= 0) {
			r->time_stage++;
			recovery_increase(r, p, sent_bytes);
			r->timer_at_ns +=
				p->timer_ns / recovery_divisor(r, p, r->time_stage, sent_bytes);
		} else if (p->byte_counter_bytes && (s64)(sent_bytes - r->counter_at_bytes) >= 0) {
			r->byte_stage++;
			recovery_increase(r, p, sent_bytes);
			r->counter_at_bytes += p->byte_counter_bytes /
					       recovery_divisor(r, p, r->byte_stage, sent_bytes);
		} else {
			break;
		}
	}
}

/* recovery_hold: the cycles of the timer and the byte counter that run start again. */
static __always_inline void recovery_hold(struct recovery *r, const struct recovery_params *p,
					  u64 now_ns, u64 sent_bytes)
{
	r->timer_at_ns = now_ns + p->timer_ns / recovery_divisor(r, p, r->time_stage, sent_bytes);
	r->counter_at_bytes =
		sent_bytes +
		p->byte_counter_bytes / recovery_divisor(r, p, r->byte_stage, sent_bytes);
}

/*
 * recovery_cut: the rate falls to rate_bps. The target becomes the rate before the cut, and the byte counter starts
 * again, if keep_target is false.
 */
static __always_inline void recovery_cut(struct recovery *r, const struct recovery_params *p,
					 u64 now_ns, u64 sent_bytes, u64 rate_bps, bool keep_target)
{
	if (!keep_target) {
		r->target_bps = r->rate_bps;
		r->counter_at_bytes = sent_bytes + p->byte_counter_bytes;
	}
	r->rate_bps = recovery_limit(rate_bps, p);
	r->timer_at_ns = now_ns + p->timer_ns;
	r->cut_at_bytes = sent_bytes;
	r->time_stage = 0;
	r->byte_stage = 0;
}

#endif
