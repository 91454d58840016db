/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When a sender on a host may not go by its algorithm, because what the algorithm goes by may be
 * missing: doubt means slower. The flow then has the window of a plain TCP (include/plain.h).
 *
 *	NEW        no packet of this flow has been marked yet, so nothing shows that the bottleneck
 *	           marks packets
 *	NO_MARKS   packets were lost, and no notification had asked for a decrease shortly before:
 *	           some queue on the path is full and does not mark
 *	NO_CNPS    receivers should send CNPs, always or when packets are marked, and this one is
 *	           silent. It takes the place of NO_MARKS: to wait for marks would be in vain
 *
 * A marked packet, or a notification that asks for a decrease, ends each of them: the bottleneck
 * marks, and the receiver says so. A plain TCP slows down at the first mark, so its receiver may
 * never have cause to ask for a decrease. After a loss without marks they count only when the hold
 * is over, and the hold doubles each time. Nothing else ends a doubt: to try by sending faster
 * whether a path marks costs thousands of packets where it does not.
 *
 * Pure: no maps, no helpers, integers only.
 */
#ifndef PCN_ALGO_DOUBT_H
#define PCN_ALGO_DOUBT_H

#include "param.h"

/* Why a flow has a window. User space shows the names. */
enum doubt_reason {
	DOUBT_NONE,
	DOUBT_NEW,
	DOUBT_NO_ECN,	  /* the peer refused ECN */
	DOUBT_TABLE_FULL, /* the flow found the flow table full */
	DOUBT_NO_ENTRY,	  /* its entry is gone, or is another flow's */
	DOUBT_NO_MARKS,
	DOUBT_NO_CNPS,
};

struct doubt_params {
	flag on KEY("doubt")
		PARAM("After losses without marks, or without CNPs, a flow has a TCP window", "",
		      "false") HOST("true");
	flag careful KEY("careful_start")
		PARAM("With doubt, a flow has a TCP window until its first packet is marked: only "
		      "then it is sure that the path marks",
		      "", "false") HOST("true");
	u64 hold_ns KEY("doubt_hold")
		PARAM("After losses without marks, the time before marks count again. It doubles "
		      "each time, at most 64 times",
		      "1ms to 60s", "500ms");
	u64 period_ns FROM("T"); /* at which receivers send CNPs; 0: not known */
};

/* When the receiver of a flow sends CNPs, without which the algorithm knows nothing. */
enum doubt_cnps {
	DOUBT_CNPS_NEVER, /* or the algorithm has other news too */
	DOUBT_CNPS_ALWAYS,
	DOUBT_CNPS_FOR_MARKS,
};

/* Of a flow. */
struct doubt {
	u64 asked_ns;  /* when a decrease was asked for last, or marks ended a doubt; 0: never */
	u64 heard_ns;  /* when the latest CNP was seen or had no cause, or the flow began */
	u64 until_ns;  /* no decrease ends the doubt before */
	u32 decreases; /* asked for, as of the latest ACK */
	u32 cnps;      /* received until then */
	u32 heard_packets; /* of those that cause CNPs, delivered at heard_ns */
	u32 reason;	   /* enum doubt_reason */
	u32 times;	   /* doubts for lack of marks, since the last one long ago */
	u32 marks;	   /* as of the latest ACK */
};

/* What an ACK tells. Counters may wrap. */
struct doubt_event {
	u64 now_ns;
	u64 rtt_ns; /* smoothed; 0: not known */
	u32 decreases;
	u32 cnps;
	u32 packets; /* delivered */
	u32 marks;   /* of which marked */
	enum doubt_cnps expect_cnps;
	u32 pad;
};

#define DOUBT_HOLDS	     6			  /* times that the hold doubles */
#define DOUBT_RECENT_NS	     (5ULL * 1000 * 1000) /* and 8 round trips */
#define DOUBT_SILENT_NS	     (20ULL * 1000 * 1000)
#define DOUBT_SILENT_PACKETS 64

static __always_inline void doubt_start(struct doubt *d, const struct doubt_params *p, u64 now_ns)
{
	*d = (struct doubt){
		.heard_ns = now_ns,
		.reason = p->on && p->careful ? DOUBT_NEW : DOUBT_NONE,
	};
}

