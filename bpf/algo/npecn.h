/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * NP-ECN, the congestion point of PCN (CP, Fig. 7): marks packets that queue because the link is
 * full, not those that queued because it was paused.
 *
 *	RESUME received:       PN = packets now in the queue
 *	packet transmitted:    PN > 0:           PN = PN - 1, no mark
 *	                       queue length > 0: mark
 *
 * The paper leaves open, and we decide: PN is per port and class, as PAUSE is. The queue length
 * does not include the departing packet, so a port whose packets never wait marks none (Fig. 4b). A
 * RESUME while PN > 0 overwrites PN. A PAUSE leaves PN alone.
 */
#ifndef PCN_ALGO_NPECN_H
#define PCN_ALGO_NPECN_H

struct npecn_cp {
	u32 pn; /* paused packets still to transmit */
};

static __always_inline void npecn_resume(struct npecn_cp *cp, u32 queue_packets)
{
	cp->pn = queue_packets;
}

/* npecn_transmit: whether to mark a packet that leaves queue_packets others behind. */
static __always_inline bool npecn_transmit(struct npecn_cp *cp, u32 queue_packets)
{
	if (cp->pn) {
		cp->pn--;
		return false;
	}
	return queue_packets > 0;
}

#endif
