/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A class queue as the packets ideally find it. Between two starts packets only arrive, so counting
 * them in at each start shows each the queue that it would have found: WRED and the queue's limit
 * judge by that, and it is the queue that user space reads. What has come but waits for the lag to
 * pass does not count, or a queue would be longer by what the link sends meanwhile.
 */
#ifndef NPECN_QUEUE_H
#define NPECN_QUEUE_H

#include "account.h"
#include "series.h"

/*
 * queue_add: the packet, which has ideally arrived, counts as queued, and against the port that it
 * came in by.
 */
static __always_inline void queue_add(struct port *p, struct tclass *k, u32 c,
				      const struct packet *packet)
{
	struct node *n = packet->ingress ? node_of(p) : NULL;

	bin_reach(p, p->config.id, packet->t_ns);
	k->arrived_bytes += packet->len;
	p->state.queue_bytes += packet->len;
	if (p->state.queue_bytes > p->state.bin.queue_max_bytes)
		p->state.bin.queue_max_bytes = p->state.queue_bytes;
	if (p->state.queue_bytes > p->counters.queue_max_bytes)
		p->counters.queue_max_bytes = p->state.queue_bytes;
	if (n)
		node_account(n, packet->ingress, c, packet->len, packet->t_ns);
}

/* queue_may_drop: packets may be dropped at their ideal arrival. */
static __always_inline bool queue_may_drop(const struct port *p, const struct tclass *k)
{
	if (uses & USE_WATCHDOG && p->config.watchdog.poll_ns && k->config.lossless)
		return true;
	return uses & USE_DROPS && k->config.marked &&
	       (p->config.wred_bytes || p->config.limit_bytes || k->config.alpha);
}

/*
 * guard_drops: the counter of packets that the watchdog of this port drops, or that of the port by
 * which this packet came in.
 */
static __always_inline u64 *guard_drops(struct port *p, u32 c, const struct packet *packet)
{
	struct guard *g = guard_of(p->config.id, c);

	if (g && g->dropping) {
		g->dropped_packets++;
		return &p->counters.dropped[DROP_RESET];
	}
	g = packet->ingress ? guard_of(packet->ingress, c) : NULL;
	if (!g || !*(volatile u32 *)&g->dropping)
		return NULL;
	__sync_fetch_and_add(&g->refused_packets, 1);
	p->counters.enqueued_packets--; /* it came, and is not taken in */
	p->counters.enqueued_bytes -= packet->len;
	return &p->counters.dropped[DROP_REFUSED];
}

/*
 * fills_its_share: whether a queue would be longer than its share of what is free of the node's
 * buffer (Choudhury and Hahne, 1998).
 */
static __always_inline bool fills_its_share(const struct port *p, const struct tclass *k, u32 len)
{
	const struct node *n = node_of(p);
	s64 free_bytes;

	if (!n)
		return false;
	free_bytes = n->buffer_bytes - n->arrived_bytes;
	return free_bytes <= 0 ||
	       k->arrived_bytes + len > ((u64)free_bytes * k->config.alpha) >> ALPHA_SHIFT;
}

/* drop_counter: which one counts the packet, that has ideally arrived; NULL: the queue takes it. */
static __always_inline u64 *drop_counter(struct port *p, const struct tclass *k, u32 c,
					 const struct packet *packet)
{
	const struct port_config *config = &p->config;
	u64 *guarded = uses & USE_WATCHDOG ? guard_drops(p, c, packet) : NULL;

	if (guarded || !k->config.marked)
		return guarded;
	if (!k->arrived_bytes)
		return NULL; /* the first of a queue is always taken */
	if (config->limit_bytes && k->arrived_bytes + packet->len > config->limit_bytes)
		return &p->counters.dropped[DROP_TAIL];
	if (k->config.alpha && fills_its_share(p, k, packet->len))
		return &p->counters.dropped[DROP_TAIL];
	if (config->wred_bytes && packet->not_ect && k->arrived_bytes >= config->wred_bytes)
		return &p->counters.dropped[DROP_WRED];
	return NULL;
}

/* drop_slot: the packet goes; its slot stays, of length 0, until the queue's head gets there. */
static __always_inline void drop_slot(struct port *p, struct tclass *k, u32 c, struct slot *s)
{
	struct sk_buff *skb = bpf_kptr_xchg(&s->skb, NULL);
	struct node *n;

	if (skb)
		bpf_kfree_skb(skb);
	k->dropped++;
	p->state.gone_packets++;
	p->state.gone_bytes += s->packet.len;
	n = node_of(p);
	if (n)
		buffer_account(n, -(s64)s->packet.len);
	if (s->packet.ingress) /* it counts nowhere else yet */
		return_credits(s->packet.ingress, c, s->packet.len, s->packet.t_ns);
	s->packet.len = 0;
}

