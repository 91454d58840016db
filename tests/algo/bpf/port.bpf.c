// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a lossless port does beside PFC: credits of CBFC, TCD's state, and FECN. Each batch starts
 * them anew.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include "algo/cbfc.h"
#include "algo/fecn.h"
#include "algo/tcd.h"
#include "batch.h"

enum credit_event {
	CREDIT_SEND,	/* the sender sends len bytes, if it has credits */
	CREDIT_RECEIVE, /* len bytes enter the buffer of the receiver */
	CREDIT_RELEASE, /* len bytes leave it */
	CREDIT_UPDATE,	/* the receiver computes FCCL: its buffer and all blocks that left it */
	CREDIT_HEAR,	/* the sender gets an FCCL of value */
	CREDIT_TICK,	/* when the receiver reports a change at value */
};

struct credit_step {
	u64 value;   /* in, or out: FCCL, FCTBS, or a time */
	u64 credits; /* out: the sender's */
	u64 held;    /* out: blocks in the receiver's buffer */
	u32 len;     /* in */
	u8 event;    /* in: enum credit_event */
	bool sent;   /* out */
	u8 pad[2];
};

struct credit_args {
	struct cbfc_params params;
	u32 steps;
	u32 done;
};

/* In a map, because the verifier follows every value on the stack. */
struct credit_link {
	struct cbfc_params params;
	struct cbfc_tx tx;
	struct cbfc_rx rx;
	u64 left; /* blocks that left the buffer */
};

ARRAY(credit_links, struct credit_link, 1);
ARRAY(credit_steps, struct credit_step, MAX_STEPS);

static long credit_step(u32 i, u32 *done)
{
	struct credit_step *step = bpf_map_lookup_elem(&credit_steps, &i);
	u32 zero = 0;
	struct credit_link *args = bpf_map_lookup_elem(&credit_links, &zero);
	u64 blocks;

	if (!step || !args)
		return 1;
	blocks = cbfc_blocks(step->len);
	switch (step->event) {
	case CREDIT_SEND:
		step->sent = cbfc_may_send(&args->tx, blocks);
		if (step->sent)
			cbfc_send(&args->tx, blocks);
		step->value = args->tx.fctbs;
		break;
	case CREDIT_RECEIVE:
		cbfc_receive(&args->rx, blocks);
		break;
	case CREDIT_RELEASE:
		cbfc_release(&args->rx, blocks);
		args->left += blocks;
		break;
	case CREDIT_UPDATE:
		step->value = args->params.buffer_blocks + args->left;
		break;
	case CREDIT_HEAR:
		cbfc_tx_update(&args->tx, step->value);
		break;
	case CREDIT_TICK:
		step->value = cbfc_tick(&args->params, step->value);
		break;
	}
	step->credits = args->tx.fccl - args->tx.fctbs;
	step->held = args->rx.held;
	(*done)++;
	return 0;
}

SEC("syscall")
int credit(struct credit_args *ctx)
{
	u32 zero = 0, done = 0;
	struct credit_link *link = bpf_map_lookup_elem(&credit_links, &zero);

	if (!link)
		return 0;
	link->params = ctx->params;
	link->rx = (struct cbfc_rx){};
	link->left = 0;
	cbfc_tx_init(&link->tx, &link->params);
	bpf_loop(ctx->steps, credit_step, &done, 0);
	return done;
}

struct fecn_step {
	u64 queue_bytes; /* in */
	u32 len;	 /* in */
	bool waited;	 /* in */
	bool mark;	 /* out */
	u8 pad[2];
};

struct fecn_args {
	struct fecn_params params;
	struct fecn_cp cp;
	u32 steps;
	u32 done;
	u32 pad;
};

ARRAY(fecn_steps, struct fecn_step, MAX_STEPS);

static long fecn_step(u32 i, struct fecn_args *args)
{
	struct fecn_step *step = bpf_map_lookup_elem(&fecn_steps, &i);

	if (!step)
		return 1;
	step->mark =
		fecn_mark(&args->cp, &args->params, step->queue_bytes, step->len, step->waited);
	args->done++;
	return 0;
}

SEC("syscall")
int fecn(struct fecn_args *ctx)
{
	struct fecn_args args = *ctx; /* a callback can't reach the context */

	bpf_loop(args.steps, fecn_step, &args, 0);
	return args.done;
}

struct tcd_step {
	u64 now_ns;	 /* in */
	u64 queue_bytes; /* in */
	bool on;	 /* in: OFF ends; else a packet leaves */
	bool over;	 /* in */
	u8 verdict;	 /* out: enum tcd_verdict */
	u8 state;	 /* out: enum tcd_state */
	u8 pad[4];
};

struct tcd_args {
	u64 max_ton_ns;
	struct tcd_cp cp;
	u32 steps;
	u32 done;
};

ARRAY(tcd_steps, struct tcd_step, MAX_STEPS);

static long tcd_step(u32 i, struct tcd_args *args)
{
	struct tcd_step *step = bpf_map_lookup_elem(&tcd_steps, &i);

	if (!step)
		return 1;
	if (step->on)
		tcd_on(&args->cp, step->now_ns, step->queue_bytes);
	else
		step->verdict = tcd_dequeue(&args->cp, args->max_ton_ns, step->now_ns,
					    step->queue_bytes, step->over);
	step->state = args->cp.state;
	args->done++;
	return 0;
}

SEC("syscall")
int tcd(struct tcd_args *ctx)
{
	struct tcd_args args = *ctx;

	bpf_loop(args.steps, tcd_step, &args, 0);
	return args.done;
}

/* Keep the types in BTF, for bpf2go. */
const enum credit_event *unused_credit_event __attribute__((unused));
const enum tcd_state *unused_tcd_state __attribute__((unused));
const enum tcd_verdict *unused_tcd_verdict __attribute__((unused));

char LICENSE[] SEC("license") = "Dual BSD/GPL";
