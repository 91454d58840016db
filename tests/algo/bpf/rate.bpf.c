// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What sets a sender's rate: DCQCN, QCN, TIMELY, InfiniBand's control, HPCC and its DCTCP, with one
 * flow each; and their fixed-point numbers.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include "algo/fixed.h"
#include "algo/dcqcn.h"
#include "algo/dctcp_rate.h"
#include "algo/hpcc.h"
#include "algo/powertcp.h"
#include "algo/ibcc.h"
#include "algo/qcn.h"
#include "algo/swift.h"
#include "algo/timely.h"
#include "batch.h"

enum event {
	INIT,
	ACK,
	NOTICE, /* a CNP, CNM or BECN */
	LOSS,
	HOLD, /* TCD: a CNP that says UE */
};

struct dcqcn_step {
	u64 now_ns;	    /* in */
	u64 sent_bytes;	    /* in */
	struct dcqcn_rp rp; /* out */
	enum event event;   /* in */
	u32 pad;
};

struct dcqcn_args {
	struct dcqcn_params params;
	u32 steps;
	u32 done;
};

ARRAY(dcqcn_steps, struct dcqcn_step, MAX_STEPS);
static struct dcqcn_params dcqcn_set;
static struct dcqcn_rp dcqcn_flow;

/* Global, so that the verifier checks it once. */
__noinline int dcqcn_event(enum event event, u64 now_ns, u64 sent_bytes)
{
	switch (event) {
	case INIT:
		dcqcn_rp_init(&dcqcn_flow, &dcqcn_set, now_ns);
		break;
	case ACK:
		dcqcn_rp_advance(&dcqcn_flow, &dcqcn_set, now_ns, sent_bytes);
		break;
	case NOTICE:
		dcqcn_rp_cnp(&dcqcn_flow, &dcqcn_set, now_ns, sent_bytes);
		break;
	case LOSS:
		dcqcn_rp_loss(&dcqcn_flow, &dcqcn_set, now_ns, sent_bytes);
		break;
	case HOLD:
		dcqcn_rp_ue(&dcqcn_flow, &dcqcn_set, now_ns, sent_bytes);
		break;
	}
	return 0;
}

static long dcqcn_step(u32 i, struct dcqcn_args *args)
{
	struct dcqcn_step *step = bpf_map_lookup_elem(&dcqcn_steps, &i);

	if (!step)
		return 1;
	dcqcn_event(step->event, step->now_ns, step->sent_bytes);
	step->rp = dcqcn_flow;
	args->done++;
	return 0;
}

SEC("syscall")
int dcqcn(struct dcqcn_args *ctx)
{
	struct dcqcn_args args = *ctx; /* a callback can't reach the context */

	dcqcn_set = args.params;
	bpf_loop(args.steps, dcqcn_step, &args, 0);
	return args.done;
}

struct qcn_step {
	u64 now_ns;	  /* in */
	u64 sent_bytes;	  /* in */
	struct qcn_rp rp; /* out */
	enum event event; /* in */
	u32 qntz_fb;	  /* in */
};

struct qcn_args {
	struct qcn_rp_params params;
	u32 steps;
	u32 done;
};

ARRAY(qcn_steps, struct qcn_step, MAX_STEPS);
static struct qcn_rp_params qcn_set;
static struct qcn_rp qcn_flow;

/* Global, so that the verifier checks it once. */
__noinline int qcn_event(enum event event, u64 now_ns, u64 sent_bytes, u32 qntz_fb)
{
	switch (event) {
	case INIT:
		qcn_rp_init(&qcn_flow, &qcn_set, now_ns);
		break;
	case ACK:
		qcn_rp_advance(&qcn_flow, &qcn_set, now_ns, sent_bytes);
		break;
	case NOTICE:
		qcn_rp_cnm(&qcn_flow, &qcn_set, now_ns, sent_bytes, qntz_fb);
		break;
	case LOSS:
		qcn_rp_loss(&qcn_flow, &qcn_set, now_ns, sent_bytes);
		break;
	case HOLD: /* QCN has none */
		break;
	}
	return 0;
}

