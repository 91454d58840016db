/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which packet starts when: strict priority, in ideal time, from the class queues to the wire. */
#ifndef NPECN_TRANSMIT_H
#define NPECN_TRANSMIT_H

#include "judge.h"
#include "obey.h"

/*
 * occupy_link: a packet starts at t_ns. The fraction of a ns that its end lies behind link_free_ns
 * is kept for the packets that follow without a gap: or each would be up to 1 ns too early, 1.5% of
 * a bare ACK at 40 Gbit/s.
 */
static __always_inline void occupy_link(struct port *p, u32 len, u64 t_ns)
{
	u64 rate_bps = p->state.rate_bps ?: 1, work = (u64)len * 8000000000ULL;

	if (t_ns == p->state.link_free_ns)
		work += p->state.link_rest;
	p->state.link_free_ns = t_ns + work / rate_bps;
	p->state.link_rest = work % rate_bps;
}

/*
 * transmit: class c starts its first packet at t_ns; it goes on the wire. A global function, as
 * next_start.
 */
__noinline int transmit(struct port *p __arg_nonnull, u32 c, u64 t_ns)
{
	struct departure d = {.t_ns = t_ns, .class = c};
	struct tclass *k = class_at(p, c);
	u32 id = p->config.id, len;
	struct sk_buff *skb;
	struct slot *s, *w;

	s = slot_at(&k->queue, k->queue.head);
	w = slot_at(&p->state.wire, p->state.wire.tail);
	if (!s || !w)
		return 0;
	len = s->packet.len;
	d.packet = &s->packet;
	d.len = len;
	d.waited = k->tx.ready_ns > s->packet.t_ns && k->tx.ready_ns > p->state.link_free_ns;
	all_arrive_by(p, t_ns);
	bin_reach(p, id, t_ns);
	change_rate(p, id, t_ns);
	occupy_link(p, len, t_ns);
	p->state.decided_ns = t_ns;
	k->queue.head++;
	p->state.queue_bytes -= len;
	k->arrived_bytes -= len;
	if (uses & USE_CBFC && p->config.credits && k->config.lossless)
		cbfc_send(&k->tx.credits, cbfc_blocks(len));
	w->packet.verdict = judge(p, k, &d, &w->packet.queue);
	if (w->packet.verdict & CARRY_CE) {
		k->counters.marked_packets++;
		p->state.bin.marked_packets++;
	}
	k->counters.sent_packets++;
	k->counters.sent_bytes += len;
	p->state.bin.sent_packets++;
	p->state.bin.sent_bytes += len;
	leave_node(p, c, len, s->packet.ingress, t_ns);
	w->packet.t_ns = p->state.link_free_ns + p->config.delay_ns;
	w->packet.len = len;
	skb = bpf_kptr_xchg(&s->skb, NULL);
	if (!skb)
		return 0;
	skb = bpf_kptr_xchg(&w->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	p->state.wire.tail++;
	skip_dropped(k);
	if (!ring_len(&k->queue))
		p->state.backlogged &= ~(1 << c);
	return 0;
}

/*
 * lossless_start: the ideal time at which lossless class c, which could otherwise at t_ns, can
 * start its first packet, of so many bytes; NEVER while it may not and no end is in sight. Decides
 * up to limit_ns.
 *
 * A global function, as next_start, which has a loop around it: the verifier looks at it once. It
 * leaves the time in the port: the verifier of 6.18 takes a value that is returned there, and that
 * the caller compares, for a bug of its own.
 */
__noinline int lossless_start(struct port *p __arg_nonnull, u32 c, u64 t_ns, u64 limit_ns, u32 len)
{
	struct tclass *k = class_at(p, c);
	u32 id = p->config.id;

	if (uses & USE_CBFC && p->config.credits)
		p->state.lossless_ns = cbfc_start(p, k, id, c, t_ns, limit_ns, cbfc_blocks(len));
	else
		p->state.lossless_ns = pfc_start(p, k, id, c, t_ns, limit_ns);
	return 0;
}

/* class_start: when a class can start its first packet; NEVER while no end of OFF is in sight. */
static __always_inline u64 class_start(struct port *p, u32 c, u64 limit_ns)
{
	struct tclass *k = class_at(p, c);
	struct slot *s = slot_at(&k->queue, k->queue.head);
	u64 t_ns;

	if (!s)
		return NEVER;
	t_ns = s->packet.t_ns;
	if (t_ns < p->state.link_free_ns)
		t_ns = p->state.link_free_ns;
	if (!k->config.lossless)
		return t_ns;
	if (!(uses & USE_CBFC) && pfc_quiet(&k->tx))
		return t_ns > k->tx.ready_ns ? t_ns : k->tx.ready_ns;
	lossless_start(p, c, t_ns, limit_ns, s->packet.len);
	return p->state.lossless_ns;
}

/*
 * next_start: the earliest ideal time at which a class can start a packet, and among equals the
 * highest class (strict priority, no preemption), as time * CLASSES + class. If that is after
 * limit_ns, it is when to look again, at the link events too; NEVER if no class has a packet.
 *
 * A global function, so that the verifier looks at it by itself: the load is many times faster.
 */
__noinline u64 next_start(struct port *p __arg_nonnull, u64 now, u64 limit_ns)
{
	u32 waiting = p->state.backlogged, best = highest(waiting);
	u64 best_ns = class_start(p, best, limit_ns), poll_ns = NEVER;

	if (best_ns == NEVER)
		poll_ns = now + p->config.pfc_delay_ns / 2;
	waiting ^= 1 << best;
	while (waiting && can_loop) { /* mostly there is one */
		u32 c = highest(waiting);
		u64 t_ns = class_start(p, c, limit_ns);

		waiting ^= 1 << c;
		if (t_ns == NEVER)
			poll_ns = now + p->config.pfc_delay_ns / 2;
		if (t_ns < best_ns) {
			best_ns = t_ns;
			best = c;
		}
	}
	if (best_ns > limit_ns && poll_ns < best_ns)
		best_ns = poll_ns;
	return best_ns == NEVER ? NEVER : best_ns * CLASSES + best;
}

/*
 * serve: decide every packet that starts by limit_ns, in ideal order. Returns the ideal time at
 * which there is something to decide again: a start, or a look at the link events.
 */
static __always_inline u64 serve(struct port *p, u64 now, u64 limit_ns)
{
	while (can_loop) {
		u64 next;

		if (!p->state.backlogged)
			return NEVER;
		if (ring_full(&p->state.wire))
			return limit_ns; /* dequeue makes room */
		next = next_start(p, now, limit_ns);
		if (next == NEVER)
			return NEVER;
		if (next / CLASSES > limit_ns) {
			u64 arrival_ns = all_arrive_by(p, limit_ns);

			/* in time for a PAUSE; from a host there is none */
			if (p->config.lag_ns && arrival_ns < next / CLASSES)
				return arrival_ns;
			return next / CLASSES;
		}
		transmit(p, next % CLASSES, next / CLASSES);
	}
	return limit_ns; /* not reached: the wire is full before */
}

#endif
