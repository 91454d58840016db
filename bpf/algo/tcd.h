/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TCD, ternary congestion detection: which state a port's queue is in, and what it marks.
 *
 * Zhang et al., Congestion Detection in Lossless Networks, SIGCOMM 2021, sec. 3.2 defines the
 * states; the algorithm is that of the authors' simulator (github.com/Yi-ran/DCQCN-TCD,
 * qbb-net-device.cc, "rootecn"). A queue is OFF while it is paused, or has a packet and no credits
 * for it. TCD looks at each packet that the queue sends. Then
 *
 *	on	time since the last OFF ended
 *	q, q_R	the queue now, and when OFF ended
 *	M	max(T_on), the longest ON period of a queue that is still switched on and off
 *	q_L	the queue when draining began, or when it was last checked, at least M ago
 *	over	what the port's own marking says: RED's of DCQCN, or FECN's
 *
 *	                          on <= M, from every state
 *	                                     |
 *	                                     v
 *	                             +--------------+
 *	                             | UNDETERMINED |  mark UE
 *	                             +--------------+
 *	                    on > M,   |            |  on > M,
 *	                    q < q_R   |            |  q >= q_R
 *	                              v            v
 *	                   +----------+  M passed,  +------------+
 *	      mark nothing | DRAINING | ----------> | CONGESTION |  mark CE if over
 *	                   +----------+  q >= q_L   +------------+
 *	                       q is |     + 900 B    |   ^
 *	                      empty |       not over |   | over
 *	                            v                v   |
 *	                          +-----------------------+
 *	             mark nothing |    NON-CONGESTION     |
 *	                          +-----------------------+
 *
 * A queue that drains holds what OFF left there, and is not marked. The paper's M for PFC is its
 * equation. Its M for CBFC is not in the excerpt that we have, so it is derived here: a port that
 * is switched on and off is ON for less than an update period Tc, hence M = Tc. The simulator's
 * times are in whole us, these in ns.
 */
#ifndef PCN_ALGO_TCD_H
#define PCN_ALGO_TCD_H

#define TCD_DRAIN_BYTES 900  /* what a queue that drains may have grown by in M */
#define TCD_EMPTY_BYTES 2060 /* two packets of the simulator */

enum tcd_state {
	TCD_NON_CONGESTION,
	TCD_DRAINING, /* ON, but what is queued is from OFF: to the outside no congestion */
	TCD_UNDETERMINED,
	TCD_CONGESTION,
};

enum tcd_verdict {
	TCD_MARK_NONE,
	TCD_MARK_UE,
	TCD_MARK_CE,
};

struct tcd_cp {
	u32 state;
	u32 was_off;	 /* OFF has ended once */
	u64 on_ns;	 /* when it last did */
	u64 on_bytes;	 /* q_R */
	u64 drain_ns;	 /* when q_L was taken */
	u64 drain_bytes; /* q_L */
};

/* tcd_on: OFF ends. */
static __always_inline void tcd_on(struct tcd_cp *cp, u64 now_ns, u64 queue_bytes)
{
	cp->was_off = 1;
	cp->on_ns = now_ns;
	cp->on_bytes = queue_bytes;
}

static __always_inline void tcd_drain(struct tcd_cp *cp, u64 now_ns, u64 queue_bytes)
{
	cp->state = TCD_DRAINING;
	cp->drain_ns = now_ns;
	cp->drain_bytes = queue_bytes;
}

/* tcd_dequeue: a packet leaves queue_bytes behind; over is what the port's marking says of it. */
static __always_inline enum tcd_verdict tcd_dequeue(struct tcd_cp *cp, u64 max_ton_ns, u64 now_ns,
						    u64 queue_bytes, bool over)
{
	enum tcd_verdict ce = over ? TCD_MARK_CE : TCD_MARK_NONE;

	if (cp->was_off && now_ns - cp->on_ns <= max_ton_ns) {
		cp->state = TCD_UNDETERMINED;
		return TCD_MARK_UE;
	}
	switch (cp->state) {
	case TCD_UNDETERMINED:
		if (queue_bytes < cp->on_bytes) {
			tcd_drain(cp, now_ns, queue_bytes);
			return TCD_MARK_NONE;
		}
		cp->state = TCD_CONGESTION;
		return ce;
	case TCD_DRAINING:
		if (now_ns - cp->drain_ns >= max_ton_ns) {
			if (queue_bytes >= cp->drain_bytes + TCD_DRAIN_BYTES) {
				cp->state = TCD_CONGESTION;
				return ce;
			}
			tcd_drain(cp, now_ns, queue_bytes);
		}
		if (queue_bytes <= TCD_EMPTY_BYTES)
			cp->state = TCD_NON_CONGESTION;
		return TCD_MARK_NONE;
	}
	cp->state = over ? TCD_CONGESTION : TCD_NON_CONGESTION;
	return ce;
}

#endif
