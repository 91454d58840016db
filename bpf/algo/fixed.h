/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Fractions of one as integers, Q24, and a reproducible random number. */
#ifndef PCN_ALGO_FIXED_H
#define PCN_ALGO_FIXED_H

#include "param.h"

#define Q24_SHIFT 24
#define Q24_ONE	  (1U << Q24_SHIFT)

/*
 * value * fraction, rounded to nearest. The value is split at bit 24, so nothing overflows for
 * value < 2^63 and fraction <= 1.
 */
static __always_inline u64 q24_scale(u64 value, u32 fraction)
{
	u64 high = value >> Q24_SHIFT, low = value & (Q24_ONE - 1);

	return high * fraction + ((low * fraction + Q24_ONE / 2) >> Q24_SHIFT);
}

/* fraction^n, by squaring. */
static __always_inline u32 q24_power(u32 fraction, u32 n)
{
	u32 result = Q24_ONE;

	for (u32 i = 0; i < 32; i++) { /* the bits of n */
		if (n & 1)
			result = q24_scale(result, fraction);
		n >>= 1;
		if (!n)
			break;
		fraction = q24_scale(fraction, fraction);
	}
	return result;
}

/* xorshift32 (Marsaglia 2003). The state must not start at 0. */
static __always_inline u32 random_next(u32 *state)
{
	u32 x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}

/* A rate within bounds. */
static __always_inline u64 bounded_rate(u64 rate_bps, u64 least_bps, u64 most_bps)
{
	if (rate_bps < least_bps)
		return least_bps;
	return rate_bps > most_bps ? most_bps : rate_bps;
}

#endif