static long qcn_step(u32 i, struct qcn_args *args)
{
	struct qcn_step *step = bpf_map_lookup_elem(&qcn_steps, &i);

	if (!step)
		return 1;
	qcn_event(step->event, step->now_ns, step->sent_bytes, step->qntz_fb);
	step->rp = qcn_flow;
	args->done++;
	return 0;
}

SEC("syscall")
int qcn(struct qcn_args *ctx)
{
	struct qcn_args args = *ctx;

	qcn_set = args.params;
	bpf_loop(args.steps, qcn_step, &args, 0);
	return args.done;
}

struct timely_step {
	u64 now_ns;	     /* in */
	u64 rtt_ns;	     /* in */
	struct timely_rp rp; /* out */
	enum event event;    /* in */
	u32 acked_bytes;     /* in */
};

struct timely_args {
	struct timely_params params;
	u32 steps;
	u32 done;
};

ARRAY(timely_steps, struct timely_step, MAX_STEPS);
static struct timely_params timely_set;
static struct timely_rp timely_flow;

static long timely_step(u32 i, struct timely_args *args)
{
	struct timely_step *step = bpf_map_lookup_elem(&timely_steps, &i);

	if (!step)
		return 1;
	switch (step->event) {
	case INIT:
		timely_rp_init(&timely_flow, &timely_set);
		break;
	case ACK:
		timely_rp_ack(&timely_flow, &timely_set, step->now_ns, step->rtt_ns,
			      step->acked_bytes);
		break;
	case NOTICE:
		tcd_rp_cnp(&timely_flow.tcd, timely_set.tcd_hold_ns, step->now_ns, TCD_MARK_CE);
		break;
	case HOLD:
		tcd_rp_cnp(&timely_flow.tcd, timely_set.tcd_hold_ns, step->now_ns, TCD_MARK_UE);
		break;
	case LOSS:
		timely_rp_loss(&timely_flow, &timely_set);
		break;
	}
	step->rp = timely_flow;
	args->done++;
	return 0;
}

SEC("syscall")
int timely(struct timely_args *ctx)
{
	struct timely_args args = *ctx;

	timely_set = args.params;
	bpf_loop(args.steps, timely_step, &args, 0);
	return args.done;
}

struct ibcc_step {
	u64 now_ns;	   /* in */
	struct ibcc_rp rp; /* out */
	u64 rate_bps;	   /* out */
	enum event event;  /* in */
	u32 pad;
};

struct ibcc_args {
	struct ibcc_params params;
	u32 steps;
	u32 done;
};

ARRAY(ibcc_steps, struct ibcc_step, MAX_STEPS);
static struct ibcc_params ibcc_set;
static struct ibcc_rp ibcc_flow;

static long ibcc_step(u32 i, u32 *done)
{
	struct ibcc_step *step = bpf_map_lookup_elem(&ibcc_steps, &i);

	if (!step)
		return 1;
	switch (step->event) {
	case INIT:
		ibcc_rp_init(&ibcc_flow, &ibcc_set);
		break;
	case ACK:
		ibcc_rp_advance(&ibcc_flow, &ibcc_set, step->now_ns);
		break;
	case NOTICE:
	case LOSS: /* as bpf/cc/ibcc.bpf.c takes it */
		ibcc_rp_becn(&ibcc_flow, &ibcc_set, step->now_ns);
		break;
	case HOLD:
		ibcc_rp_ue(&ibcc_flow, &ibcc_set, step->now_ns);
		break;
	}
	step->rp = ibcc_flow;
	step->rate_bps = ibcc_rp_rate_bps(&ibcc_flow, &ibcc_set);
	(*done)++;
	return 0;
}

SEC("syscall")
int ibcc(struct ibcc_args *ctx)
{
	u32 steps = ctx->steps, done = 0;

	ibcc_set = ctx->params; /* too long for the stack */
	bpf_loop(steps, ibcc_step, &done, 0);
	return done;
}

