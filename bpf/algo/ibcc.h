/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * InfiniBand's congestion control: the sender, a channel adapter.
 *
 * InfiniBand Architecture Specification, volume 1, annex A10. A switch marks packets with FECN, the
 * receiver answers with BECN, and the sender waits after each packet. An entry of the congestion
 * control table (CCT) says how long; CCTI is its index.
 *
 *	BECN		CCTI = min(CCTI + CCTI_Increase, CCTI_Limit)
 *	CCTI_Timer	CCTI = max(CCTI - 1, CCTI_Min)
 *	delay		(packet time >> shift) * multiplier, of CCT[CCTI]
 *
 * A packet and its delay take 1 + multiplier / 2^shift packet times, so the line rate is divided by
 * that. The timer runs while CCTI is above its minimum, as in Linux's hfi1 (init.c, cca_timer_fn).
 *
 * The rule for TCD is derived here: CE stands for FECN, and UE holds CCTI by restarting the timer.
 */
#ifndef PCN_ALGO_IBCC_H
#define PCN_ALGO_IBCC_H

#include "param.h"

#define IBCC_ENTRIES 128 /* of the CCT: two blocks of the specification */

#define IBCC_SHIFT_BITS 14 /* the shift is above these bits, the multiplier in them */
#define IBCC_MULTIPLIER 0x3fff

/*
 * An entry of the CCT: a shift of 2 bits, then a multiplier of 14 bits. The delay is multiplier /
 * 2^shift packet times.
 */
typedef u16 cct_entry;

struct ibcc_params {
	u64 line_rate_bps FROM("line_rate");
	u64 timer_ns KEY("ccti_timer") PARAM(
		"CCTI_Timer: each time it ends, CCTI falls by 1; InfiniBand counts it in 1.024us",
		"1us to 1s", "20us");
	u32 increase KEY("ccti_increase")
		PARAM("CCTI_Increase, the amount by which a BECN raises CCTI", "1 to 127", "1");
	u32 limit KEY("ccti_limit")
		PARAM("CCTI_Limit, the last entry of the congestion control table (CCT)",
		      "1 to 127", "127");
	u32 min KEY("ccti_min") PARAM("CCTI_Min, the lowest CCTI", "0 to ccti_limit", "0");
	u32 exponent KEY("cct_exponent")
		PARAM("Entry i of the CCT is cct_delay * (i / ccti_limit)^cct_exponent", "1 to 4",
		      "2");
	wide_q24 delay KEY("cct_delay") PARAM("Delay of the CCT's last entry, in packet times: the "
					      "line rate is divided by it and 1",
					      "1/65536 to 16383", "15");
	cct_entry cct[IBCC_ENTRIES] TABLE(
		"cct_delay * (min(i, ccti_limit) / ccti_limit) ^ cct_exponent");
};

struct ibcc_rp {
	u64 timer_at_ns; /* when CCTI_Timer ends; 0: it does not run */
	u32 ccti STAT("CCTI, the index of the delay in the CCT");
	u32 pad;
};

static __always_inline void ibcc_rp_init(struct ibcc_rp *rp, const struct ibcc_params *p)
{
	*rp = (struct ibcc_rp){.ccti = p->min};
}

static __always_inline void ibcc_rp_advance(struct ibcc_rp *rp, const struct ibcc_params *p,
					    u64 now_ns)
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

static __always_inline void ibcc_rp_becn(struct ibcc_rp *rp, const struct ibcc_params *p,
					 u64 now_ns)
{
	ibcc_rp_advance(rp, p, now_ns);
	rp->ccti = rp->ccti + p->increase < p->limit ? rp->ccti + p->increase : p->limit;
	if (!rp->timer_at_ns)
		rp->timer_at_ns = now_ns + p->timer_ns;
}

/* The notification says UE. */
static __always_inline void ibcc_rp_ue(struct ibcc_rp *rp, const struct ibcc_params *p, u64 now_ns)
{
	ibcc_rp_advance(rp, p, now_ns);
	if (rp->timer_at_ns)
		rp->timer_at_ns = now_ns + p->timer_ns;
}

/* The line rate, divided as CCT[ccti] says. */
static __always_inline u64 ibcc_rate_bps(const struct ibcc_params *p, u32 ccti)
{
	u16 entry = p->cct[ccti & (IBCC_ENTRIES - 1)];
	u32 shift = entry >> IBCC_SHIFT_BITS, multiplier = entry & IBCC_MULTIPLIER;

	/* 800 Gbit/s << 3 is far below 2^64 */
	return (p->line_rate_bps << shift) / ((1U << shift) + multiplier);
}

static __always_inline u64 ibcc_rp_rate_bps(const struct ibcc_rp *rp, const struct ibcc_params *p)
{
	return ibcc_rate_bps(p, rp->ccti);
}

/* Chooses the lowest CCTI whose rate is at most rate_bps; CCTI_Limit if there is none. */
static __always_inline void ibcc_rp_set_rate(struct ibcc_rp *rp, const struct ibcc_params *p,
					     u64 rate_bps)
{
	u32 ccti = p->min;

	for (u32 i = 0; i < IBCC_ENTRIES; i++) {
		if (ccti >= p->limit || ibcc_rate_bps(p, ccti) <= rate_bps)
			break;
		ccti++;
	}
	rp->ccti = ccti;
	rp->timer_at_ns = 0;
}

#endif
