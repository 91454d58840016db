// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* LDCP's window: one flow. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include "algo/ldcp.h"
#include "batch.h"

enum ldcp_event {
	INIT,
	ACK,
	LOSS,
	TIMEOUT,
};

struct ldcp_step {
	u64 rtt_ns;	       /* in */
	u64 gap_ns;	       /* out */
	struct ldcp flow;      /* out */
	enum ldcp_event event; /* in */
	u32 iw;		       /* in, of INIT */
	u32 bdp;	       /* in, of INIT */
	u32 clean;	       /* in */
	u32 marked;	       /* in */
	u32 acked;	       /* in */
	u32 packets;	       /* out */
	bool limited;	       /* in */
	u8 pad[3];
};

struct ldcp_args {
	struct ldcp_params params;
	u32 steps;
	u32 done;
};

ARRAY(ldcp_steps, struct ldcp_step, MAX_STEPS);
static struct ldcp_params set;
static struct ldcp flow;

static long ldcp_step(u32 i, struct ldcp_args *args)
{
	struct ldcp_step *step = bpf_map_lookup_elem(&ldcp_steps, &i);

	if (!step)
		return 1;
	switch (step->event) {
	case INIT:
		ldcp_window_init(&flow, step->iw, step->bdp);
		break;
	case ACK:
		ldcp_ack(&flow, &set, step->clean, step->marked, step->acked, step->limited);
		break;
	case LOSS:
		ldcp_loss(&flow, &set, step->acked);
		break;
	case TIMEOUT:
		ldcp_timeout(&flow);
		break;
	}
	step->flow = flow;
	step->packets = ldcp_packets(&flow);
	step->gap_ns = ldcp_gap_ns(&flow, step->rtt_ns);
	args->done++;
	return 0;
}

SEC("syscall")
int window(struct ldcp_args *ctx)
{
	struct ldcp_args args = *ctx; /* a callback can't reach the context */

	set = args.params;
	bpf_loop(args.steps, ldcp_step, &args, 0);
	return args.done;
}

struct bdp_step {
	u64 rate_bps;	  /* in */
	u64 rtt_ns;	  /* in */
	u32 packet_bytes; /* in */
	u32 packets;	  /* out */
};

struct bdp_args {
	u32 steps;
	u32 done;
};

ARRAY(bdp_steps, struct bdp_step, MAX_STEPS);

static long bdp_step(u32 i, struct bdp_args *args)
{
	struct bdp_step *step = bpf_map_lookup_elem(&bdp_steps, &i);

	if (!step)
		return 1;
	step->packets = ldcp_bdp(step->rate_bps, step->rtt_ns, step->packet_bytes);
	args->done++;
	return 0;
}

SEC("syscall")
int bdp(struct bdp_args *ctx)
{
	struct bdp_args args = *ctx;

	bpf_loop(args.steps, bdp_step, &args, 0);
	return args.done;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
