/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Swift's sender: the window follows the delay against a target.
 *
 * Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter,
 * SIGCOMM 2020, Algorithm 1 and section 3.5. Windows are in packets.
 *
 *	delay < target:	cwnd += ai / cwnd * acked, or ai * acked below one packet
 *	else:		cwnd *= max(1 - beta * (delay - target) / delay, 1 - max_mdf),
 *			at most once a round trip
 *	a loss:		cwnd *= 1 - max_mdf, at most once a round trip
 *	target = base_target + max(0, min(alpha / sqrt(cwnd) + shift, fs_range))
 *	alpha = fs_range / (1 / sqrt(fs_min) - 1 / sqrt(fs_max)), shift = -alpha / sqrt(fs_max)
 *
 * Line 27 of Algorithm 1 takes a window that stays for one that has shrunk, and would never cut
 * again; here it has shrunk only if it is less, as in github.com/Broadcom/csg-htsim, swift.cpp.
 * The target's share of each hop is part of base_target, as TCP does not see hops. Hosts here take
 * no time: the delay of the endpoint is 0, and so is its window not there.
 */
#ifndef PCN_ALGO_SWIFT_H
#define PCN_ALGO_SWIFT_H

#include "fixed.h"

struct swift_params {
	u64 base_target_ns PARAM("Target of the delay, without the share for small windows",
				 "1us to 1s", "base_rtt + 20us");
	u64 fs_range_ns PARAM("Most that small windows add to the target; 0: nothing", "0 to 1s",
			      "100us");
	q24 ai PARAM("Additive increase in a round trip, in packets", "1/65536 to 100", "1");
	q24 beta PARAM("Multiplicative decrease", "1/65536 to 1", "0.8");
	q24 max_mdf PARAM("Largest share of the window that one decrease takes away",
			  "1/65536 to 1", "0.5");
	q24 fs_min KEY("fs_min_cwnd")
		PARAM("Window from which on down the target has all of fs_range, in packets",
		      "1/1024 to 1", "0.1");
	u32 fs_max KEY("fs_max_cwnd")
		PARAM("Window from which on up the target has nothing of fs_range, in packets",
		      "2 to 65535", "100");
	u32 max_cwnd PARAM("Largest window, in packets", "1 to 65535", "1000");
	u32 first_cwnd PARAM("Window at the start, in packets", "1 to 65535", "10");
	u32 pad;
};

struct swift_rp {
	wide_q24 cwnd KEY("window_packets") STAT("The window, in packets");
	u64 target_ns STAT("The target of the delay at the latest ACK");
	u64 decrease_ns; /* t_last_decrease; 0: none */
	u64 rtt_ns;	 /* the latest */
	u32 inverse_min; /* 1 / sqrt(fs_min) and 1 / sqrt(fs_max), Q16 */
	u32 inverse_max;
};

/*
 * The square root of a value above 0, by Heron. The first guess is above it, and less than twice as
 * much, so five steps are exact to 2^-32. There is no branch: the verifier would follow each.
 */
static __always_inline u64 swift_root(u64 value)
{
	u64 root = 1ULL << ((65 - __builtin_clzll(value | 1)) / 2);

	for (u32 i = 0; i < 5; i++)
		root = (root + value / (root ?: 1)) >> 1;
	return root;
}

/* 1 / sqrt(packets), Q16. packets is Q24, at least 2^-10: so the root is in Q28 at least 2^23. */
static __always_inline u32 swift_inverse_root(u64 packets)
{
	u64 root = swift_root(packets << 24); /* Q24: at most 2^40 << 24 */

	return (1ULL << 40) / (root ?: 1);
}

static __always_inline void swift_rp_init(struct swift_rp *s, const struct swift_params *p)
{
	*s = (struct swift_rp){
		.cwnd = (u64)p->first_cwnd << Q24_SHIFT,
		.target_ns = p->base_target_ns,
		.inverse_min = swift_inverse_root(p->fs_min),
		.inverse_max = swift_inverse_root((u64)p->fs_max << Q24_SHIFT),
	};
}

/* Section 3.5: what a small window adds to the target, as more flows share the link. */
static __always_inline u64 swift_flow_scaling_ns(const struct swift_rp *s,
						 const struct swift_params *p)
{
	u64 inverse = swift_inverse_root(s->cwnd), range = s->inverse_min - s->inverse_max;

	if (inverse <= s->inverse_max)
		return 0;
	inverse -= s->inverse_max;
	return inverse < range ? p->fs_range_ns * inverse / (range ?: 1) : p->fs_range_ns;
}

static __always_inline bool swift_can_decrease(const struct swift_rp *s, u64 now_ns)
{
	return !s->decrease_ns || now_ns - s->decrease_ns >= s->rtt_ns;
}

/* Lines 26 to 28. share is Q24. The least window is one packet, which TCP needs. */
static __always_inline void swift_decrease(struct swift_rp *s, u64 now_ns, u32 share)
{
	u64 before = s->cwnd;

	s->cwnd -= q24_scale(s->cwnd, share);
	if (s->cwnd < Q24_ONE)
		s->cwnd = Q24_ONE;
	if (s->cwnd < before)
		s->decrease_ns = now_ns;
}

/* beta * (delay - target) / delay, at most max_mdf. */
static __always_inline u32 swift_cut(const struct swift_params *p, u64 delay_ns, u64 target_ns)
{
	/* delays are below 2^37 */
	u32 over = ((delay_ns - target_ns) << Q24_SHIFT) / (delay_ns ?: 1);
	u32 share = q24_scale(over, p->beta);

	return share < p->max_mdf ? share : p->max_mdf;
}

/* Lines 4 to 14. delay_ns is the round trip; 0: not measured. */
static __always_inline void swift_rp_ack(struct swift_rp *s, const struct swift_params *p,
					 u64 now_ns, u64 delay_ns, u32 acked, bool limited)
{
	u64 most = (u64)p->max_cwnd << Q24_SHIFT;
	bool can_decrease = swift_can_decrease(s, now_ns);

	if (!delay_ns || !acked)
		return;
	s->rtt_ns = delay_ns;
	s->target_ns = p->base_target_ns + swift_flow_scaling_ns(s, p);
	if (delay_ns >= s->target_ns) {
		if (can_decrease)
			swift_decrease(s, now_ns, swift_cut(p, delay_ns, s->target_ns));
		return;
	}
	if (!limited)
		return; /* the application did not use the window that there is */
	/* ai <= 100 and acked packets: 2^31 * 2^9 << 24 */
	s->cwnd += ((u64)p->ai * (acked & 0xffff) << Q24_SHIFT) / (s->cwnd ?: 1);
	if (s->cwnd > most)
		s->cwnd = most;
}

/* Lines 22 to 25, and 18 to 21 but for the fifth timeout in a row. */
static __always_inline void swift_rp_loss(struct swift_rp *s, const struct swift_params *p,
					  u64 now_ns)
{
	if (swift_can_decrease(s, now_ns))
		swift_decrease(s, now_ns, p->max_mdf);
}

#endif
