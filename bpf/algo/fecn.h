/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FECN: how an InfiniBand switch marks, InfiniBand Architecture Specification, volume 1, annex A10.
 *
 * The root of congestion is a port over its threshold that has credits: its packets wait for no
 * credits, only for the link. It marks one in Marking_Rate + 1 of the packets of at least
 * Packet_Size. A port that lacks credits is a victim, and marks only if Victim_Mask says so. The
 * specification's Threshold is a weight from 0 to 15, and what queue it means is left to the
 * vendor; here it is the queue itself.
 */
#ifndef PCN_ALGO_FECN_H
#define PCN_ALGO_FECN_H

struct fecn_params {
	u64 threshold_bytes;
	u32 packet_bytes; /* Packet_Size: shorter packets are not marked */
	u32 marking_rate; /* mean number of packets between marked ones, 0: all are */
	u32 victims;	  /* Victim_Mask: packets that waited for credits are marked too */
	u32 pad;
};

struct fecn_cp {
	u32 passed; /* packets that could have been marked, since the last that was */
};

/* fecn_mark: whether to mark a packet that leaves queue_bytes behind; it waited for credits? */
static __always_inline bool fecn_mark(struct fecn_cp *cp, const struct fecn_params *p,
				      u64 queue_bytes, u32 len_bytes, bool waited)
{
	if (queue_bytes <= p->threshold_bytes || len_bytes < p->packet_bytes ||
	    (waited && !p->victims))
		return false;
	if (cp->passed < p->marking_rate) {
		cp->passed++;
		return false;
	}
	cp->passed = 0;
	return true;
}

#endif
