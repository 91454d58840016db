/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * HPCC's sender: every ACK brings what each switch on the path measured, and the rate follows from
 * that.
 *
 * Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019, Algorithm 1: "A1" below, with
 * its lines. And its simulator, github.com/alibaba-edu/High-Precision-Congestion-Control, 9f4be2a,
 * simulation/src/point-to-point/model/rdma-hw.cc, HandleAckHp, lines 744 to 919: numbers without A1
 * are lines of that file.
 *
 *	each link:	u = min(qlen, qlen before) / (B * T) + txRate / B
 *	the path:	U = (1 - tau / T) * U + tau / T * u, for the link with the largest u
 *	U >= eta:	W = Wc / (U / eta) + W_AI
 *	else:		W = Wc + W_AI, at most maxStage times in a row
 *	once a round trip:	Wc = W
 *
 * The simulator keeps rates, R = W / T, and so does this; the window of a flow is R * T. A round
 * trip ends with the ACK of what was sent after the latest end. Here packets are counted in place
 * of bytes, which is the same as long as all are full.
 */
#ifndef PCN_ALGO_HPCC_H
#define PCN_ALGO_HPCC_H

#include "fixed.h"

/* In-band network telemetry (INT): what a packet can carry, int-header.h's IntHeader. */
#define INT_HOPS       5    /* maxHop */
#define INT_BYTES_UNIT 128U /* byteUnit */
#define INT_QUEUE_UNIT 80U  /* qlenUnit */

/*
 * What a port tells of itself when a packet leaves it, IntHop, from the lowest bit on. The fields
 * wrap as there, but for the queue, which stays at its largest value.
 *	24 bits	the time in ns
 *	20 bits	bytes that left before, in units of INT_BYTES_UNIT * int_multi
 *	17 bits	the queue that it leaves behind, in units of INT_QUEUE_UNIT * int_multi
 * There the rate of the link is in the last three bits, an index of one of five; here it is any.
 */
struct int_header {
	u64 hop[INT_HOPS];
	u32 rate_kbps[INT_HOPS]; /* of the links, B */
	u32 hops;		 /* that the packet crossed; the fields have the first INT_HOPS */
};

#define INT_MASK(bits_) ((1U << (bits_)) - 1)

static __always_inline u32 int_ns_since(u64 hop, u64 before)
{
	return (hop - before) & INT_MASK(24);
}

static __always_inline u32 int_bytes_since(u64 hop, u64 before)
{
	return ((hop >> 24) - (before >> 24)) & INT_MASK(20);
}

static __always_inline u32 int_queue(u64 hop)
{
	return (hop >> 44) & INT_MASK(17);
}

struct hpcc_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps PARAM("Least rate of a flow", "1kbps to line_rate",
			       "min(1Gbps, line_rate / 10)");
	u64 rate_ai_bps PARAM("W_AI / T: the rate that is added each time, RATE_AI",
			      "1bps to 800Gbps", "line_rate / 2500");
	/* Above 0 */
	u64 rtt_ns PARAM("T, the round trip of a path without queues, with the time of a packet on "
			 "each link; 0: the network's longest",
			 "0 to 10ms", "0") UNLESS_GIVEN("path_rtt");
	q24 eta PARAM("Share of each link that flows aim at, U_TARGET", "1/100 to 1", "0.95");
	u32 max_stage
		PARAM("Additive increases in a row before the rate follows U again, MI_THRESH",
		      "0 to 1000", "5");
	u32 int_multi PARAM("Scale of INT's fields, INT_MULTI: units of 128 bytes sent and 80 "
			    "bytes queued, times this",
			    "1 to 160", "max(1, line_rate / 25Gbps)");
	flag fast_react PARAM(
		"Every ACK changes the rate, not only one in a round trip, FAST_REACT", "", "true");
	flag multi_rate PARAM("A rate for each hop, of which the least counts, MULTI_RATE", "",
			      "false");
	u32 pad;
};

/* What belongs to one hop, or to the path: hopState, or hp. */
struct hpcc_link {
	u64 rate_bps; /* Wc / T */
	wide_q24 u;   /* U */
	u32 stage;    /* incStage */
	u32 pad;
};

struct hpcc_rp {
	u64 rate_bps; /* W / T */
	wide_q24 u STAT("U, how much of the path's fullest link is used or asked for");
	struct hpcc_link link[INT_HOPS]; /* of the hops with multi_rate; else [0] of the path */
	u64 last[INT_HOPS];		 /* L: what the latest ACK brought */
	u32 hops;			 /* of which there are */
	u32 round_end;			 /* lastUpdateSeq: packets sent at the latest update */
};

/* The rate becomes another: a flow begins at a rate of its own. */
static __always_inline void hpcc_rp_set_rate(struct hpcc_rp *h, u64 rate_bps)
{
	h->rate_bps = rate_bps;
	for (u32 i = 0; i < INT_HOPS; i++)
		h->link[i].rate_bps = rate_bps;
}

/* Lines 238 to 249, and rdma-queue-pair.cc, lines 47 to 51: the path is taken for full. */
static __always_inline void hpcc_rp_init(struct hpcc_rp *h, const struct hpcc_params *p)
{
	*h = (struct hpcc_rp){.u = Q24_ONE};
	for (u32 i = 0; i < INT_HOPS; i++)
		h->link[i].u = Q24_ONE;
	hpcc_rp_set_rate(h, p->line_rate_bps);
}

/* Bytes as the time that a link needs for them, in units of 2^-24 ns. */
static __always_inline u64 hpcc_link_time(u32 bytes, u32 rate_kbps)
{
	return ((u64)bytes * 8000000 << Q24_SHIFT) / (rate_kbps ?: 1); /* 8192 * 8e6 < 2^36 */
}

