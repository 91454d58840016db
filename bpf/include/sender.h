/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A sender's flow: what the reaction point (tc) and the congestion control (struct_ops) share, and
 * its statistics.
 *
 * Both change the algorithm's state under the entry's lock: the reaction point at notifications,
 * the control at ACKs.
 */
#ifndef PCN_SENDER_H
#define PCN_SENDER_H

#include "flow.h"
#include "../algo/doubt.h"
#include "../algo/param.h"

/* State of a receiver that echoes each packet's mark, see echo.h. */
struct echo {
	u32 ce;	 /* the latest packet's mark */
	u32 seq; /* the sequence number expected after it */
};

/* What every control keeps of a flow. */
struct sender {
	u64 sent_bytes;	   /* frames given to the device */
	u64 payload_bytes; /* TCP's count, as of sent_bytes */
	u64 send_rate_bps; /* the rate at which the flow is paced; 0: it has a window */
	u64 rec_rate_bps;  /* PCN: RecRate of the latest CNP that said CE */
	u64 cnp_decrease;  /* CNPs and CNMs received, by what they said */
	u64 cnp_increase;
	u64 cnp_hold;	    /* TCD: CNPs that said UE */
	u64 losses;	    /* times a loss cut the rate */
	u32 segments;	    /* TCP's count, as of sent_bytes */
	u32 packets;	    /* delivered to the receiver */
	u32 marked_packets; /* of which with CE, as far as ACKs report */
	u32 srtt_us;	    /* the kernel's clock */
	u32 retransmissions;
	u32 ecn;		 /* whether ECN was negotiated */
	u32 plain_window;	 /* packets, of a flow that has a TCP window (plain.h); else 0 */
	enum doubt_reason doubt; /* why it has one */
};

/* What the number of a flow's latest CNP is. */
enum cnp_number {
	CNP_UNNUMBERED,
	CNP_BYTES,  /* the sequence number of the packet that it answers */
	CNP_STAMPS, /* its stamp: it was signed */
};

/* What the reaction point (react.h) knows of a flow's CNPs. */
struct cnp_guard {
	u64 due_ns;  /* when the next CNP that slows down is due, by the rate limit */
	u64 rise_ns; /* and the next that speeds up */
	u64 vlans;   /* of the latest CNP, with those of a host: 12 bits each, the innermost last */
	u32 place;   /* the interface at which it came in; 0: none came */
	u32 place_s; /* and when */
	u32 number;  /* of the latest one, see numbered */
	u32 crc;     /* CRC-32 of what is the same in all of them, if crc_known */
	u32 ifindex; /* where CNPs of this peer were allowed last, 0: nowhere */
	u32 rules;   /* and by which version of the rules */
	u32 crc_known;
	u16 numbered; /* enum cnp_number */
	u16 sighted;  /* what follows is set */
	/* As of the latest ACK on a host, what those know who see the flow's packets: */
	u32 una;      /* the first byte that is not acknowledged */
	u32 flight;   /* bytes that were in flight lately, at most */
	u32 expected; /* the next byte of the peer */
	u32 window;   /* bytes that the peer may send */
};

/* The beginning of every entry in a flow table. The algorithm's state follows. */
#define FLOW_HEAD                                                                                  \
	struct bpf_spin_lock lock;                                                                 \
	u32 owner; /* the socket's: tcp.h */                                                       \
	struct cnp_guard guard;                                                                    \
	struct doubt doubt;                                                                        \
	struct sender sender

/* Live flows of this host. The congestion control adds and removes them. */
#define FLOW_TABLE(type_)                                                                          \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, 65536);                                                        \
		__type(key, struct flow_key);                                                      \
		__type(value, type_);                                                              \
	} flows SEC(".maps")

#endif
