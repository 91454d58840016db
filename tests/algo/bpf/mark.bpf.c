// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What reports congestion to a sender: RED, DCQCN's NP with TCD's marks, QCN's CP, and DCTCP's
 * alpha. Each batch starts them anew.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include "algo/dctcp.h"
#include "algo/qcn.h"
#include "algo/red.h"
#include "algo/tcd_rp.h"
#include "batch.h"

struct red_step {
	u64 queue_bytes; /* in */
	u32 random;	 /* in */
	bool mark;	 /* out */
	u8 pad[3];
};

struct red_args {
	struct red_params params;
	u32 steps;
	u32 done;
};

ARRAY(red_steps, struct red_step, MAX_STEPS);

static long red_step(u32 i, struct red_args *args)
{
	struct red_step *step = bpf_map_lookup_elem(&red_steps, &i);

	if (!step)
		return 1;
	step->mark = red_mark(&args->params, step->queue_bytes, step->random);
	args->done++;
	return 0;
}

SEC("syscall")
int red(struct red_args *ctx)
{
	struct red_args args = *ctx; /* a callback can't reach the context */

	bpf_loop(args.steps, red_step, &args, 0);
	return args.done;
}

struct notify_step {
	u64 now_ns;	       /* in */
	enum tcd_verdict mark; /* in */
	enum tcd_verdict cnp;  /* out */
};

struct notify_args {
	u64 interval_ns;
	struct tcd_np np;
	u32 steps;
	u32 done;
};

ARRAY(notify_steps, struct notify_step, MAX_STEPS);

static long notify_step(u32 i, struct notify_args *args)
{
	struct notify_step *step = bpf_map_lookup_elem(&notify_steps, &i);

	if (!step)
		return 1;
	step->cnp = tcd_np_packet(&args->np, args->interval_ns, step->now_ns, step->mark);
	args->done++;
	return 0;
}

SEC("syscall")
int notify(struct notify_args *ctx)
{
	struct notify_args args = *ctx;

	bpf_loop(args.steps, notify_step, &args, 0);
	return args.done;
}

struct sample_step {
	u64 queue_bytes;	  /* in */
	struct qcn_sample sample; /* out */
	s64 credit_bytes;	  /* out */
	u32 len_bytes;		  /* in */
	s16 qoff_units;		  /* out: as a CNM says it */
	s16 qdelta_units;	  /* out */
};

struct sample_args {
	struct qcn_cp_params params;
	struct qcn_cp cp;
	u32 seed;
	u32 steps;
	u32 done;
	u32 pad;
};

ARRAY(sample_steps, struct sample_step, MAX_STEPS);

static long sample_step(u32 i, struct sample_args *args)
{
	struct sample_step *step = bpf_map_lookup_elem(&sample_steps, &i);

	if (!step)
		return 1;
	step->sample = qcn_cp_packet(&args->cp, &args->params, step->queue_bytes, step->len_bytes);
	step->credit_bytes = args->cp.credit_bytes;
	step->qoff_units = qcn_units(step->sample.qoff_bytes);
	step->qdelta_units = qcn_units(step->sample.qdelta_bytes);
	args->done++;
	return 0;
}

SEC("syscall")
int sample(struct sample_args *ctx)
{
	struct sample_args args = *ctx;

	qcn_cp_init(&args.cp, &args.params, args.seed);
	bpf_loop(args.steps, sample_step, &args, 0);
	return args.done;
}

struct window_step {
	u64 rtt_ns;	  /* in */
	u64 least_rtt_ns; /* in */
	u32 snd_una;	  /* in */
	u32 snd_nxt;	  /* in */
	u32 delivered;	  /* in */
	u32 delivered_ce; /* in */
	u32 cwnd;	  /* in */
	u32 ssthresh;	  /* out */
	u32 alpha;	  /* out */
	bool ended;	  /* out: a window, with this ACK */
	bool queues;	  /* out: the round trip is so long that slow start ends */
	u8 pad[2];
};

struct window_args {
	struct dctcp_params params;
	struct dctcp dctcp;
	struct dctcp_delay delay;
	u32 steps;
	u32 done;
};

ARRAY(window_steps, struct window_step, MAX_STEPS);

/* The first step starts the connection. */
static long window_step(u32 i, struct window_args *args)
{
	struct window_step *step = bpf_map_lookup_elem(&window_steps, &i);

	if (!step)
		return 1;
	if (i == 0) {
		dctcp_init(&args->dctcp, &args->params, step->snd_nxt, step->delivered,
			   step->delivered_ce);
		args->delay = (struct dctcp_delay){.next_seq = step->snd_nxt};
	} else {
		step->ended = dctcp_ack(&args->dctcp, &args->params, step->snd_una, step->snd_nxt,
					step->delivered, step->delivered_ce);
	}
	step->alpha = args->dctcp.alpha;
	step->ssthresh = dctcp_ssthresh(&args->dctcp, step->cwnd);
	if (step->rtt_ns)
		step->queues = dctcp_queues(&args->delay, &args->params, step->snd_una,
					    step->snd_nxt, step->rtt_ns, step->least_rtt_ns);
	args->done++;
	return 0;
}

SEC("syscall")
int window(struct window_args *ctx)
{
	struct window_args args = *ctx;

	bpf_loop(args.steps, window_step, &args, 0);
	return args.done;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
