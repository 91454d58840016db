/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A marking rule of your own, for the switch ports of a lab.
 *
 * Write one header that includes this one and defines three things:
 *
 *	struct own_marker_params { u64 threshold_ns; };	parameters, set before the run
 *	struct own_marker { u64 marked; };		state of one class queue; all zero at first
 *	own_mark()					as declared below: mark this packet?
 *
 * Both structs need at least one field. Compile the port with your header, and load the object in
 * place of the built-in one (npecn.Options.Object):
 *
 *	clang-19 -target bpf -mcpu=v3 -O2 -g -I bpf '-DOWN_MARKER="/path/to/mine.h"' \
 *		-c qdisc-npecn/bpf/npecn.bpf.c -o mine.o
 *
 * A header that defines OWN_FEEDBACK defines own_feedback() too, which takes what own_mark() does
 * and returns 24 bits that go to the packet's sender, as QCN's feedback does (SCHEME("hears",
 * "cnm")); 0: none. Only the simulator asks for it: QCN's message has room for 6 bits.
 *
 * Without OWN_MARKER the port contains none of this. The rule runs in the kernel, once for each
 * packet of a marked class that starts on the wire: no floating point, no loop without a bound.
 */
#ifndef PCN_MARKER_H
#define PCN_MARKER_H

/* A packet starts on the wire. */
struct mark_event {
	u64 now_ns;	 /* ideal time of the start */
	u64 sojourn_ns;	 /* how long the packet waited in the queue */
	u64 queue_bytes; /* left behind: what had ideally arrived by now_ns */
	u64 rate_bps;	 /* of the port, now */
	u32 len_bytes;	 /* of the packet's frame, without FCS */
	u32 random;	 /* uniform over 32 bits; reproducible from the port's seed */
};

struct own_marker_params;
struct own_marker;

/* Whether to mark the packet. state belongs to the port and class that send it. */
static __always_inline bool own_mark(const struct own_marker_params *p, struct own_marker *state,
				     const struct mark_event *e);

#endif
