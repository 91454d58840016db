/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A marking rule of your own, for the switch ports of a lab.
 *
 * Write one header that includes this one and has three things in it:
 *
 *	struct own_marker_params { u64 threshold_ns; };	what is set before the run
 *	struct own_marker { u64 marked; };		what the rule remembers of a class queue;
 *							all zero at first
 *	own_mark()					as declared below: mark this packet?
 *
 * Both structs need at least one field. Compile the port with it, and load what comes out in place
 * of the built-in object (npecn.Options.Object):
 *
 *	clang-19 -target bpf -mcpu=v3 -O2 -g -I bpf '-DOWN_MARKER="/path/to/mine.h"' \
 *		-c qdisc-npecn/bpf/npecn.bpf.c -o mine.o
 *
 * Without OWN_MARKER the port has no trace of this. The rule runs once for each packet of a marked
 * class that starts on the wire, in the kernel: no floating point, no loop without a bound.
 */
#ifndef PCN_MARKER_H
#define PCN_MARKER_H

/* A packet starts on the wire, and leaves a queue of its class behind. */
struct mark_event {
	u64 now_ns;	 /* ideal time of the start */
	u64 sojourn_ns;	 /* how long the packet waited in the queue */
	u64 queue_bytes; /* that it leaves behind: what had ideally arrived by now_ns */
	u64 rate_bps;	 /* of the port, now */
	u32 len_bytes;	 /* of the packet's frame, without FCS */
	u32 random;	 /* uniform over 32 bits; reproducible, by the port's seed */
};

struct own_marker_params;
struct own_marker;

/* own_mark: whether to mark the packet. The state is of the port and class that sends it. */
static __always_inline bool own_mark(const struct own_marker_params *p, struct own_marker *state,
				     const struct mark_event *e);

#endif
