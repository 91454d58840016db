// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* np: PCN's notification point (NSDI 2020, Fig. 8). */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/notify_event.h"
#include "algo/pcn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader. */
const volatile struct pcn_np_params params = {.t_ns = 50000, .congested_permille = 950};

#define notify_state pcn_np

/*
 * The difference of this window's T from T, the same for each of its packets. Windows of exactly T
 * keep their phase to each other and to the rate cycles that they cause, and favour the same flow
 * for milliseconds: the phase effects of Floyd and Jacobson (1991). The paper does not mention
 * jitter.
 */
static __always_inline s64 jitter_ns(const struct pcn_np *np, const struct pcn_np_params *p)
{
	u64 most_ns = q24_scale(p->t_ns, p->t_jitter);
	u32 h = (u32)np->start_ns * 2654435761U; /* Knuth's multiplicative hash */

	return (s64)((u64)h * (2 * most_ns) >> 32) - (s64)most_ns;
}

static __always_inline bool notify_wants(const struct notify_event *event)
{
	return true; /* Fig. 8 counts every packet */
}

static __always_inline bool notify_packet(struct pcn_np *np, const struct pcn_np_params *set,
					  const struct notify_event *event,
					  struct notification *cnp)
{
	struct pcn_np_params p = *set;
	struct pcn_np_cnp verdict;

	p.t_ns += jitter_ns(np, set);
	verdict = pcn_np_packets(np, &p, event->now_ns, event->packets, event->frame_bytes,
				 event->ecn == ECN_CE ? event->packets : 0);
	cnp->rec_rate = verdict.rec_rate;
	cnp->ce = verdict.ce;
	return verdict.send;
}

#include "include/notify.h"
