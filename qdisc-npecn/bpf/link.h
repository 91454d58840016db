/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links beyond data centres: they lose packets one by one or in bursts, delay them at random, let
 * some be overtaken, send when a trace says so, and fail.
 *
 * Losses are a chain of two states (Gilbert 1960): what becomes of a packet depends on what became
 * of the one before. Delays are only added, as a port's decisions rest on the least. The port that
 * sends to a link does this. A host's has no delay of its own, which TCP would take for its host's
 * queue: the switch's port that the packet goes on by does it in its place.
 */
#ifndef NPECN_LINK_H
#define NPECN_LINK_H

#include "port.h"

/* When traces begin. Set by user space. */
u64 trace_from_ns = 0;

/* link_loses: whether the link of port p loses the next packet. */
static __always_inline bool link_loses(struct port *p)
{
	const struct link_params *l = &p->config.link;

	if (!l->lose_begin)
		return false;
	p->state.losing =
		random_next(&p->state.link_random) < (p->state.losing ? l->lose_on : l->lose_begin);
	if (p->state.losing)
		p->counters.dropped[DROP_LINK]++;
	return p->state.losing;
}

/*
 * link_fails: whether the link of port p is down, or fails before what starts now arrives, at t_ns.
 */
static __always_inline bool link_fails(const struct port *p, u32 id, u64 t_ns)
{
	u32 i = p->state.rate_next;
	bool fails = p->state.down;

	if (!(uses & USE_RATE_CHANGES))
		return false;
	bounded (RATE_CHANGES) {
		struct rate_change *c = rate_change_of(p, id, i++);

		if (fails || !c || !c->at_ns || c->at_ns > t_ns)
			break;
		fails = !c->rate_bps;
	}
	return fails;
}

/* link_arrival: when what would arrive at t_ns by the link of port p does. */
static __always_inline u64 link_arrival(struct port *p, u64 t_ns)
{
	const struct link_params *l = &p->config.link;

	if (uses & USE_REORDER && l->reorder && random_next(&p->state.link_random) < l->reorder)
		return t_ns + l->reorder_ns;
	if (!l->jitter_ns)
		return t_ns;
	t_ns += (random_next(&p->state.link_random) >> 8) * l->jitter_ns >> 24;
	if (t_ns < p->state.link_last_ns)
		t_ns = p->state.link_last_ns;
	p->state.link_last_ns = t_ns;
	return t_ns;
}

/*
 * host_link: the port of the host that a packet came in from by `ingress`, if its link does any of
 * this; else NULL.
 */
static __always_inline struct port *host_link(u32 ingress)
{
	struct port *p;

	if (!(uses & USE_LINK) || !ingress)
		return NULL;
	p = port_of(ingress);
	p = p ? port_of(p->config.peer) : NULL;
	return p && p->config.link.on && !p->config.delay_ns ? p : NULL;
}

/* count_parted: a packet that came in by `ingress` is for a host beyond a partition. */
static __always_inline void count_parted(u32 ingress)
{
	struct port *p = port_of(ingress);

	p = p ? port_of(p->config.peer) : NULL;
	if (p)
		p->counters.dropped[DROP_LINK]++;
}

/* opportunity_ns: when moment i of a port's trace is, from the trace's start. */
static __always_inline u64 opportunity_ns(const struct port *p, u32 i)
{
	u32 key = p->config.link.trace_first + i;
	u32 *ms = bpf_map_lookup_elem(&opportunities, &key);

	return ms ? *ms * 1000000ULL : NEVER;
}

/* find_opportunity: the first moment of the trace at or after t_ns from its start. */
static __always_inline u32 find_opportunity(const struct port *p, u64 t_ns)
{
	u32 low = 0, high = p->config.link.trace_entries;

	bounded (TRACE_SHIFT + 1) {
		u32 mid = (low + high) / 2;

		if (low >= high)
			break;
		if (opportunity_ns(p, mid) < t_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* next_opportunity: move to the trace's next moment. */
static __always_inline void next_opportunity(struct port *p)
{
	p->state.trace_left = OPPORTUNITY_BYTES;
	if (++p->state.trace_next < p->config.link.trace_entries)
		return;
	p->state.trace_next = 0;
	p->state.trace_round++;
}

static __always_inline u64 trace_now_ns(const struct port *p)
{
	return p->state.trace_round * p->config.link.trace_ns +
	       opportunity_ns(p, p->state.trace_next);
}

/* The longest frame takes so many moments. */
#define OPPORTUNITIES_OF_FRAME 8

/*
 * follow_trace: a packet starts at t_ns: the moments of the trace from then on send it, and what is
 * left of the one that is now. A global function, as next_start.
 */
__noinline int follow_trace(struct port *p __arg_nonnull, u32 len, u64 t_ns)
{
	u64 period_ns = p->config.link.trace_ns ?: 1;
	/* by whole rounds later, so that nothing is before the start */
	u64 shift_ns = period_ns - trace_from_ns % period_ns, at_ns = t_ns + shift_ns;

	if (trace_now_ns(p) < at_ns) {
		p->state.trace_round = at_ns / period_ns;
		p->state.trace_next = find_opportunity(p, at_ns % period_ns);
		p->state.trace_left = OPPORTUNITY_BYTES;
		if (p->state.trace_next >= p->config.link.trace_entries) {
			p->state.trace_next = 0;
			p->state.trace_round++;
		}
	}
	bounded (OPPORTUNITIES_OF_FRAME) {
		if (len <= p->state.trace_left)
			break;
		len -= p->state.trace_left;
		next_opportunity(p);
	}
	p->state.trace_left -= len;
	p->state.link_free_ns = trace_now_ns(p) - shift_ns;
	p->state.link_rest = 0;
	return 0;
}

#endif
