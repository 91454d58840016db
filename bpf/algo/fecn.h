/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FECN: how an InfiniBand switch marks, InfiniBand Architecture Specification, volume 1, annex A10.
 *
 * A packet of at least Packet_Size that leaves a queue over the threshold is marked, once in Marking_Rate + 1 such
 * packets, if the port is the root of the congestion: it has credits, the packet did not wait for any. A port that
 * lacks credits is a victim, and marks only if Victim_Mask says so. The specification's Threshold is a weight from 0 to
 * 15 that leaves the queue to the vendor; here it is that queue.
 */
#ifndef PCN_ALGO_FECN_H
#define PCN_ALGO_FECN_H

struct fecn_params {
	u64 threshold_bytes;
	u32 packet_bytes; /* Packet_Size: shorter packets are not marked */
	u32 marking_rate; /* mean number of packets between marked ones, 0: all are */
	u32 victims;	  /* Victim_Mask */
	u32 pad;
};

struct fecn_cp {
	u32 passed; /* packets that could have been marked, since the last that was */
};

/* fecn_mark: a packet leaves this queue; it waited for credits, or not. Returns whether to mark it. */
static __always_inline bool fecn_mark(struct fecn_cp *cp, const struct fecn_params *p, u64 queue_bytes, u32 len_bytes,
				      bool waited)
{
	if (queue_bytes <= p->threshold_bytes || len_bytes < p->packet_bytes || (waited && !p->victims))
		return false;
	if (cp->passed < p->marking_rate) {
		cp->passed++;
		return false;
	}
	cp->passed = 0;
	return true;
}

#endif
