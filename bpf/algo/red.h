/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RED (random early detection) on the instantaneous queue q. It marks for DCQCN (SIGCOMM 2015, Fig.
 * 5), and for DCTCP if K_min = K_max.
 *
 *	p = 0                                             q <= K_min
 *	    P_max * (q - K_min) / (K_max - K_min)         K_min < q <= K_max
 *	    1                                             q > K_max
 *
 * LDCP's draft (sec. 2.1) has p = 1 at K_max too, whatever P_max is: all_at_kmax.
 */
#ifndef PCN_ALGO_RED_H
#define PCN_ALGO_RED_H

#include "fixed.h"

struct red_params {
	/* kmin <= kmax < 2^40 */
	u64 kmin_bytes PARAM("Queue up to which no packet is marked", "0 to kmax",
			     "30KB * line_rate / 10Gbps");
	u64 kmax_bytes PARAM("Queue above which every packet is marked", "1B to 1GB",
			     "30KB * line_rate / 10Gbps");
	/* 0: never mark */
	q24 pmax PARAM("Probability of a mark at kmax", "1/65536 to 1", "1");
	flag all_at_kmax FROM("0"); /* p is 1 at K_max; of the scheme's attribute at_kmax */
};

/*
 * WRED (weighted RED): a lossy queue drops packets that are not ECN-capable at a length at which it
 * still marks few others.
 */
struct wred_params {
	u64 k_bytes KEY("wred_k")
		PARAM("K, the queue at which switches drop packets that are not ECN-capable",
		      "0 to 1GB", "min(1GB, marking.kmin * 3 / 2)");
};

/* random is uniform over 32 bits. */
static __always_inline bool red_mark(const struct red_params *p, u64 queue_bytes, u32 random)
{
	u64 probability;

	if (!p->pmax)
		return false;
	if (queue_bytes > p->kmax_bytes || (p->all_at_kmax && queue_bytes == p->kmax_bytes))
		return true;
	if (queue_bytes <= p->kmin_bytes)
		return false;
	probability = (queue_bytes - p->kmin_bytes) * p->pmax / (p->kmax_bytes - p->kmin_bytes);
	return random >> (32 - Q24_SHIFT) < probability;
}

#endif
