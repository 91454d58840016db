/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * LDCP: every ACK adjusts the window.
 *
 * Dai, Fu, Tan: PFC-Free Low Delay Control Protocol,
 * draft-dai-tsvwg-pfc-free-congestion-control-00. docs/ldcp.md has the decisions that the draft
 * leaves open.
 *
 *	stable stage, cw >= 1:	cw += n * alpha / cw	for n unmarked packets		(1), (2)
 *				cw -= n * beta		for n marked packets
 *	cw < 1:			cw += gamma		for an ACK without marks
 *				cw = max(gamma, eta * cw)	for an ACK with marks
 *				one packet every RTT / cw
 *	fast start:		cw = IW, until IW is acknowledged or a packet is lost
 */
#ifndef PCN_ALGO_LDCP_H
#define PCN_ALGO_LDCP_H

#include "fixed.h"

#define LDCP_ONE ((u64)Q24_ONE) /* a window of one packet */

/* How a receiver reports marks. */
enum ldcp_feedback {
	LDCP_FEEDBACK_ECHO,   /* each packet's mark in its ACK: RFC 8257 */
	LDCP_FEEDBACK_ACCECN, /* a counter of marks in each ACK: Accurate ECN */
};

/* What switches do with packets of the first round trip. */
enum ldcp_first_rtt {
	LDCP_FIRST_RTT_DROP, /* not ECN-capable: dropped when the queue reaches K */
	LDCP_FIRST_RTT_ECT,  /* ECN-capable: marked like all others */
};

struct ldcp_params {
	q24 alpha PARAM("Increase of the window in a round trip without marks, in packets",
			"1/65536 to 1", "1");
	q24 beta PARAM("Decrease of the window for each marked packet, in packets", "1/65536 to 1",
		       "0.5");
	q24 gamma PARAM("Increase of a window below one packet, and its minimum", "1/65536 to 1",
			"0.25");
	/*
	 * With the draft's 0.5, half of all packets marked hold a window at two packets, and one
	 * below a packet at half of one: who starts low stays low. Windows above and below a packet
	 * ask for the same share of marks at one packet if
	 *	alpha / beta = gamma / (1 - eta)
	 */
	q24 eta PARAM("Factor by which marks decrease a window below one packet",
		      "1/65536 to below 1", "0.5") HOST("max(1/65536, 1 - gamma * beta / alpha)");
	u64 initial_window_bytes
		PARAM("IW, in bytes of frames; 0: line rate * base RTT of the flow's path",
		      "0 to 100MB", "0");
	/*
	 * With segmentation offload half a window leaves at once. At a queue that such a packet
	 * crosses whole, all of it is marked or nothing, by who came first.
	 */
	u64 burst_ns KEY("burst")
		PARAM("Windows are paced, two a round trip, and packets that leave back to back "
		      "last this long at half of that rate; 0: not paced, as in the draft",
		      "0 to 10ms", "0ns") HOST("min(10ms, base_rtt / 16)");
	/* Receivers wait up to 40 ms for a second packet, which a window of one does not send. */
	flag ask_acks PARAM("A window of one packet asks the receiver to acknowledge it at once, "
			    "by the flag CWR; not with AccECN",
			    "", "false") HOST("true");
	u32 pad;
};

/* What the sender needs to know of its path and receiver. */
struct ldcp_path_params {
	u64 line_rate_bps FROM("line_rate");
	u64 base_rtt_ns FROM("base_rtt"); /* of a path that was not measured yet */
	u32 ack_every PARAM("m: receivers acknowledge every m-th unmarked packet; Linux "
			    "can do 1 or 2",
			    "1 to 2", "1");
	enum ldcp_feedback feedback PARAM(
		"How receivers report marks: echo (RFC 8257) or accecn (Accurate ECN)", "", "echo");
	enum ldcp_first_rtt
		first_rtt PARAM("Packets of the first round trip: drop makes them not "
				"ECN-capable, so switches drop them from K on; ect leaves them "
				"ECN-capable, so switches mark them",
				"", "drop");
	u32 pad;
};

enum ldcp_stage {
	LDCP_FAST_START,
	LDCP_STABLE,
};

struct ldcp {
	wide_q24 cw KEY("window_packets") STAT("The window, in packets");
	u32 iw;	 /* packets */
	u32 max; /* packets: the limit of cw */
	u32 stage;
	u32 clean; /* packets since the latest mark, at most LDCP_CLEAN */
};

