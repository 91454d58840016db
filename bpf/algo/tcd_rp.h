/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How end hosts react to TCD's marks.
 *
 * Zhang et al., Congestion Detection in Lossless Networks, SIGCOMM 2021. A port is congested, not
 * congested or undetermined. It marks packets CE, not at all, or UE; CE overrides UE. The rule for
 * senders:
 *
 *	CE decreases the rate, UE holds it, no mark lets it increase
 *
 * The header of each control says how it does that. That DCQCN does not decrease on UE is read from
 * the authors' simulator (github.com/Yi-ran/DCQCN-TCD); the rest is derived here.
 */
#ifndef PCN_ALGO_TCD_RP_H
#define PCN_ALGO_TCD_RP_H

#include "dcqcn_np.h"
#include "tcd.h"

/*
 * The notification point sends CNPs that say CE exactly as DCQCN does, whatever else arrives. It
 * sends a CNP that says UE if it sent none of either kind in the last interval. So UE delays no CE.
 * The authors' notification point differs: once an interval it reports what the interval's packets
 * said, CE if any did. That is as much feedback, but later.
 */
struct tcd_np {
	struct dcqcn_np ce;  /* CNPs that say CE */
	struct dcqcn_np any; /* CNPs that say CE or UE */
};

/* Returns what the CNP to send now says; TCD_MARK_NONE: send none. */
static __always_inline enum tcd_verdict tcd_np_packet(struct tcd_np *np, u64 interval_ns,
						      u64 now_ns, enum tcd_verdict mark)
{
	if (dcqcn_np_packet(&np->ce, interval_ns, now_ns, mark == TCD_MARK_CE)) {
		np->any = np->ce;
		return TCD_MARK_CE;
	}
	return dcqcn_np_packet(&np->any, interval_ns, now_ns, mark == TCD_MARK_UE) ? TCD_MARK_UE
										   : TCD_MARK_NONE;
}

/* For a sender without timers of its own: a mark is in force for a time after its CNP. */
struct tcd_rp {
	u64 ue_until_ns, ce_until_ns;
};

static __always_inline void tcd_rp_cnp(struct tcd_rp *rp, u64 hold_ns, u64 now_ns,
				       enum tcd_verdict mark)
{
	if (mark == TCD_MARK_CE)
		rp->ce_until_ns = now_ns + hold_ns;
	else if (mark == TCD_MARK_UE)
		rp->ue_until_ns = now_ns + hold_ns;
}

/* The mark in force; CE overrides UE. */
static __always_inline enum tcd_verdict tcd_rp_mark(const struct tcd_rp *rp, u64 now_ns)
{
	if ((s64)(now_ns - rp->ce_until_ns) < 0)
		return TCD_MARK_CE;
	return (s64)(now_ns - rp->ue_until_ns) < 0 ? TCD_MARK_UE : TCD_MARK_NONE;
}

#endif