/* skip_dropped: move the queue's head to a packet, or its end. */
static __always_inline void skip_dropped(struct tclass *k)
{
	struct ring *q = &k->queue;

	if (!(uses & USE_DROPS))
		return;
	/* each is skipped once */
	bounded (RING_MAX) {
		struct slot *s;

		if (q->head == q->tail)
			break;
		s = slot_at(q, q->head);
		if (!s || s->packet.len)
			break;
		q->head++;
		k->dropped--;
	}
}

/* skip_first: the same, where the first packet may be dropped and the queue left empty. */
static __always_inline void skip_first(struct port *p, struct tclass *k, u32 c)
{
	skip_dropped(k);
	if (!ring_len(&k->queue))
		p->state.backlogged &= ~(1 << c);
}

/*
 * arrive_by: count in what had ideally arrived by t_ns, and drop what the queue does not take. A
 * global function, as next_start.
 */
__noinline int arrive_by(struct port *p __arg_nonnull, u32 c, u64 t_ns)
{
	struct tclass *k = class_at(p, c);
	bool may_drop = queue_may_drop(p, k);

	/* each packet is counted in once */
	while (k->arrived != k->queue.tail && can_loop) {
		struct slot *s = slot_at(&k->queue, k->arrived);
		u64 *dropped;

		if (!s)
			return 0;
		k->next_ns = s->packet.t_ns;
		if (k->next_ns > t_ns)
			return 0;
		k->arrived++;
		if (may_drop) {
			dropped = drop_counter(p, k, c, &s->packet);
			if (dropped) {
				(*dropped)++;
				p->counters.lossy += k->config.lossy;
				drop_slot(p, k, c, s);
				if (uses & USE_WATCHDOG)
					skip_first(p, k, c);
				continue;
			}
		}
		queue_add(p, k, c, &s->packet);
	}
	k->next_ns = NEVER;
	return 0;
}

/* class_arrive_by: the same, if there is any. Returns when the next will have arrived, or NEVER. */
static __always_inline u64 class_arrive_by(struct port *p, u32 c, u64 t_ns)
{
	struct tclass *k = class_at(p, c);

	if (k->next_ns <= t_ns)
		arrive_by(p, c, t_ns);
	return k->next_ns;
}

/* highest: the highest class of some, a bit each, and not none. */
static __always_inline u32 highest(u32 classes)
{
	static const u8 highest_of[1 << CLASSES] = {
		[1 << 1 ... 3] = 1,   [1 << 2 ... 7] = 2,  [1 << 3 ... 15] = 3,
		[1 << 4 ... 31] = 4,  [1 << 5 ... 63] = 5, [1 << 6 ... 127] = 6,
		[1 << 7 ... 255] = 7,
	};

	return highest_of[(u8)classes];
}

/* all_arrive_by: the same in all classes that have packets; one has. */
static __always_inline u64 all_arrive_by(struct port *p, u64 t_ns)
{
	u32 waiting = p->state.backlogged, c = highest(waiting);
	u64 first_ns = class_arrive_by(p, c, t_ns);

	waiting ^= 1 << c;
	while (waiting && can_loop) { /* mostly there is one */
		u64 next_ns;

		c = highest(waiting);
		waiting ^= 1 << c;
		next_ns = class_arrive_by(p, c, t_ns);
		if (next_ns < first_ns)
			first_ns = next_ns;
	}
	return first_ns;
}

/* queue_clear: the queue's packets leave the shared buffer and their ingress ports' accounts. */
static __always_inline void queue_clear(struct port *p, u32 c)
{
	struct node *n = node_of(p);
	struct tclass *k = class_at(p, c);
	struct ring *q = &k->queue;
	u32 i = q->head;

	bounded (RING_MAX) {
		struct slot *s;
		bool arrived;

		if (i == q->tail || !n)
			break;
		arrived = (s32)(i - k->arrived) < 0;
		s = slot_at(q, i++);
		if (!s)
			break;
		leave_node(p, c, s->packet.len, arrived ? s->packet.ingress : 0, now_ns());
	}
	p->state.queue_bytes -= k->arrived_bytes;
	k->arrived_bytes = 0;
	k->arrived = q->tail;
	k->next_ns = NEVER;
	k->dropped = 0;
}

#endif