struct dctcp_rate_step {
	u32 sent;	    /* in */
	u32 acked;	    /* in */
	struct dctcp_rp rp; /* out */
	u32 marked;	    /* in */
	enum event event;   /* in */
};

struct dctcp_rate_args {
	struct dctcp_rate_params params;
	u32 steps;
	u32 done;
};

ARRAY(dctcp_rate_steps, struct dctcp_rate_step, MAX_STEPS);
static struct dctcp_rate_params dctcp_rate_values;
static struct dctcp_rp dctcp_rate_flow;

static long dctcp_rate_step(u32 i, struct dctcp_rate_args *args)
{
	struct dctcp_rate_step *step = bpf_map_lookup_elem(&dctcp_rate_steps, &i);

	if (!step)
		return 1;
	switch (step->event) {
	case INIT:
		dctcp_rp_init(&dctcp_rate_flow, &dctcp_rate_values);
		break;
	case ACK:
		dctcp_rp_ack(&dctcp_rate_flow, &dctcp_rate_values, step->sent, step->acked,
			     step->marked);
		break;
	case LOSS:
		dctcp_rp_loss(&dctcp_rate_flow, &dctcp_rate_values);
		break;
	case NOTICE:
	case HOLD: /* it hears ACKs only */
		break;
	}
	step->rp = dctcp_rate_flow;
	args->done++;
	return 0;
}

SEC("syscall")
int dctcp_rate(struct dctcp_rate_args *ctx)
{
	struct dctcp_rate_args args = *ctx;

	dctcp_rate_values = args.params;
	bpf_loop(args.steps, dctcp_rate_step, &args, 0);
	return args.done;
}

struct hpcc_step {
	u32 sent;	       /* in */
	u32 acked;	       /* in */
	struct int_header ack; /* in */
	struct hpcc_rp rp;     /* out */
	u64 begin_bps;	       /* in, with INIT; 0: line rate */
	enum event event;      /* in */
	u32 pad;
};

struct hpcc_args {
	struct hpcc_params params;
	u32 steps;
	u32 done;
};

ARRAY(hpcc_steps, struct hpcc_step, MAX_STEPS);
static struct hpcc_params hpcc_values;
static struct hpcc_rp hpcc_flow;

/* Global, so that the verifier checks it once. */
__noinline int hpcc_event(struct hpcc_step *step)
{
	if (!step)
		return 1;
	switch (step->event) {
	case INIT:
		hpcc_rp_init(&hpcc_flow, &hpcc_values);
		if (step->begin_bps)
			hpcc_rp_set_rate(&hpcc_flow, step->begin_bps);
		break;
	case ACK:
		hpcc_rp_ack(&hpcc_flow, &hpcc_values, step->sent, step->acked, &step->ack);
		break;
	case NOTICE:
	case LOSS:
	case HOLD: /* it hears ACKs only */
		break;
	}
	step->rp = hpcc_flow;
	return 0;
}

static long hpcc_step(u32 i, struct hpcc_args *args)
{
	struct hpcc_step *step = bpf_map_lookup_elem(&hpcc_steps, &i);

	if (!step)
		return 1;
	hpcc_event(step);
	args->done++;
	return 0;
}

SEC("syscall")
int hpcc(struct hpcc_args *ctx)
{
	struct hpcc_args args = *ctx;

	hpcc_values = args.params;
	bpf_loop(args.steps, hpcc_step, &args, 0);
	return args.done;
}

struct powertcp_step {
	u32 sent;	       /* in */
	u32 acked;	       /* in */
	struct int_header ack; /* in */
	struct powertcp_rp rp; /* out */
	u64 begin_bps;	       /* in, with INIT; 0: line rate */
	enum event event;      /* in */
	u32 pad;
};

struct powertcp_args {
	struct powertcp_params params;
	u32 steps;
	u32 done;
};