/* A link in the time between two records. */
struct hpcc_sample {
	u64 u;
	u32 tau; /* ns; never 0, which would divide */
};

/* A1, lines 4 and 5; lines 791 to 795. */
static __always_inline struct hpcc_sample hpcc_measure(const struct hpcc_rp *h,
						       const struct hpcc_params *p,
						       const struct int_header *ack, u32 i)
{
	u64 now = ack->hop[i], before = h->last[i];
	u32 tau = int_ns_since(now, before), bytes = int_bytes_since(now, before);
	u32 queue = int_queue(now) < int_queue(before) ? int_queue(now) : int_queue(before);
	u64 bytes_ns = hpcc_link_time(INT_BYTES_UNIT * p->int_multi, ack->rate_kbps[i]);
	u64 queue_ns = hpcc_link_time(INT_QUEUE_UNIT * p->int_multi, ack->rate_kbps[i]);

	tau = tau ?: 1;
	return (struct hpcc_sample){
		.u = queue * queue_ns / p->rtt_ns + bytes * bytes_ns / tau,
		.tau = tau,
	};
}

/* U: A1, lines 8 and 9; lines 811 to 813 and 825 to 828. */
static __always_inline void hpcc_average(struct hpcc_link *l, const struct hpcc_params *p,
					 struct hpcc_sample sample)
{
	if (sample.tau > p->rtt_ns)
		sample.tau = p->rtt_ns;
	l->u = (l->u * (p->rtt_ns - sample.tau) + sample.u * sample.tau) / p->rtt_ns;
}

/* rate * eta / U, in two parts: above 1.1 Tbit/s the product does not fit in 64 bits. */
static __always_inline u64 hpcc_share(u64 rate_bps, q24 eta, u64 u)
{
	return rate_bps / u * eta + rate_bps % u * eta / u;
}

/* W by Wc: A1, lines 11 to 20; lines 829 to 842 and 858 to 869. Returns the rate. */
static __always_inline u64 hpcc_compute(struct hpcc_link *l, const struct hpcc_params *p,
					bool update)
{
	u32 stage = l->stage + 1;
	u64 rate_bps = l->rate_bps;

	if (l->u >= p->eta || l->stage >= p->max_stage) {
		/* nothing used, and nothing asked for: line rate */
		rate_bps = l->u ? hpcc_share(rate_bps, p->eta, l->u) : p->line_rate_bps;
		stage = 0;
	}
	rate_bps = bounded_rate(rate_bps + p->rate_ai_bps, p->min_rate_bps, p->line_rate_bps);
	if (update) {
		l->rate_bps = rate_bps;
		l->stage = stage;
	}
	return rate_bps;
}

/* One U and one rate for the path: A1, lines 2 to 7; lines 806 to 810. */
static __always_inline void hpcc_path(struct hpcc_rp *h, const struct hpcc_params *p,
				      const struct int_header *ack, bool update)
{
	struct hpcc_sample most = {};

	for (u32 i = 0; i < INT_HOPS && i < ack->hops; i++) {
		struct hpcc_sample sample = hpcc_measure(h, p, ack, i);

		if (sample.u > most.u)
			most = sample;
	}
	hpcc_average(&h->link[0], p, most);
	h->u = h->link[0].u;
	h->rate_bps = hpcc_compute(&h->link[0], p, update);
}

/* A U and a rate for each hop: lines 811 to 815 and 851 to 886. */
static __always_inline void hpcc_each_hop(struct hpcc_rp *h, const struct hpcc_params *p,
					  const struct int_header *ack, bool update)
{
	h->u = 0;
	h->rate_bps = p->line_rate_bps;
	for (u32 i = 0; i < INT_HOPS && i < ack->hops; i++) {
		u64 rate_bps;

		hpcc_average(&h->link[i], p, hpcc_measure(h, p, ack, i));
		rate_bps = hpcc_compute(&h->link[i], p, update);
		if (rate_bps < h->rate_bps)
			h->rate_bps = rate_bps;
		if (h->link[i].u > h->u)
			h->u = h->link[i].u;
	}
}

/* L: A1, line 27; lines 763 and 818. */
static __always_inline void hpcc_keep(struct hpcc_rp *h, const struct int_header *ack)
{
	h->hops = ack->hops;
	for (u32 i = 0; i < INT_HOPS; i++)
		h->last[i] = ack->hop[i];
}

/*
 * An ACK: A1, lines 21 to 27; lines 744 to 777 and 904 to 908. Packets since the connection began:
 * sent and acked, which wrap. What the ACK says is of no use if the packet crossed more hops than
 * it has room for. If it crossed more or fewer than the one before, the path is another.
 */
static __always_inline void hpcc_rp_ack(struct hpcc_rp *h, const struct hpcc_params *p, u32 sent,
					u32 acked, const struct int_header *ack)
{
	bool ended = (s32)(acked - h->round_end) > 0;

	if (!ack->hops || ack->hops > INT_HOPS)
		return;
	if (!h->round_end || ack->hops != h->hops) { /* lines 757 to 763 */
		h->round_end = sent;
		hpcc_keep(h, ack);
		return;
	}
	if (!ended && !p->fast_react)
		return;
	if (p->multi_rate)
		hpcc_each_hop(h, p, ack, ended);
	else
		hpcc_path(h, p, ack, ended);
	hpcc_keep(h, ack);
	if (ended && (s32)(sent - h->round_end) > 0)
		h->round_end = sent;
}

#endif
