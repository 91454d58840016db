// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* PCN's algorithms, and PFC. Flows keep their state between batches. */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include "algo/npecn.h"
#include "algo/pcn.h"
#include "algo/pfc.h"
#include "batch.h"

#define MAX_FLOWS 1024

enum rp_event {
	RP_INIT,
	RP_CNP,
	RP_LOSS,
	RP_RESTART,
	RP_AGE,
};

struct rp_step {
	u64 now_ns;	     /* in */
	u64 rec_rate_bps;    /* in; of RP_AGE: bytes */
	u64 send_rate_bps;   /* out */
	u64 rtt_ns;	     /* in */
	u32 w;		     /* out */
	u32 flow;	     /* in */
	enum rp_event event; /* in */
	bool ce;	     /* in */
	bool app_limited;    /* in */
	u8 pad[2];
};

struct rp_args {
	struct pcn_rp_params params;
	u32 steps;
	u32 done;
};

ARRAY(rp_steps, struct rp_step, MAX_STEPS);
ARRAY(rp_flows, struct pcn_rp, MAX_FLOWS);

static long rp_step(u32 i, struct rp_args *args)
{
	struct rp_step *step = bpf_map_lookup_elem(&rp_steps, &i);
	struct pcn_rp *rp;

	if (!step)
		return 1;
	rp = bpf_map_lookup_elem(&rp_flows, &step->flow);
	if (!rp)
		return 1;
	rp->app_limited = step->app_limited;
	rp->rtt_ns = step->rtt_ns;
	switch (step->event) {
	case RP_INIT:
		pcn_rp_init(rp, &args->params);
		break;
	case RP_CNP:
		pcn_rp_cnp(rp, &args->params, step->now_ns, step->ce, step->rec_rate_bps);
		break;
	case RP_LOSS:
		pcn_rp_loss(rp, &args->params);
		break;
	case RP_RESTART:
		pcn_rp_restart(rp, &args->params);
		break;
	case RP_AGE:
		pcn_rp_age(rp, step->rec_rate_bps);
		break;
	}
	step->send_rate_bps = rp->send_rate_bps;
	step->w = rp->w;
	args->done++;
	return 0;
}

SEC("syscall")
int rp(struct rp_args *ctx)
{
	struct rp_args args = *ctx; /* a callback can't reach the context */

	bpf_loop(args.steps, rp_step, &args, 0);
	return args.done;
}

struct np_step {
	u64 now_ns;	       /* in */
	u32 size_bytes;	       /* in */
	u32 flow;	       /* in */
	struct pcn_np_cnp cnp; /* out */
	bool ce;	       /* in */
	bool timer;	       /* in: no packet, only the time */
	u8 pad[6];
};

struct np_args {
	struct pcn_np_params params;
	u32 steps;
	u32 done;
};

ARRAY(np_steps, struct np_step, MAX_STEPS);
ARRAY(np_flows, struct pcn_np, MAX_FLOWS);

static long np_step(u32 i, struct np_args *args)
{
	struct np_step *step = bpf_map_lookup_elem(&np_steps, &i);
	struct pcn_np *np;

	if (!step)
		return 1;
	np = bpf_map_lookup_elem(&np_flows, &step->flow);
	if (!np)
		return 1;
	if (step->timer)
		step->cnp = pcn_np_expire(np, &args->params, step->now_ns);
	else
		step->cnp =
			pcn_np_packet(np, &args->params, step->now_ns, step->size_bytes, step->ce);
	args->done++;
	return 0;
}

SEC("syscall")
int np(struct np_args *ctx)
{
	struct np_args args = *ctx;

	bpf_loop(args.steps, np_step, &args, 0);
	return args.done;
}

struct ack_step {
	struct pcn_ack_event ack; /* in */
	u64 send_rate_bps;	  /* out */
	u32 windows;		  /* out */
	u32 flow;		  /* in */
};

struct ack_args {
	struct pcn_rp_params rp;
	struct pcn_np_params np;
	u32 steps;
	u32 done;
};