ARRAY(powertcp_steps, struct powertcp_step, MAX_STEPS);
static struct powertcp_params powertcp_values;
static struct powertcp_rp powertcp_flow;

/* Global, so that the verifier checks it once. */
__noinline int powertcp_event(struct powertcp_step *step)
{
	if (!step)
		return 1;
	switch (step->event) {
	case INIT:
		powertcp_rp_init(&powertcp_flow, &powertcp_values);
		if (step->begin_bps)
			powertcp_rp_set_rate(&powertcp_flow, step->begin_bps);
		break;
	case ACK:
		powertcp_rp_ack(&powertcp_flow, &powertcp_values, step->sent, step->acked,
				&step->ack);
		break;
	case NOTICE:
	case LOSS:
	case HOLD: /* it hears ACKs only */
		break;
	}
	step->rp = powertcp_flow;
	return 0;
}

static long powertcp_step(u32 i, struct powertcp_args *args)
{
	struct powertcp_step *step = bpf_map_lookup_elem(&powertcp_steps, &i);

	if (!step)
		return 1;
	powertcp_event(step);
	args->done++;
	return 0;
}

SEC("syscall")
int powertcp(struct powertcp_args *ctx)
{
	struct powertcp_args args = *ctx;

	powertcp_values = args.params;
	bpf_loop(args.steps, powertcp_step, &args, 0);
	return args.done;
}

struct swift_step {
	u64 now_ns;	    /* in */
	u64 delay_ns;	    /* in */
	u32 acked;	    /* in */
	u32 limited;	    /* in */
	struct swift_rp rp; /* out */
	enum event event;   /* in */
	u32 pad;
};

struct swift_args {
	struct swift_params params;
	u32 steps;
	u32 done;
};

ARRAY(swift_steps, struct swift_step, MAX_STEPS);
static struct swift_params swift_values;
static struct swift_rp swift_flow;

/* Global, so that the verifier checks it once. */
__noinline int swift_event(struct swift_step *step)
{
	if (!step)
		return 1;
	switch (step->event) {
	case INIT:
		swift_rp_init(&swift_flow, &swift_values);
		break;
	case ACK:
		swift_rp_ack(&swift_flow, &swift_values, step->now_ns, step->delay_ns, step->acked,
			     step->limited);
		break;
	case LOSS:
		swift_rp_loss(&swift_flow, &swift_values, step->now_ns);
		break;
	case NOTICE:
	case HOLD:
		break;
	}
	step->rp = swift_flow;
	return 0;
}

static long swift_step(u32 i, struct swift_args *args)
{
	struct swift_step *step = bpf_map_lookup_elem(&swift_steps, &i);

	if (!step)
		return 1;
	swift_event(step);
	args->done++;
	return 0;
}

SEC("syscall")
int swift(struct swift_args *ctx)
{
	struct swift_args args = *ctx;

	swift_values = args.params;
	bpf_loop(args.steps, swift_step, &args, 0);
	return args.done;
}

struct fixed_step {
	u64 value;    /* in */
	u64 scaled;   /* out: value * fraction */
	u32 fraction; /* in */
	u32 exponent; /* in */
	u32 power;    /* out: fraction ^ exponent */
	u32 random;   /* out */
};

struct fixed_args {
	u32 steps;
	u32 done;
	u32 random;
};

ARRAY(fixed_steps, struct fixed_step, MAX_STEPS);

static long fixed_step(u32 i, struct fixed_args *args)
{
	struct fixed_step *step = bpf_map_lookup_elem(&fixed_steps, &i);

	if (!step)
		return 1;
	step->scaled = q24_scale(step->value, step->fraction);
	step->power = q24_power(step->fraction, step->exponent);
	step->random = random_next(&args->random);
	args->done++;
	return 0;
}

SEC("syscall")
int fixed(struct fixed_args *ctx)
{
	struct fixed_args args = *ctx;

	bpf_loop(args.steps, fixed_step, &args, 0);
	return args.done;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
