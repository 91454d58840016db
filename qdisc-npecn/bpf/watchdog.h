/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PFC's watchdog of a switch's port: it looks at the port's lossless queues, and acts on storms.
 * When it does is in algo/pfc_watchdog.h.
 */
#ifndef NPECN_WATCHDOG_H
#define NPECN_WATCHDOG_H

#include "obey.h"

/* When the polls of all watchdogs begin. Set by user space before the flows start. */
u64 watchdog_from_ns = 0;

static __always_inline void tell_storm(u32 id, u32 c, u64 t_ns, bool over, const struct guard *g)
{
	struct event_storm e = {
		.kind = EVENT_STORM,
		.port = id,
		.class = c,
		.over = over,
		.at_ns = t_ns,
		.dropped_packets = g->dropped_packets,
		.refused_packets = g->refused_packets,
	};

	emit(&e, sizeof(e));
}

/* lose: the packet of a slot, which has left its queue, is lost. */
static __always_inline void lose(struct port *p, struct slot *s)
{
	struct sk_buff *skb = bpf_kptr_xchg(&s->skb, NULL);

	if (skb)
		bpf_kfree_skb(skb);
	p->state.gone_packets++;
	p->state.gone_bytes += s->packet.len;
}

/* empty_class: drop what has ideally arrived by t_ns. A global function, as next_start. */
__noinline int empty_class(struct port *p __arg_nonnull, u32 c, u64 t_ns)
{
	struct tclass *k = class_at(p, c);
	struct guard *g = guard_of(p->config.id, c);

	arrive_by(p, c, t_ns);
	bin_reach(p, p->config.id, t_ns);
	while (k->queue.head != k->arrived && can_loop) {
		struct slot *s = slot_at(&k->queue, k->queue.head);
		u32 len;

		if (!s || !g)
			return 0;
		len = s->packet.len;
		k->queue.head++;
		if (!len) { /* it was dropped before */
			k->dropped--;
			continue;
		}
		lose(p, s);
		p->state.queue_bytes -= len;
		k->arrived_bytes -= len;
		p->counters.dropped[DROP_RESET]++;
		g->dropped_packets++;
		leave_node(p, c, len, s->packet.ingress, t_ns);
	}
	if (!ring_len(&k->queue))
		p->state.backlogged &= ~(1 << c);
	return 0;
}

/* act_on_storm: the queue neither obeys PFC nor sends it from now on. */
static __always_inline void act_on_storm(struct port *p, struct tclass *k, struct guard *g, u32 c,
					 u64 t_ns)
{
	u32 id = p->config.id, action = p->config.watchdog.action;

	g->dropped_packets = g->refused_packets = 0;
	tell_storm(id, c, t_ns, false, g);
	if (action == PFC_WATCHDOG_ALERT)
		return;
	g->deaf = 1;
	post_pauses(p, c, t_ns, 0);
	repeat_pause(&k->rx, id, c, t_ns, false, false);
	if (action == PFC_WATCHDOG_DROP) {
		g->dropping = 1;
		empty_class(p, c, t_ns);
	}
	k->tx.paused = 0;
	k->tx.ready_ns = t_ns;
	k->counters.paused_ns += t_ns - k->tx.paused_since_ns;
	end_off(p, k, id, c, k->tx.paused_since_ns, t_ns);
}

/* look_at: the watchdog looks at a lossless class. A global function, as next_start. */
__noinline int look_at(struct port *p __arg_nonnull, u32 c, u64 t_ns)
{
	struct tclass *k = class_at(p, c);
	struct guard *g = guard_of(p->config.id, c);

	if (!g || !k->config.lossless)
		return 0;
	lossless_start(p, c, t_ns, t_ns, 0); /* obey what has come by now */
	switch (pfc_watchdog_poll(&p->config.watchdog, &g->rule, t_ns, k->tx.paused,
				  k->tx.paused_since_ns)) {
	case PFC_WATCHDOG_ACT:
		act_on_storm(p, k, g, c, t_ns);
		break;
	case PFC_WATCHDOG_END:
		g->deaf = g->dropping = 0;
		tell_storm(p->config.id, c, t_ns, true, g);
		break;
	default:
		break;
	}
	return 0;
}

/* next_poll: when the port's watchdog looks the next time; NEVER if it has none. */
static __always_inline u64 next_poll(struct port *p)
{
	if (!(uses & USE_WATCHDOG) || !p->config.watchdog.poll_ns || !watchdog_from_ns)
		return NEVER;
	if (!p->state.poll_ns)
		p->state.poll_ns = watchdog_from_ns + p->config.watchdog.first_ns;
	return p->state.poll_ns;
}

/* poll_classes: the port's watchdog looks, at t_ns. */
static __always_inline void poll_classes(struct port *p, u64 t_ns)
{
	for (u32 c = 0; c < CLASSES; c++)
		look_at(p, c, t_ns);
	p->state.poll_ns = t_ns + p->config.watchdog.poll_ns;
}

#endif
