/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DCTCP for a rate, as in HPCC's simulator: the sender starts at line rate.
 *
 * github.com/alibaba-edu/High-Precision-Congestion-Control, 9f4be2a,
 * simulation/src/point-to-point/model/rdma-hw.cc, HandleAckDctcp, lines 998 to 1050. Line numbers
 * below are of that file.
 *
 *	once a round trip:	alpha = (1 - g) * alpha + g * F
 *				F: marks that ACKs told of, by the packets of that round trip
 *	a mark:			rate = rate * (1 - alpha / 2), once a round trip
 *	else, once a round trip: rate = rate + rate_ai
 *
 * There a round trip ends with the ACK of a byte that was sent behind the latest end. Here packets
 * are counted in place of bytes, which is the same as long as all are full.
 */
#ifndef PCN_ALGO_DCTCP_RATE_H
#define PCN_ALGO_DCTCP_RATE_H

#include "fixed.h"

struct dctcp_rate_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps PARAM("Least rate of a flow", "1kbps to line_rate",
			       "min(1Gbps, line_rate / 10)");
	u64 rate_ai_bps PARAM("Rate that is added in a round trip without a cut, DCTCP_RATE_AI",
			      "1bps to 800Gbps", "615Mbps");
	q24 g PARAM("Weight of the newest round trip in alpha", "1/65536 to 1", "1/16");
	q24 initial_alpha PARAM("alpha before the second round trip", "0 to 1", "1");
};

struct dctcp_rp {
	u64 rate_bps;
	q24 alpha STAT("alpha, how congested the path is");
	u32 round_end;	  /* m_lastUpdateSeq: packets sent when the round trip began; 0: none has */
	u32 round;	  /* m_batchSizeOfAlpha: packets of the round trip */
	u32 marked;	  /* all marks that ACKs told of, as of the latest */
	u32 round_marked; /* m_ecnCnt: those of the round trip */
	u32 cut_end;	  /* m_highSeq: packets sent at the latest cut */
	u32 cut;	  /* m_caState: what was sent before the cut is not acknowledged yet */
	u32 pad;
};

static __always_inline void dctcp_rp_init(struct dctcp_rp *d, const struct dctcp_rate_params *p)
{
	*d = (struct dctcp_rp){.rate_bps = p->line_rate_bps, .alpha = p->initial_alpha};
}

static __always_inline void dctcp_rp_set(struct dctcp_rp *d, const struct dctcp_rate_params *p,
					 u64 rate_bps)
{
	d->rate_bps = bounded_rate(rate_bps, p->min_rate_bps, p->line_rate_bps);
}

/* The round trip is over: alpha, and the next one (lines 1010 to 1019). */
static __always_inline void dctcp_rp_round(struct dctcp_rp *d, const struct dctcp_rate_params *p,
					   u32 sent, u32 acked)
{
	u32 share = Q24_ONE;

	if (!d->round_end) { /* the first ACK: its mark counts in the round trip that begins */
		d->round_end = sent;
		d->round = sent + 1;
		return;
	}
	if (d->round_marked < d->round)
		share = ((u64)d->round_marked << Q24_SHIFT) / d->round;
	d->alpha = d->alpha - q24_scale(d->alpha, p->g) + q24_scale(share, p->g);
	d->round_end = sent;
	d->round_marked = 0;
	d->round = sent - acked + 1;
}

/*
 * An ACK. Packets since the connection began: sent, acked, and those whose mark ACKs told of. The
 * counts wrap.
 */
static __always_inline void dctcp_rp_ack(struct dctcp_rp *d, const struct dctcp_rate_params *p,
					 u32 sent, u32 acked, u32 marked)
{
	u32 news = marked - d->marked;
	bool ended = !d->round_end || (s32)(acked - d->round_end) > 0; /* line 1005 */

	d->marked = marked;
	d->round_marked += news; /* line 1004 */
	if (ended)
		dctcp_rp_round(d, p, sent, acked);
	if (d->cut && (s32)(acked - d->cut_end) > 0) /* lines 1029 to 1032 */
		d->cut = 0;
	if (news && !d->cut) { /* lines 1035 to 1045 */
		dctcp_rp_set(d, p, d->rate_bps - q24_scale(d->rate_bps, d->alpha / 2));
		d->cut = 1;
		d->cut_end = sent;
	}
	if (ended && !d->cut) /* lines 1048 to 1049 */
		dctcp_rp_set(d, p, d->rate_bps + p->rate_ai_bps);
}

/* A loss or a timeout halves the rate. HPCC's simulator has no rule for it. */
static __always_inline void dctcp_rp_loss(struct dctcp_rp *d, const struct dctcp_rate_params *p)
{
	dctcp_rp_set(d, p, d->rate_bps / 2);
}

#endif
