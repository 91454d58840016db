/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * LDCP: a window that every ACK adjusts.
 *
 * Dai, Fu, Tan: PFC-Free Low Delay Control Protocol, draft-dai-tsvwg-pfc-free-congestion-control-00. What the draft
 * leaves open is decided in docs/ldcp.md.
 *
 *	stable stage, cw >= 1:	cw += n * alpha / cw	for n packets that were not marked	(1), (2)
 *				cw -= n * beta		for n that were
 *	cw < 1:			cw += gamma		for an ACK without marks
 *				cw = max(gamma, eta * cw)	for one with; a packet every RTT / cw
 *	fast start:		cw = IW, until IW is acknowledged, or a packet is lost
 */
#ifndef PCN_ALGO_LDCP_H
#define PCN_ALGO_LDCP_H

#include "fixed.h"

#define LDCP_ONE ((u64)Q24_ONE) /* of windows: one packet */

/* How a receiver tells of marks. */
enum ldcp_feedback {
	LDCP_FEEDBACK_ECHO,   /* each packet's mark, in its ACK, as RFC 8257 has it */
	LDCP_FEEDBACK_ACCECN, /* a counter of marks, in each ACK */
};

/* What switches do about packets of the first round trip. */
enum ldcp_first_rtt {
	LDCP_FIRST_RTT_DROP, /* they are not ECN-capable, and are dropped from K on */
	LDCP_FIRST_RTT_ECT,  /* they are ECN-capable, and are marked like all others */
};

struct ldcp_params {
	q24 alpha PARAM("Increase of the window in a round trip without marks, in packets",
			"1/65536 to 1", "1");
	q24 beta PARAM("Decrease of the window for each marked packet, in packets", "1/65536 to 1",
		       "0.5");
	q24 gamma PARAM("Increase of a window below one packet, and its minimum", "1/65536 to 1",
			"0.25");
	q24 eta PARAM("Factor of decreases of a window below one packet", "1/65536 to below 1",
		      "0.5");
	u64 initial_window_bytes
		PARAM("IW, in bytes of frames; 0: line rate * base RTT of the flow's path",
		      "0 to 100MB", "0");
};

/* What the sender's wiring to TCP needs besides. */
struct ldcp_path_params {
	u64 line_rate_bps FROM("line_rate");
	u64 base_rtt_ns FROM("base_rtt"); /* of a path that nothing is known of */
	u32 ack_every PARAM("m: a receiver acknowledges every m-th packet that is not marked; "
			    "Linux can do 1 or 2",
			    "1 to 2", "1");
	enum ldcp_feedback feedback PARAM(
		"How receivers tell of marks: echo, as RFC 8257 has it, or accecn, Accurate ECN",
		"", "echo");
	enum ldcp_first_rtt
		first_rtt PARAM("What switches do about packets of the first round trip: drop, "
				"they are not ECN-capable, and dropped from K on; or ect, they are "
				"ECN-capable, and marked like all others",
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
	u32 max; /* packets: cw grows no further */
	u32 stage;
	u32 pad;
};

/* ldcp_bdp: packets of so many bytes that are under way in a round trip; 1 at least. */
static __always_inline u32 ldcp_bdp(u64 rate_bps, u64 rtt_ns, u32 packet_bytes)
{
	/* 800 Gbit/s are 10^11 bytes/s; 100 ms of them in us: 10^16 < 2^64 */
	u64 bytes = (rate_bps >> 3) * (rtt_ns / 1000) / 1000000 +
		    (rate_bps >> 3) * (rtt_ns % 1000) / 1000000000;
	u64 packets = (bytes + packet_bytes - 1) / (packet_bytes ?: 1);

	if (packets > 1 << 20)
		return 1 << 20;
	return packets ?: 1;
}

/*
 * ldcp_window_init: sec. 2.3. iw, bdp: packets, 1 to 2^20. cw grows to twice the larger of them, a
 * path's worth and a queue's.
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

static __always_inline void ldcp_increase(struct ldcp *l, const struct ldcp_params *p, u32 n)
{
	if (n > 0xffff)
		n = 0xffff; /* n * alpha in Q48 fits 64 bits */
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
 * ldcp_ack: an ACK tells of packets that were not marked, and of some that were; acked packets are acknowledged in
 * order since the start. limited: the window was what held the sender back; else it does not grow.
 */
static __always_inline void ldcp_ack(struct ldcp *l, const struct ldcp_params *p, u32 clean,
				     u32 marked, u32 acked, bool limited)
{
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

/* ldcp_loss: a recovery begins, with so many packets acknowledged in order since the start. */
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

/* ldcp_timeout: nothing comes back: one packet. */
static __always_inline void ldcp_timeout(struct ldcp *l)
{
	l->stage = LDCP_STABLE;
	if (l->cw > LDCP_ONE)
		l->cw = LDCP_ONE;
}

/* ldcp_packets: the window as TCP counts it. */
static __always_inline u32 ldcp_packets(const struct ldcp *l)
{
	return l->cw >> Q24_SHIFT ?: 1;
}

/* ldcp_gap_ns: between two packets if cw < 1; 0: the window says when. rtt_ns < 2^40 (18 minutes). */
static __always_inline u64 ldcp_gap_ns(const struct ldcp *l, u64 rtt_ns)
{
	if (l->cw >= LDCP_ONE)
		return 0;
	return (rtt_ns << Q24_SHIFT) / (l->cw ?: 1); /* RTT / cw */
}

#endif