/* Packets for which the receiver sends CNPs. */
static __always_inline u32 doubt_causes(const struct doubt_event *e)
{
	return e->expect_cnps == DOUBT_CNPS_FOR_MARKS ? e->marks : e->packets;
}

/* The receiver has had such packets for several periods, and sent no CNP. */
static __always_inline bool doubt_silent(const struct doubt *d, const struct doubt_params *p,
					 const struct doubt_event *e)
{
	u64 patience_ns = 8 * p->period_ns;

	if (patience_ns < 4 * e->rtt_ns)
		patience_ns = 4 * e->rtt_ns;
	if (patience_ns < DOUBT_SILENT_NS)
		patience_ns = DOUBT_SILENT_NS;
	return e->expect_cnps && doubt_causes(e) - d->heard_packets >= DOUBT_SILENT_PACKETS &&
	       e->now_ns - d->heard_ns > patience_ns;
}

/* Marks show that the path marks; but where CNPs alone tell the rate, they must come too. */
static __always_inline bool doubt_marks_count(const struct doubt *d, const struct doubt_event *e)
{
	return !e->expect_cnps || (e->cnps && d->reason != DOUBT_NO_CNPS);
}

/* Returns the reason for a window after an ACK. */
static __always_inline u32 doubt_ack(struct doubt *d, const struct doubt_params *p,
				     const struct doubt_event *e)
{
	bool asked = e->decreases != d->decreases, marked = e->marks != d->marks;

	if (!p->on)
		return DOUBT_NONE;
	if (e->cnps != d->cnps) {
		d->cnps = e->cnps;
		d->heard_ns = e->now_ns;
		d->heard_packets = doubt_causes(e);
		if (d->reason == DOUBT_NO_CNPS)
			d->reason = DOUBT_NEW;
	}
	if (e->expect_cnps == DOUBT_CNPS_FOR_MARKS && e->marks == d->heard_packets)
		d->heard_ns = e->now_ns;
	d->marks = e->marks;
	d->decreases = e->decreases;
	if (asked)
		d->asked_ns = e->now_ns;
	if (!asked && d->reason != DOUBT_NO_CNPS && doubt_silent(d, p, e))
		d->reason = DOUBT_NO_CNPS;
	else if ((asked || (marked && doubt_marks_count(d, e))) && e->now_ns >= d->until_ns) {
		if (d->reason != DOUBT_NONE)
			d->asked_ns = e->now_ns;
		d->reason = DOUBT_NONE;
	}
	return d->reason;
}

/*
 * Whether the path marks, as far as was heard: a decrease was asked for shortly before, or no CNP
 * came since. After a pause of this host or of the network the latter is long ago. A flow whose
 * first packets were just marked hears that it is too fast up to two periods later, and may
 * overflow a queue until then.
 */
static __always_inline bool doubt_path_marks(const struct doubt *d, const struct doubt_params *p,
					     u64 now_ns, u64 rtt_ns)
{
	u64 recent_ns = DOUBT_RECENT_NS + 8 * rtt_ns + 2 * p->period_ns;

	return d->asked_ns && (now_ns - d->asked_ns < recent_ns || d->asked_ns == d->heard_ns);
}

/* A loss recovery or a timeout began. Returns the reason for a window after it. */
static __always_inline u32 doubt_loss(struct doubt *d, const struct doubt_params *p, u64 now_ns,
				      u64 rtt_ns)
{
	u64 longest_ns = p->hold_ns << DOUBT_HOLDS;
	u32 doublings = d->times < DOUBT_HOLDS ? d->times : DOUBT_HOLDS;

	if (!p->on)
		return DOUBT_NONE;
	if (d->reason != DOUBT_NONE && d->reason != DOUBT_NEW)
		return d->reason;
	if (doubt_path_marks(d, p, now_ns, rtt_ns))
		return d->reason;
	if (now_ns > d->until_ns && now_ns - d->until_ns > longest_ns)
		doublings = d->times = 0; /* the last one was long ago */
	d->reason = DOUBT_NO_MARKS;
	d->until_ns = now_ns + (p->hold_ns << doublings);
	d->times++;
	return d->reason;
}

#endif
