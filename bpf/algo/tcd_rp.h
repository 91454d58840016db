/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What end hosts do about TCD's marks.
 *
 * Zhang et al., Congestion Detection in Lossless Networks, SIGCOMM 2021. A switch port is congested, not congested or
 * undetermined, and marks packets CE, not at all or UE; CE overrides UE. The rule for senders:
 *
 *	CE decreases, UE holds, nothing increases
 *
 * How a control goes by that is said in its own header. That DCQCN does not decrease for UE is read from the authors' simulator (github.com/Yi-ran/DCQCN-TCD); the
 * rest is derived here.
 */
#ifndef PCN_ALGO_TCD_RP_H
#define PCN_ALGO_TCD_RP_H

#include "dcqcn_np.h"
#include "tcd.h"

/*
 * The notification point: CNPs that say CE are DCQCN's, whatever else arrives; one that says UE is sent if there was
 * none of either kind in the last interval. So UE delays no CE, and overrides none. (The authors' says once an interval
 * what the packets in it said, CE if any did: as much, but later.)
 */
struct tcd_np {
	struct dcqcn_np ce;  /* CNPs that say CE */
	struct dcqcn_np any; /* or UE */
};

/* tcd_np_packet: a packet of the flow arrived. Returns what the CNP to send now says; TCD_MARK_NONE: send none. */
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

/* What a sender that has no timers of its own remembers: each mark is in force for a time after its CNP. */
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

/* tcd_rp_mark: the mark in force. */
static __always_inline enum tcd_verdict tcd_rp_mark(const struct tcd_rp *rp, u64 now_ns)
{
	if ((s64)(now_ns - rp->ce_until_ns) < 0)
		return TCD_MARK_CE;
	return (s64)(now_ns - rp->ue_until_ns) < 0 ? TCD_MARK_UE : TCD_MARK_NONE;
}

#endif
