/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A sender's flow: what RP (tc) writes and the congestion control (struct_ops) reads, and their statistics. */
#ifndef PCN_RP_H
#define PCN_RP_H

#include "flow.h"
#include "../algo/pcn.h"

struct rp_flow {
	struct pcn_rp rp;
	struct pcn_rp_params params;
	u64 rec_rate_bps; /* of the latest CNP that said decrease */
	u64 cnp_decrease, cnp_increase;
	u64 losses;	    /* times the rate was halved */
	u32 packets;	    /* delivered to the receiver */
	u32 marked_packets; /* of them with CE, as far as ACKs tell */
	u32 srtt_us;	    /* the kernel's clock */
	u32 retransmissions;
	u32 ecn; /* whether ECN was negotiated */
	u32 pad;
};

/* Live flows of this host; the congestion control adds and removes them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct rp_flow);
} rp_flows SEC(".maps");

#endif