/* The bandwidth-delay product in packets, 1 to 2^20. */
static __always_inline u32 ldcp_bdp(u64 rate_bps, u64 rtt_ns, u32 packet_bytes)
{
	/* 800 Gbit/s are 10^11 bytes/s; times 100 ms, in us, 10^16 < 2^64 */
	u64 bytes = (rate_bps >> 3) * (rtt_ns / 1000) / 1000000 +
		    (rate_bps >> 3) * (rtt_ns % 1000) / 1000000000;
	u64 packets = (bytes + packet_bytes - 1) / (packet_bytes ?: 1);

	if (packets > 1 << 20)
		return 1 << 20;
	return packets ?: 1;
}

/*
 * sec. 2.3. iw and bdp are in packets, 1 to 2^20. cw grows to twice the larger of them: enough for
 * the path and a queue.
 */
static __always_inline void ldcp_window_init(struct ldcp *l, u32 iw, u32 bdp)
{
	*l = (struct ldcp){
		.cw = iw * LDCP_ONE,
		.iw = iw,
		.max = 2 * (iw > bdp ? iw : bdp),
		.stage = LDCP_FAST_START,
	};
}

#define LDCP_CLEAN	  (1U << 30)
#define LDCP_CALM_WINDOWS 64

/* No packet was marked for many windows. */
static __always_inline bool ldcp_calm(const struct ldcp *l)
{
	return l->clean / LDCP_CALM_WINDOWS >= l->cw >> Q24_SHIFT;
}

static __always_inline void ldcp_increase(struct ldcp *l, const struct ldcp_params *p, u32 n)
{
	if (n > 0xffff)
		n = 0xffff; /* n * alpha in units of 2^-48 fits 64 bits */
	if (l->cw >= LDCP_ONE)
		l->cw += ((u64)n * p->alpha << Q24_SHIFT) / l->cw; /* (2), ECN-Echo = 0 */
	else
		l->cw += p->gamma;
	if (l->cw > l->max * LDCP_ONE)
		l->cw = l->max * LDCP_ONE;
}

static __always_inline void ldcp_decrease(struct ldcp *l, const struct ldcp_params *p, u32 n)
{
	u64 cut = (u64)n * p->beta;

	if (l->cw >= LDCP_ONE)
		l->cw = l->cw > cut ? l->cw - cut : 0; /* (2), ECN-Echo = 1 */
	else
		l->cw = q24_scale(l->cw, p->eta);
	if (l->cw < p->gamma)
		l->cw = p->gamma;
}

/*
 * clean and marked count the packets that this ACK reports; acked counts the packets acknowledged
 * in order since the start. limited: the window held the sender back; if not, it does not grow.
 */
static __always_inline void ldcp_ack(struct ldcp *l, const struct ldcp_params *p, u32 clean,
				     u32 marked, u32 acked, bool limited)
{
	l->clean = marked ? 0 : l->clean + clean;
	if (l->clean > LDCP_CLEAN)
		l->clean = LDCP_CLEAN;
	if (l->stage == LDCP_FAST_START) {
		if (acked >= l->iw)
			l->stage = LDCP_STABLE; /* sec. 3, transition 2: cw is IW already */
		return;
	}
	if (clean && limited)
		ldcp_increase(l, p, clean);
	if (marked)
		ldcp_decrease(l, p, marked);
}

/* A loss recovery begins; acked packets were acknowledged in order since the start. */
static __always_inline void ldcp_loss(struct ldcp *l, const struct ldcp_params *p, u32 acked)
{
	if (l->stage == LDCP_FAST_START) { /* sec. 3, transition 1 */
		l->stage = LDCP_STABLE;
		l->cw = (acked < l->iw ? acked : l->iw) * LDCP_ONE;
		if (l->cw < LDCP_ONE)
			l->cw = LDCP_ONE;
		return;
	}
	l->cw /= 2;
	if (l->cw < p->gamma)
		l->cw = p->gamma;
}

/* The flow goes on from a window that another rule has set. */
static __always_inline void ldcp_resume(struct ldcp *l, u32 packets)
{
	l->stage = LDCP_STABLE;
	l->clean = 0;
	l->cw = (packets < l->max ? packets ?: 1 : l->max) * LDCP_ONE;
}

/* A retransmission timeout leaves one packet. */
static __always_inline void ldcp_timeout(struct ldcp *l)
{
	l->stage = LDCP_STABLE;
	if (l->cw > LDCP_ONE)
		l->cw = LDCP_ONE;
}

/* The window as TCP counts it: whole packets. */
static __always_inline u32 ldcp_packets(const struct ldcp *l)
{
	return l->cw >> Q24_SHIFT ?: 1;
}

/*
 * Time between two packets if cw < 1. 0: the window alone decides. rtt_ns is below 2^40 (18
 * minutes).
 */
static __always_inline u64 ldcp_gap_ns(const struct ldcp *l, u64 rtt_ns)
{
	if (l->cw >= LDCP_ONE)
		return 0;
	return (rtt_ns << Q24_SHIFT) / (l->cw ?: 1); /* RTT / cw */
}

#endif
