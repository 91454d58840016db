/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DCQCN's end points: the reaction point (RP) is here, the notification point (NP) in dcqcn_np.h.
 * Marking is in red.h.
 *
 * Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, sec. 3.1.
 *
 *	NP  marked packet, no CNP for the flow in the last interval: send a CNP
 *	RP  CNP:		   TR = CR, CR = CR * (1 - alpha / 2),
 *				   alpha = (1 - g) * alpha + g				eq. (1)
 *	    K without a CNP:	   alpha = (1 - g) * alpha				eq. (2)
 *	    timer, byte counter:   recovery.h						eq. (3), (4)
 *
 * Implementations differ. Each difference is a parameter:
 *	alpha_first		alpha is updated before the cut (ns3-rdma)
 *	clamp_target		TR follows every cut
 *	decrease_interval_ns	cuts are at least this far apart, and alpha has its own timer
 *				(Mellanox NICs)
 *	decrease_clock		cuts wait for ticks that far apart, counted from the first CNP
 *				(HPCC's simulator)
 *
 * With TCD a CNP may say UE (undetermined). Then CR and TR hold: the running cycles of the timer
 * and of the byte counter start again. Alpha is not held: it only counts CNPs that say CE. In the
 * authors' simulator a UE stops nothing, see tcd_rp.h; unless its ENABLE_ROOTECNCC is set, which is
 * ue_resets here: TR = CR, and recovery begins anew.
 */
#ifndef PCN_ALGO_DCQCN_H
#define PCN_ALGO_DCQCN_H

#include "dcqcn_np.h"
#include "fixed.h"
#include "recovery.h"

struct dcqcn_params {
	struct recovery_params recovery OF("timer_ns", "key:rate_timer");
	u64 alpha_timer_ns PARAM("K, the time without a CNP after which alpha decays", "1us to 1s",
				 "55us");
	u64 decrease_interval_ns PARAM("Least time between two cuts; 0: every CNP cuts the rate",
				       "0 to 1s", "0");
	q24 g PARAM("Weight of the newest sample in alpha", "1/65536 to 1", "1/256");
	q24 initial_alpha PARAM("alpha before the first CNP", "0 to 1", "1");
	flag clamp_target
		PARAM("Every cut sets TR to CR; otherwise only a cut after a cycle of recovery", "",
		      "false");
	flag alpha_first PARAM("Update alpha before the cut, as ns3-rdma does", "", "false");
	flag decrease_clock
		PARAM("Cuts wait for the next tick of a clock, as in HPCC's simulator. It ticks "
		      "every decrease_interval, if that is not 0, from the first CNP on",
		      "", "false");
	flag ue_resets PARAM("A CNP that says UE also sets TR to CR, and recovery begins anew: "
			     "ROOTECNCC of TCD's authors",
			     "", "false") WITH_TCD;
};

struct dcqcn_rp {
	struct recovery recovery;
	u64 alpha_at_ns; /* when alpha's timer ends */
	u64 cut_at_ns;	 /* the latest cut */
	u64 tick_at_ns;	 /* the next tick of the decrease clock; 0: it waits for a CNP */
	q24 alpha STAT("alpha, how congested the path is");
	u16 cut_due;   /* a CNP waits until the decrease interval is over */
	u16 alpha_due; /* a CNP arrived since alpha's timer last ended */
};

static __always_inline void dcqcn_rp_init(struct dcqcn_rp *rp, const struct dcqcn_params *p,
					  u64 now_ns)
{
	*rp = (struct dcqcn_rp){.alpha = p->initial_alpha,
				.alpha_at_ns = now_ns + p->alpha_timer_ns};
	recovery_init(&rp->recovery, &p->recovery, now_ns);
}

static __always_inline void dcqcn_alpha_up(struct dcqcn_rp *rp, const struct dcqcn_params *p)
{
	rp->alpha = rp->alpha - q24_scale(rp->alpha, p->g) + p->g; /* eq. (1) */
}

/* eq. (2), once for each period of K that has ended */
static __always_inline void dcqcn_alpha_timer(struct dcqcn_rp *rp, const struct dcqcn_params *p,
					      u64 now_ns)
{
	u64 periods;

	/* alpha waits for the first CNP: ns3-rdma, HPCC's simulator */
	if (!rp->cut_at_ns && !rp->tick_at_ns)
		rp->alpha_at_ns = now_ns + p->alpha_timer_ns;
	if ((s64)(now_ns - rp->alpha_at_ns) < 0)
		return;
	periods = (now_ns - rp->alpha_at_ns) / (p->alpha_timer_ns ?: 1) + 1;
	rp->alpha_at_ns += periods * p->alpha_timer_ns;
	if (rp->alpha_due) {
		dcqcn_alpha_up(rp, p);
		rp->alpha_due = 0;
		periods--;
	}
	rp->alpha = q24_scale(
		rp->alpha, q24_power(Q24_ONE - p->g, periods > 0xffffffff ? 0xffffffff : periods));
}

static __always_inline void dcqcn_cut(struct dcqcn_rp *rp, const struct dcqcn_params *p, u64 now_ns,
				      u64 sent_bytes)
{
	struct recovery *r = &rp->recovery;
	bool keep_target = !p->clamp_target && !r->time_stage && !r->byte_stage;

	recovery_cut(r, &p->recovery, now_ns, sent_bytes,
		     r->rate_bps - q24_scale(r->rate_bps, rp->alpha / 2), /* eq. (1) */
		     keep_target);
	rp->cut_at_ns = now_ns;
	rp->cut_due = 0;
}

/* A CNP came since the last tick of the decrease clock: the next tick cuts. */
static __always_inline void dcqcn_tick(struct dcqcn_rp *rp, const struct dcqcn_params *p,
				       u64 now_ns, u64 sent_bytes)
{
	u64 at_ns = rp->tick_at_ns, interval_ns = p->decrease_interval_ns ?: 1;

	if (!at_ns || (s64)(now_ns - at_ns) < 0)
		return;
	if (rp->cut_due) {
		dcqcn_alpha_timer(rp, p, at_ns);
		recovery_advance(&rp->recovery, &p->recovery, at_ns, sent_bytes);
		dcqcn_cut(rp, p, at_ns, sent_bytes);
	}
	rp->tick_at_ns += ((now_ns - at_ns) / interval_ns + 1) * interval_ns;
}

/* Applies what the timers and the byte counter did until now_ns. */
static __always_inline void dcqcn_rp_advance(struct dcqcn_rp *rp, const struct dcqcn_params *p,
					     u64 now_ns, u64 sent_bytes)
{
	if (p->decrease_clock)
		dcqcn_tick(rp, p, now_ns, sent_bytes);
	dcqcn_alpha_timer(rp, p, now_ns);
	if (rp->cut_due && !p->decrease_clock &&
	    (s64)(now_ns - rp->cut_at_ns) >= (s64)p->decrease_interval_ns)
		dcqcn_cut(rp, p, now_ns, sent_bytes);
	recovery_advance(&rp->recovery, &p->recovery, now_ns, sent_bytes);
}

static __always_inline void dcqcn_rp_cnp(struct dcqcn_rp *rp, const struct dcqcn_params *p,
					 u64 now_ns, u64 sent_bytes)
{
	dcqcn_rp_advance(rp, p, now_ns, sent_bytes);
	if (p->decrease_interval_ns && p->decrease_clock) {
		rp->cut_due = 1;
		if (rp->tick_at_ns) {
			rp->alpha_due = 1;
			return;
		}
		rp->tick_at_ns = now_ns + p->decrease_interval_ns;
		rp->alpha_at_ns = now_ns + p->alpha_timer_ns;
		return;
	}
	if (p->decrease_interval_ns) {
		rp->alpha_due = 1;
		rp->cut_due = 1;
		if (!rp->cut_at_ns || (s64)(now_ns - rp->cut_at_ns) >= (s64)p->decrease_interval_ns)
			dcqcn_cut(rp, p, now_ns, sent_bytes);
		return;
	}
	if (p->alpha_first)
		dcqcn_alpha_up(rp, p);
	dcqcn_cut(rp, p, now_ns, sent_bytes);
	if (!p->alpha_first)
		dcqcn_alpha_up(rp, p);
	rp->alpha_at_ns = now_ns + p->alpha_timer_ns;
}

/* The CNP says UE. */
static __always_inline void dcqcn_rp_ue(struct dcqcn_rp *rp, const struct dcqcn_params *p,
					u64 now_ns, u64 sent_bytes)
{
	struct recovery *r = &rp->recovery;

	dcqcn_rp_advance(rp, p, now_ns, sent_bytes);
	if (p->ue_resets)
		recovery_cut(r, &p->recovery, now_ns, sent_bytes, r->rate_bps, false);
	else
		recovery_hold(r, &p->recovery, now_ns, sent_bytes);
}

/* A loss or a timeout halves the rate. The paper has no rule for it: its fabric is lossless. */
static __always_inline void dcqcn_rp_loss(struct dcqcn_rp *rp, const struct dcqcn_params *p,
					  u64 now_ns, u64 sent_bytes)
{
	recovery_cut(&rp->recovery, &p->recovery, now_ns, sent_bytes, rp->recovery.rate_bps / 2,
		     false);
}

#endif
