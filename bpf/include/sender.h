/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A sender's flow: what the reaction point (tc) and the congestion control (struct_ops) share, and its statistics.
 *
 * Both change the algorithm's state, under the entry's lock: the reaction point when a notification comes, the
 * control when an ACK does.
 */
#ifndef PCN_SENDER_H
#define PCN_SENDER_H

#include "flow.h"
#include "../algo/param.h"

/* At the receiver of a control that echoes each packet's mark, see echo.h. */
struct echo {
	u32 ce;	 /* the latest packet's mark */
	u32 seq; /* and what was expected behind it */
};

/* What every control keeps of a flow. */
struct sender {
	u64 sent_bytes;	   /* frames given to the device */
	u64 send_rate_bps; /* what the flow is paced by; 0: it has a window */
	u64 rec_rate_bps;  /* PCN: of the latest CNP that said decrease */
	u64 cnp_decrease;  /* CNPs and CNMs received, by what they said */
	u64 cnp_increase;
	u64 cnp_hold;	    /* TCD: CNPs that said UE */
	u64 losses;	    /* times a loss cut the rate */
	u32 segments;	    /* TCP's count, as of sent_bytes */
	u32 packets;	    /* delivered to the receiver */
	u32 marked_packets; /* of them with CE, as far as ACKs tell */
	u32 srtt_us;	    /* the kernel's clock */
	u32 retransmissions;
	u32 ecn;	  /* whether ECN was negotiated */
	u32 plain_window; /* packets, of a flow that is Reno's for want of ECN; 0: the control's own */
	u32 pad;
};

/* What the reaction point (react.h) knows of a flow's CNPs. */
struct cnp_guard {
	u64 due_ns;  /* when the next CNP is due, by the rate limit */
	u32 stamp;   /* of the latest CNP that was signed */
	u32 crc;     /* CRC-32 of what is the same in all of them, if crc_known */
	u32 ifindex; /* where CNPs of this peer were allowed last, 0: nowhere */
	u32 rules;   /* and by which issue of the rules */
	u32 stamped; /* stamp is one */
	u32 crc_known;
};

/*
 * FLOW_HEAD: what the entry of every control's flow table begins with. The algorithm's state follows.
 */
#define FLOW_HEAD                                                                                  \
	struct bpf_spin_lock lock;                                                                 \
	u32 pad;                                                                                   \
	struct cnp_guard guard;                                                                    \
	struct sender sender

/* FLOW_TABLE: live flows of this host; the congestion control adds and removes them. */
#define FLOW_TABLE(type_)                                                                          \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, 65536);                                                        \
		__type(key, struct flow_key);                                                      \
		__type(value, type_);                                                              \
	} flows SEC(".maps")

#endif
