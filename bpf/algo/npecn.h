/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * NP-ECN, PCN's congestion point (CP, Fig. 7): marks what queues because the link is full, not what queued
 * because the link was paused.
 *
 *	RESUME received:       PN = packets now in the queue
 *	packet transmitted:    PN > 0:           PN = PN - 1, no mark
 *	                       queue length > 0: mark
 *
 * What the paper leaves open, decided here: PN is per port and class, as PAUSE is; the queue length does not
 * include the departing packet (a port whose packets never wait marks none, Fig. 4b); a RESUME while PN > 0
 * overwrites PN; a PAUSE leaves PN alone.
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

/* npecn_transmit: a packet leaves a queue of queue_packets others. Returns whether to mark it. */
static __always_inline bool npecn_transmit(struct npecn_cp *cp, u32 queue_packets)
{
	if (cp->pn) {
		cp->pn--;
		return false;
	}
	return queue_packets > 0;
}

#endif
