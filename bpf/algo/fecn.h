/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FECN (forward explicit congestion notification): how an InfiniBand switch marks. InfiniBand
 * Architecture Specification, volume 1, annex A10.
 *
 * The root of congestion is a port that is over its threshold and has credits: its packets wait
 * only for the link. It marks one in Marking_Rate + 1 of the packets of at least Packet_Size. A
 * port that lacks credits is a victim; it marks only if Victim_Mask is set.
 *
 * The specification's Threshold is a weight from 0 to 15; each vendor decides which queue it means.
 * Here the threshold is the queue itself, in bytes.
 */
#ifndef PCN_ALGO_FECN_H
#define PCN_ALGO_FECN_H

struct fecn_params {
	u64 threshold_bytes;
	u32 packet_bytes; /* Packet_Size: shorter packets are not marked */
	u32 marking_rate; /* packets between two marked ones; 0: every packet is marked */
	u32 victims;	  /* Victim_Mask: mark packets that waited for credits, too */
	u32 pad;
};

struct fecn_cp {
	u32 passed; /* eligible packets since the last marked one */
};

/* queue_bytes is what the packet leaves behind; waited: it had to wait for credits. */
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
