/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DCTCP: the sender's window follows the share of marked packets.
 *
 * Alizadeh et al., Data Center TCP, SIGCOMM 2010; RFC 8257.
 *
 *	once a window:	  alpha = (1 - g) * alpha + g * F	SIGCOMM eq. (1)
 *			  F: share of the window's packets that were marked
 *	if any was:	  cwnd = cwnd * (1 - alpha / 2)		SIGCOMM eq. (2)
 *	if none was:	  Reno: slow start, then one packet a window
 *
 * As in net/ipv4/tcp_dctcp.c, alpha is in units of 2^-10, g is 2^-g_shift, and F counts delivered
 * packets.
 */
#ifndef PCN_ALGO_DCTCP_H
#define PCN_ALGO_DCTCP_H

#include "param.h"

#define DCTCP_ALPHA_ONE 1024U

struct dctcp_params {
	halvings g_shift KEY("g") PARAM("Weight of the newest window in alpha, a power of 1/2",
					"1/1024 to 1", "1/16");
	q10 initial_alpha PARAM("alpha before the first window", "0 to 1", "1");
	/*
	 * With segmentation offload half a window leaves at once. At a queue that such a packet
	 * crosses whole, all of it is marked or nothing, by who came first.
	 */
	u64 burst_ns KEY("burst")
		PARAM("Windows are paced, two a round trip, and packets that leave back to back "
		      "last this long at half of that rate; 0: not paced, as in the papers",
		      "0 to 10ms", "0ns") HOST("min(10ms, base_rtt / 16)");
	/*
	 * Linux reduces what is in flight by ssthresh / cwnd. At a window of two packets, the
	 * least, that is 1, and a flow that has more in flight keeps it.
	 */
	flag bound_cut PARAM("After a mark no more is in flight than the window before it", "",
			     "false") HOST("true");
	u32 pad;
	/*
	 * Where nothing marks, slow start ends when a queue is full, and loses up to a window.
	 * CUBIC's ends when the round trip grows (HyStart), and so does this.
	 */
	u64 slow_start_delay_ns KEY("slow_start_delay")
		PARAM("Slow start ends too when round trips are longer than the least one by this "
		      "and by an eighth; 0: only with a mark or a loss, as in the papers",
		      "0 to 1s", "0ns") HOST("4ms");
};

struct dctcp {
	q10 alpha STAT("alpha, how congested the path is");
	u32 delivered;	  /* packets, at the start of the window */
	u32 delivered_ce; /* of which marked */
	u32 next_seq;	  /* the window ends when this is acknowledged */
};

/* How long round trips are in a window of slow start. */
struct dctcp_delay {
	u32 next_seq; /* the window ends when this is acknowledged */
	u32 samples;
	u64 least_ns; /* of them */
};

#define DCTCP_ENOUGH_SAMPLES 8 /* as HyStart */
#define DCTCP_FEWEST_SAMPLES 3 /* of a whole window: one alone may be of a delayed ACK */

static __always_inline void dctcp_init(struct dctcp *d, const struct dctcp_params *p, u32 snd_nxt,
				       u32 delivered, u32 delivered_ce)
{
	*d = (struct dctcp){
		.alpha = p->initial_alpha,
		.delivered = delivered,
		.delivered_ce = delivered_ce,
		.next_seq = snd_nxt,
	};
}

/*
 * delivered and delivered_ce count packets since the connection began: all, and marked ones.
 * Returns true if a window ended, and alpha with it was updated.
 */
static __always_inline bool dctcp_ack(struct dctcp *d, const struct dctcp_params *p, u32 snd_una,
				      u32 snd_nxt, u32 delivered, u32 delivered_ce)
{
	u32 marked = delivered_ce - d->delivered_ce, packets = delivered - d->delivered, decay;

	if ((s32)(snd_una - d->next_seq) < 0)
		return false;
	decay = d->alpha >> p->g_shift;
	if (decay)
		d->alpha -= decay;
	else
		d->alpha = 0; /* as tcp_dctcp.c: an alpha below 1/g becomes 0 */
	if (marked) {
		/* a window of packets is below 2^22: no overflow */
		d->alpha += (marked << (10 - p->g_shift)) / (packets ?: 1);
		if (d->alpha > DCTCP_ALPHA_ONE)
			d->alpha = DCTCP_ALPHA_ONE;
	}
	d->delivered = delivered;
	d->delivered_ce = delivered_ce;
	d->next_seq = snd_nxt;
	return true;
}

/* Whether the window's round trips, of which there are enough, show a queue. */
static __always_inline bool dctcp_long(const struct dctcp_delay *d, const struct dctcp_params *p,
				       u64 least_ns, u32 enough)
{
	u64 delay_ns = p->slow_start_delay_ns;

	if (delay_ns < least_ns / 8)
		delay_ns = least_ns / 8;
	return d->samples >= enough && d->least_ns > least_ns + delay_ns;
}

/*
 * A round trip was measured in slow start, and least_ns is the least one of the connection. Returns
 * true if slow start ends because of a queue that does not mark.
 */
static __always_inline bool dctcp_queues(struct dctcp_delay *d, const struct dctcp_params *p,
					 u32 snd_una, u32 snd_nxt, u64 rtt_ns, u64 least_ns)
{
	bool queues = false;

	if (!p->slow_start_delay_ns)
		return false;
	if ((s32)(snd_una - d->next_seq) >= 0) {
		queues = dctcp_long(d, p, least_ns, DCTCP_FEWEST_SAMPLES);
		d->next_seq = snd_nxt;
		d->samples = 0;
	}
	if (!d->samples || rtt_ns < d->least_ns)
		d->least_ns = rtt_ns;
	d->samples++;
	return queues || dctcp_long(d, p, least_ns, DCTCP_ENOUGH_SAMPLES);
}

/* The window after an echoed mark, in packets: eq. (2). At least 2, as in tcp_dctcp.c. */
static __always_inline u32 dctcp_ssthresh(const struct dctcp *d, u32 cwnd)
{
	u32 cut = (cwnd * d->alpha) >> 11;

	return cwnd - cut > 2 ? cwnd - cut : 2;
}

#endif
