/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TCD, ternary congestion detection: it finds a port's state, and marks by it.
 *
 * Zhang et al., Congestion Detection in Lossless Networks, SIGCOMM 2021. Sec. 3.2 defines the
 * states; the algorithm is that of the authors' simulator (github.com/Yi-ran/DCQCN-TCD,
 * qbb-net-device.cc, "rootecn"). A queue is OFF while it is paused, or while it has a packet but no
 * credits for it. TCD looks at each packet that the queue sends:
 *
 *	on	time since the last OFF ended
 *	q, q_R	the queue now, and when OFF ended
 *	M	max(T_on), the longest ON period of a queue that is still switched on and off
 *	q_L	the queue when draining began, or when it was last checked, at least M ago
 *	over	what the port's own marking decides: RED's of DCQCN, or FECN's
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
 * A draining queue holds what OFF left there, and is not marked. With PFC, M is the paper's
 * equation. The excerpt that we have does not give M for CBFC, so it is derived here: a port that
 * is switched on and off is ON for less than one update period Tc, hence M = Tc. The simulator
 * counts in whole us, this code in ns.
 */
#ifndef PCN_ALGO_TCD_H
#define PCN_ALGO_TCD_H

#define TCD_DRAIN_BYTES 900  /* tolerated growth of a draining queue in M */
#define TCD_EMPTY_BYTES 2060 /* two packets of the simulator */

enum tcd_state {
	TCD_NON_CONGESTION,
	TCD_DRAINING, /* ON, and the queue is what OFF left */
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
	u32 was_off;	 /* OFF has ended at least once */
	u64 on_ns;	 /* when OFF last ended */
	u64 on_bytes;	 /* q_R */
	u64 drain_ns;	 /* when q_L was taken */
	u64 drain_bytes; /* q_L */
};

/* OFF ends. */
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

/* A packet leaves queue_bytes behind; over is what the port's own marking decides. */
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
