/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which packet starts when, from the class queues to the wire: by priority or in turn. */
#ifndef NPECN_TRANSMIT_H
#define NPECN_TRANSMIT_H

#include "judge.h"
#include "link.h"
#include "rounds.h"
#include "watchdog.h"

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
 * seen: when the peer of a port, a host, sees what arrives at t_ns, no earlier than what was sent
 * before: at its next look, which the first packet after a look brings about.
 */
static __always_inline u64 seen(struct port *p, u64 t_ns)
{
	if (t_ns > p->state.look_ns)
		p->state.look_ns =
			t_ns + noise_delays[random_next(&p->state.noise_random) % NOISE_DELAYS];
	return p->state.look_ns;
}

/* put_on_wire: the packet of a slot, which has left its queue, goes on the wire, or is lost. */
static __always_inline void put_on_wire(struct port *p, struct slot *s, u8 verdict, u32 queue)
{
	u64 t_ns = p->state.link_free_ns + p->config.delay_ns;
	struct sk_buff *skb;
	struct slot *w;

	if (link_fails(p, p->config.id, t_ns)) {
		p->counters.dropped[DROP_LINK]++;
		lose(p, s);
		return;
	}
	if (uses & USE_LINK && p->config.link.on && p->config.delay_ns) {
		if (link_loses(p)) {
			lose(p, s);
			return;
		}
		t_ns = link_arrival(p, t_ns);
	}
	if (uses & USE_NOISE && p->config.noisy)
		t_ns = seen(p, t_ns);
	w = slot_at(&p->state.wire,
		    uses & USE_REORDER ? ring_sort_in(&p->state.wire, t_ns) : p->state.wire.tail);
	if (!w)
		return;
	w->packet.t_ns = t_ns;
	w->packet.len = s->packet.len;
	w->packet.verdict = verdict;
	w->packet.queue = queue;
	skb = bpf_kptr_xchg(&s->skb, NULL);
	if (!skb)
		return;
	skb = bpf_kptr_xchg(&w->skb, skb);
	if (skb)
		bpf_kfree_skb(skb);
	p->state.wire.tail++;
}

/*
 * transmit: class c starts its first packet at t_ns; it goes on the wire. A global function, as
 * next_start.
 */
__noinline int transmit(struct port *p __arg_nonnull, u32 c, u64 t_ns)
{
	struct departure d = {.t_ns = t_ns, .class = c};
	struct tclass *k = class_at(p, c);
	u32 id = p->config.id, len, queue = 0;
	struct slot *s;
	u8 verdict;

	if (uses & USE_WATCHDOG) { /* which may drop the first packet, too */
		u32 head = k->queue.head;

		all_arrive_by(p, t_ns);
		if (k->queue.head != head || !ring_len(&k->queue))
			return 0;
	}
	s = slot_at(&k->queue, k->queue.head);
	if (!s || (uses & USE_WATCHDOG && s->packet.t_ns > t_ns))
		return 0;
	len = s->packet.len;
	d.packet = &s->packet;
	d.len = len;
	d.waited = k->tx.ready_ns > s->packet.t_ns && k->tx.ready_ns > p->state.link_free_ns;
	all_arrive_by(p, t_ns);
	bin_reach(p, id, t_ns);
	change_rate(p, id, t_ns);
	if (uses & USE_TRACE && p->config.link.trace_entries)
		follow_trace(p, len, t_ns);
	else
		occupy_link(p, len, t_ns);
	p->state.decided_ns = t_ns;
	k->queue.head++;
	p->state.queue_bytes -= len;
	k->arrived_bytes -= len;
	if (uses & USE_CBFC && p->config.credits && k->config.lossless)
		cbfc_send(&k->tx.credits, cbfc_blocks(len));
	verdict = judge(p, k, &d, &queue);
	if (verdict & CARRY_CE) {
		k->counters.marked_packets++;
		p->state.bin.marked_packets++;
	}
	k->counters.sent_packets++;
	k->counters.sent_bytes += len;
	p->state.bin.sent_packets++;
	p->state.bin.sent_bytes += len;
	leave_node(p, c, len, s->packet.ingress, t_ns);
	put_on_wire(p, s, verdict, queue);
	skip_dropped(k);
	if (!ring_len(&k->queue))
		p->state.backlogged &= ~(1 << c);
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
 * highest class, or the one whose turn it is (no preemption), as time * CLASSES + class. If that
 * is after limit_ns, it is when to look again, at the link events too; NEVER if no class has a
 * packet.
 *
 * A global function, so that the verifier looks at it by itself: the load is many times faster.
 */
__noinline u64 next_start(struct port *p __arg_nonnull, u64 now, u64 limit_ns)
{
	u32 waiting = p->state.backlogged, best = highest(waiting), ready = 1 << best;
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
			ready = 0;
		}
		if (t_ns == best_ns)
			ready |= 1 << c;
	}
	if (best_ns > limit_ns && poll_ns < best_ns)
		best_ns = poll_ns;
	if (uses & USE_WEIGHTS && p->config.weighted && best_ns <= limit_ns) {
		choose_class(p, ready);
		best = p->state.chosen & (CLASSES - 1);
	}
	return best_ns == NEVER ? NEVER : best_ns * CLASSES + best;
}

/*
 * serve: decide every packet that starts by limit_ns, in ideal order. Returns the ideal time at
 * which there is something to decide again: a start, or a look at the link events.
 */
static __always_inline u64 serve(struct port *p, u64 now, u64 limit_ns)
{
	while (can_loop) {
		u64 poll_ns = next_poll(p), until_ns = poll_ns < limit_ns ? poll_ns : limit_ns;
		u64 next = NEVER, start_ns, arrival_ns;

		if (p->state.backlogged) {
			if (ring_full(&p->state.wire))
				return limit_ns; /* dequeue makes room */
			next = next_start(p, now, until_ns);
		}
		start_ns = next == NEVER ? NEVER : next / CLASSES;
		if (start_ns <= until_ns) {
			transmit(p, next % CLASSES, start_ns);
			continue;
		}
		if (poll_ns <= limit_ns) {
			poll_classes(p, poll_ns);
			continue;
		}
		if (start_ns == NEVER)
			return poll_ns;
		arrival_ns = all_arrive_by(p, limit_ns);
		/* in time for a PAUSE; from a host there is none */
		if (p->config.lag_ns && arrival_ns < start_ns)
			start_ns = arrival_ns;
		return poll_ns < start_ns ? poll_ns : start_ns;
	}
	return limit_ns; /* not reached: the wire is full before */
}

#endif
