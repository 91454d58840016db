/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * NP-ECN (non-PAUSE ECN), PCN's congestion point (CP; NSDI 2020, Fig. 7). It marks packets that
 * queue because the link is full. It does not mark packets that queued because the link was paused.
 *
 *	RESUME received:       PN = packets now in the queue
 *	packet transmitted:    PN > 0:           PN = PN - 1, no mark
 *	                       queue length > 0: mark
 *
 * The paper leaves three things open. Here PN is kept for each port and class, as PAUSE is. The
 * queue length does not include the departing packet, so a port whose packets never wait marks none
 * (Fig. 4b). A RESUME while PN > 0 overwrites PN; a PAUSE leaves PN alone.
 */
#ifndef PCN_ALGO_NPECN_H
#define PCN_ALGO_NPECN_H

struct npecn_cp {
	u32 pn; /* PN, paused packets that were not yet transmitted */
};

static __always_inline void npecn_resume(struct npecn_cp *cp, u32 queue_packets)
{
	cp->pn = queue_packets;
}

/* queue_packets is what the packet leaves behind. Returns whether to mark it. */
static __always_inline bool npecn_transmit(struct npecn_cp *cp, u32 queue_packets)
{
	if (cp->pn) {
		cp->pn--;
		return false;
	}
	return queue_packets > 0;
}

#endif
