/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How QCN's reaction point (802.1Qau) raises the rate after a cut. DCQCN took it over. A timer and
 * a byte counter run in cycles, and each counts its cycles since the cut: its stage. F is the
 * threshold.
 *
 *	                 a cut: TR = CR, CR falls, both stages = 0
 *	                                   |
 *	                                   v
 *	                          +-----------------+
 *	                          |  FAST RECOVERY  |  TR stays
 *	                          +-----------------+
 *	                                   |  one stage reaches F
 *	                                   v
 *	                          +-----------------+
 *	                          | ACTIVE INCREASE |  TR = TR + R_AI
 *	                          +-----------------+
 *	                                   |  both stages are at F or above
 *	                                   v
 *	                          +-----------------+
 *	                          | HYPER INCREASE  |  TR = TR + (min(stages) - F + 1) * R_HAI
 *	                          +-----------------+
 *
 * Each end of a cycle, of the timer or of the byte counter, also sets CR = (CR + TR) / 2. A cut
 * leads from every state back to fast recovery. Without a byte counter, active increase begins when
 * the timer's stage is F + 1, and hyper increase, by R_HAI, when it is F + 2.
 *
 * No timer runs: the state is brought up to date at ACKs and at notifications. So one call may find
 * that several cycles ended; it takes those of the timer first.
 */
#ifndef PCN_ALGO_RECOVERY_H
#define PCN_ALGO_RECOVERY_H

#include "fixed.h"

/* Cycles that one call handles; the next call handles the rest. */
#define RECOVERY_CYCLES 32

/* The stage from which on the timer and the byte counter run twice as fast. */
enum recovery_half {
	RECOVERY_HALF_NEVER,
	RECOVERY_HALF_AI,  /* active increase: QCN, slide 27 */
	RECOVERY_HALF_HAI, /* hyper increase: ns3-rdma */
};

struct recovery_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps KEY("min_rate")
		PARAM("Least rate of a flow", "1kbps to line_rate", "min(5Mbps, line_rate / 10)");
	u64 rai_bps KEY("rate_ai")
		PARAM("R_AI, the step of active increase", "1bps to 800Gbps", "line_rate / 2000");
	u64 rhai_bps KEY("rate_hai")
		PARAM("R_HAI, the step of hyper increase", "1bps to 800Gbps", "line_rate / 200");
	u64 timer_ns PARAM("Period of the increase timer", "1us to 1s", "15ms");
	/* 0: the timer alone */
	u64 byte_counter_bytes KEY("byte_counter")
		PARAM("Bytes sent in a cycle of the byte counter; 0: the timer alone", "0 to 10GB",
		      "150KB");
	u64 hyper_bytes FROM("0"); /* send this much after a cut before hyper increase */
	u32 threshold KEY("fast_recovery")
		PARAM("F, the number of cycles of fast recovery", "1 to 100", "5");
	enum recovery_half half FROM("0"); /* from when on cycles take half the time */
	flag target_guard FROM("0"); /* the first cycle after a deep cut lowers TR: 802.1Qau */
	u32 pad;
};

struct recovery {
	u64 rate_bps; /* CR */
	u64 target_bps KEY("target_rate_bps") STAT("TR, the rate that the flow recovers to");
	u64 timer_at_ns, counter_at_bytes; /* when the running cycles end */
	u64 cut_at_bytes;		   /* bytes sent when the rate was cut */
	u32 time_stage, byte_stage;	   /* cycles since the cut */
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

/* The flow is at this rate, and has nothing to recover. */
static __always_inline void recovery_set(struct recovery *r, u64 rate_bps)
{
	r->rate_bps = rate_bps;
	r->target_bps = rate_bps;
}

static __always_inline bool recovery_active(const struct recovery *r,
					    const struct recovery_params *p)
{
	if (!p->byte_counter_bytes) /* HPCC's simulator counts a cycle after it */
		return r->time_stage > p->threshold;
	return r->time_stage >= p->threshold || r->byte_stage >= p->threshold;
}

/* min(stages) - F + 1; 0: not in hyper increase. */
static __always_inline u32 recovery_hyper_stage(const struct recovery *r,
						const struct recovery_params *p, u64 sent_bytes)
{
	u32 stage = r->time_stage;

	if (!p->byte_counter_bytes) /* one cycle of active increase, then R_HAI in each */
		return stage > p->threshold + 1;
	if (r->byte_stage < stage)
		stage = r->byte_stage;
	if (stage < p->threshold || sent_bytes - r->cut_at_bytes < p->hyper_bytes)
		return 0;
	return stage - p->threshold + 1;
}

/* 2 if the next cycle of the timer or the byte counter, which is at this stage, is halved. */
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

/* A cycle of the timer or of the byte counter ended. */
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

/* Applies all cycles that have ended. sent_bytes counts from the start of the flow. */
static __always_inline void recovery_advance(struct recovery *r, const struct recovery_params *p,
					     u64 now_ns, u64 sent_bytes)
{
	for (u32 i = 0; i < RECOVERY_CYCLES; i++) {
		/* no value stays in a register, so the verifier checks one cycle for all */
		asm volatile("" ::: "memory");
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

/* The running cycles of the timer and the byte counter start again. */
static __always_inline void recovery_hold(struct recovery *r, const struct recovery_params *p,
					  u64 now_ns, u64 sent_bytes)
{
	r->timer_at_ns = now_ns + p->timer_ns / recovery_divisor(r, p, r->time_stage, sent_bytes);
	r->counter_at_bytes =
		sent_bytes +
		p->byte_counter_bytes / recovery_divisor(r, p, r->byte_stage, sent_bytes);
}

/*
 * The rate falls to rate_bps. Unless keep_target is set, the target becomes the rate before the
 * cut, and the byte counter starts again.
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
