/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RED on the instantaneous queue: the marking of DCQCN (SIGCOMM 2015, Fig. 5), and of DCTCP if
 * K_min = K_max.
 *
 *	p = 0                                             q <= K_min
 *	    P_max * (q - K_min) / (K_max - K_min)         K_min < q <= K_max
 *	    1                                             q > K_max
 */
#ifndef PCN_ALGO_RED_H
#define PCN_ALGO_RED_H

#include "fixed.h"

struct red_params {
	u64 kmin_bytes, kmax_bytes; /* kmin <= kmax < 2^40 */
	u32 pmax;		    /* Q24; 0: never mark */
	u32 pad;
};

/* red_mark: random is uniform over 32 bits. */
static __always_inline bool red_mark(const struct red_params *p, u64 queue_bytes, u32 random)
{
	u64 probability;

	if (!p->pmax || queue_bytes <= p->kmin_bytes)
		return false;
	if (queue_bytes > p->kmax_bytes)
		return true;
	probability = (queue_bytes - p->kmin_bytes) * p->pmax / (p->kmax_bytes - p->kmin_bytes);
	return random >> (32 - Q24_SHIFT) < probability;
}

#endif
