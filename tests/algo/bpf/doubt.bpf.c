// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* algo/doubt.h as a program that a Go test can run: see batch.h. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include "batch.h"
#include "algo/doubt.h"

char _license[] SEC("license") = "Dual BSD/GPL";

enum doubt_step_kind {
	DOUBT_STEP_ACK,
	DOUBT_STEP_LOSS,
};

struct doubt_step {
	enum doubt_step_kind kind; /* in */
	u32 reason;		   /* out */
	struct doubt_event event;  /* in */
};

struct doubt_args {
	struct doubt_params params;
	u64 start_ns;
	u32 steps;
	u32 done;
};

ARRAY(doubt_steps, struct doubt_step, MAX_STEPS);
ARRAY(doubt_flow, struct doubt, 1);

static long doubt_one(u32 i, struct doubt_args *args)
{
	struct doubt_step *step = bpf_map_lookup_elem(&doubt_steps, &i);
	u32 zero = 0;
	struct doubt *doubt = bpf_map_lookup_elem(&doubt_flow, &zero);

	if (!step || !doubt)
		return 1;
	if (step->kind == DOUBT_STEP_ACK)
		step->reason = doubt_ack(doubt, &args->params, &step->event);
	else
		step->reason =
			doubt_loss(doubt, &args->params, step->event.now_ns, step->event.rtt_ns);
	args->done++;
	return 0;
}

SEC("syscall")
int doubts(struct doubt_args *ctx)
{
	u32 zero = 0;
	struct doubt *doubt = bpf_map_lookup_elem(&doubt_flow, &zero);
	struct doubt_args args = *ctx;

	if (!doubt)
		return 0;
	doubt_start(doubt, &args.params, args.start_ns);
	bpf_loop(args.steps, doubt_one, &args, 0);
	return args.done;
}
