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

/* The parameters of the flow's present window. */
static __always_inline struct pcn_np_params of_window(const struct pcn_np *np,
						      const struct pcn_np_params *set)
{
	struct pcn_np_params p = *set;

	p.t_ns += jitter_ns(np, set);
	return p;
}

static __always_inline bool notify_say(const struct pcn_np_cnp *verdict, struct notification *cnp)
{
	cnp->rec_rate = verdict->rec_rate;
	cnp->ce = verdict->ce;
	return verdict->send;
}

static __always_inline bool notify_packet(struct pcn_np *np, const struct pcn_np_params *set,
					  const struct notify_event *event,
					  struct notification *cnp)
{
	struct pcn_np_params p = of_window(np, set);
	struct pcn_np_cnp verdict;

	verdict = pcn_np_packets(np, &p, event->now_ns, event->packets, event->frame_bytes,
				 event->ecn == ECN_CE ? event->packets : 0);
	return notify_say(&verdict, cnp);
}

#ifdef __wasm__
/*
 * The simulator has a timer for each flow. On Linux a timer has no packet that it could clone into
 * a CNP, so there the flow's next packet sends it.
 */
#define NOTIFY_TIMER

static __always_inline bool notify_timed(const struct pcn_np_params *p)
{
	return p->window == PCN_WINDOW_PERIODIC;
}

/* When the flow's window ends; 0: it has no packet yet. */
static __always_inline u64 notify_due_ns(const struct pcn_np *np, const struct pcn_np_params *set)
{
	return np->rec_num ? np->start_ns + of_window(np, set).t_ns : 0;
}

static __always_inline bool notify_expire(struct pcn_np *np, const struct pcn_np_params *set,
					  u64 now_ns, struct notification *cnp)
{
	struct pcn_np_params p = of_window(np, set);
	struct pcn_np_cnp verdict = pcn_np_expire(np, &p, now_ns);

	return notify_say(&verdict, cnp);
}
#endif

#include "include/notify.h"
