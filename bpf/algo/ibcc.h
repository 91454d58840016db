/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * InfiniBand's congestion control: the channel adapter.
 *
 * InfiniBand Architecture Specification, volume 1, annex A10. A switch marks packets FECN, the receiver answers with
 * BECN, and the sender waits between packets for as long as an entry of the congestion control table (CCT) says:
 *
 *	BECN		CCTI = min(CCTI + CCTI_Increase, CCTI_Limit)
 *	CCTI_Timer	CCTI = max(CCTI - 1, CCTI_Min)
 *	delay		(packet time >> shift) * multiplier, of CCT[CCTI]
 *
 * A packet and its delay take 1 + multiplier / 2^shift packet times, so that is what the line rate is divided by. The
 * timer runs while CCTI is above its minimum, as in Linux's hfi1 (init.c, cca_timer_fn).
 *
 * With TCD, which is derived here: CE is FECN, and UE holds CCTI by starting the timer again.
 */
#ifndef PCN_ALGO_IBCC_H
#define PCN_ALGO_IBCC_H

#define IBCC_ENTRIES 128 /* of the CCT: two blocks */

/* An entry of the CCT. */
#define IBCC_SHIFT_BITS 14 /* shift above, multiplier below */
#define IBCC_MULTIPLIER 0x3fff

struct ibcc_params {
	u64 line_rate_bps;
	u64 timer_ns; /* CCTI_Timer, above 0 */
	u32 increase; /* CCTI_Increase */
	u32 limit;    /* CCTI_Limit, below IBCC_ENTRIES */
	u32 min;      /* CCTI_Min, at most the limit */
	u32 pad;
	u16 cct[IBCC_ENTRIES];
};

struct ibcc_rp {
	u64 timer_at_ns; /* when it ends; 0: it does not run */
	u32 ccti;
	u32 pad;
};

static __always_inline void ibcc_rp_init(struct ibcc_rp *rp, const struct ibcc_params *p)
{
	*rp = (struct ibcc_rp){.ccti = p->min};
}

/* ibcc_rp_advance: what the timer did by now. */
static __always_inline void ibcc_rp_advance(struct ibcc_rp *rp, const struct ibcc_params *p, u64 now_ns)
{
	u64 periods;

	if (rp->ccti <= p->min) {
		rp->timer_at_ns = 0;
		return;
	}
	if (!rp->timer_at_ns)
		rp->timer_at_ns = now_ns + p->timer_ns;
	if ((s64)(now_ns - rp->timer_at_ns) < 0)
		return;
	periods = (now_ns - rp->timer_at_ns) / (p->timer_ns ?: 1) + 1;
	rp->timer_at_ns += periods * p->timer_ns;
	if (periods < rp->ccti - p->min) {
		rp->ccti -= periods;
		return;
	}
	rp->ccti = p->min;
	rp->timer_at_ns = 0;
}

/* ibcc_rp_becn: a BECN arrived. */
static __always_inline void ibcc_rp_becn(struct ibcc_rp *rp, const struct ibcc_params *p, u64 now_ns)
{
	ibcc_rp_advance(rp, p, now_ns);
	rp->ccti = rp->ccti + p->increase < p->limit ? rp->ccti + p->increase : p->limit;
	if (!rp->timer_at_ns)
		rp->timer_at_ns = now_ns + p->timer_ns;
}

/* ibcc_rp_ue: a notification that says UE arrived. */
static __always_inline void ibcc_rp_ue(struct ibcc_rp *rp, const struct ibcc_params *p, u64 now_ns)
{
	ibcc_rp_advance(rp, p, now_ns);
	if (rp->timer_at_ns)
		rp->timer_at_ns = now_ns + p->timer_ns;
}

/* ibcc_rp_rate_bps: what CCT[CCTI] leaves of the line rate. */
static __always_inline u64 ibcc_rp_rate_bps(const struct ibcc_rp *rp, const struct ibcc_params *p)
{
	u16 entry = p->cct[rp->ccti & (IBCC_ENTRIES - 1)];
	u32 shift = entry >> IBCC_SHIFT_BITS, multiplier = entry & IBCC_MULTIPLIER;

	/* 800 Gbit/s << 3 is far from 2^64 */
	return (p->line_rate_bps << shift) / ((1U << shift) + multiplier);
}

#endif