struct ack_flow {
	struct pcn_rp rp;
	struct pcn_ack ack;
};

ARRAY(ack_steps, struct ack_step, MAX_STEPS);
ARRAY(ack_flows, struct ack_flow, MAX_FLOWS);

static long ack_step(u32 i, struct ack_args *args)
{
	struct ack_step *step = bpf_map_lookup_elem(&ack_steps, &i);
	struct ack_flow *flow;

	if (!step)
		return 1;
	flow = bpf_map_lookup_elem(&ack_flows, &step->flow);
	if (!flow)
		return 1;
	if (!flow->rp.send_rate_bps)
		pcn_rp_init(&flow->rp, &args->rp);
	pcn_rp_ack(&flow->rp, &flow->ack, &args->rp, &args->np, args->rp.feedback, &step->ack);
	step->send_rate_bps = flow->rp.send_rate_bps;
	step->windows = flow->ack.windows;
	args->done++;
	return 0;
}

SEC("syscall")
int ack(struct ack_args *ctx)
{
	struct ack_args args = *ctx;

	bpf_loop(args.steps, ack_step, &args, 0);
	return args.done;
}

/* One queue of a port. It starts empty with every run. */
enum cp_event {
	CP_ARRIVAL,
	CP_DEPARTURE,
	CP_PAUSE,
	CP_RESUME,
};

struct cp_step {
	enum cp_event event; /* in */
	u32 pn;		     /* out */
	bool mark;	     /* out */
	u8 pad[3];
};

struct cp_args {
	u32 steps;
	u32 done;
	struct npecn_cp cp;
	u32 queue_packets;
};

ARRAY(cp_steps, struct cp_step, MAX_STEPS);

static long cp_step(u32 i, struct cp_args *args)
{
	struct cp_step *step = bpf_map_lookup_elem(&cp_steps, &i);

	if (!step)
		return 1;
	switch (step->event) {
	case CP_ARRIVAL:
		args->queue_packets++;
		break;
	case CP_DEPARTURE:
		step->mark = npecn_transmit(&args->cp, --args->queue_packets);
		break;
	case CP_RESUME:
		npecn_resume(&args->cp, args->queue_packets);
		break;
	case CP_PAUSE: /* leaves PN alone */
		break;
	}
	step->pn = args->cp.pn;
	args->done++;
	return 0;
}

SEC("syscall")
int cp(struct cp_args *ctx)
{
	struct cp_args args = *ctx;

	bpf_loop(args.steps, cp_step, &args, 0);
	return args.done;
}

/* One ingress. The upstream port starts unpaused with every run and obeys every action. */
struct pfc_step {
	u64 ingress_bytes;	/* in */
	u64 free_bytes;		/* in */
	u64 t_ns;		/* in */
	u32 came;		/* in */
	enum pfc_action action; /* out */
	u32 frames;		/* out */
	u32 pad;
};

struct pfc_args {
	struct pfc_params params;
	u32 steps;
	u32 done;
	u32 pausing;
	u32 pad;
	struct pfc_repeat repeat;
};

ARRAY(pfc_steps, struct pfc_step, MAX_STEPS);

static long pfc_step(u32 i, struct pfc_args *args)
{
	struct pfc_step *step = bpf_map_lookup_elem(&pfc_steps, &i);
	u64 xoff;

	if (!step)
		return 1;
	xoff = pfc_xoff_bytes(&args->params, step->free_bytes);
	step->frames =
		pfc_repeat(&args->repeat, step->t_ns, step->came, step->ingress_bytes > xoff);
	step->action =
		pfc_check(&args->params, args->pausing, step->ingress_bytes, step->free_bytes);
	if (step->action != PFC_NONE)
		args->pausing = step->action == PFC_PAUSE;
	args->done++;
	return 0;
}

SEC("syscall")
int pfc(struct pfc_args *ctx)
{
	struct pfc_args args = *ctx;

	bpf_loop(args.steps, pfc_step, &args, 0);
	return args.done;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
