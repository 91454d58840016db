/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A class queue as the packets ideally find it. Between two starts packets only arrive, so counting
 * them in at each start shows each the queue that it would have found: WRED and the queue's limit
 * judge by that.
 */
#ifndef NPECN_QUEUE_H
#define NPECN_QUEUE_H

#include "account.h"

/* queue_add: the packet counts as queued from now on. */
static __always_inline void queue_add(struct port *p, struct tclass *k, u32 len)
{
	k->queue_bytes += len;
	p->state.queue_bytes += len;
	if (p->state.queue_bytes > p->state.bin.queue_max_bytes)
		p->state.bin.queue_max_bytes = p->state.queue_bytes;
	if (p->state.queue_bytes > p->counters.queue_max_bytes)
		p->counters.queue_max_bytes = p->state.queue_bytes;
}

/* queue_may_drop: packets may be dropped at their ideal arrival, and count as queued only then. */
static __always_inline bool queue_may_drop(const struct port *p, const struct tclass *k)
{
	return uses & USE_DROPS && k->config.marked &&
	       (p->config.wred_bytes || p->config.limit_bytes);
}

/* drop_counter: which one counts the packet, that has ideally arrived; NULL: the queue takes it. */
static __always_inline u64 *drop_counter(struct port *p, const struct tclass *k,
					 const struct packet *packet)
{
	const struct port_config *config = &p->config;

	if (!k->arrived_bytes)
		return NULL; /* the first of a queue is always taken */
	if (config->limit_bytes && k->arrived_bytes + packet->len > config->limit_bytes)
		return &p->counters.dropped[DROP_TAIL];
	if (config->wred_bytes && packet->not_ect && k->arrived_bytes >= config->wred_bytes)
		return &p->counters.dropped[DROP_WRED];
	return NULL;
}

/* drop_slot: the packet goes; its slot stays, of length 0, until the queue's head gets there. */
static __always_inline void drop_slot(struct port *p, struct tclass *k, u32 c, struct slot *s,
				      u64 t_ns)
{
	struct sk_buff *skb = bpf_kptr_xchg(&s->skb, NULL);

	if (skb)
		bpf_kfree_skb(skb);
	k->dropped++;
	p->state.gone_packets++;
	p->state.gone_bytes += s->packet.len;
	leave_node(p, c, s->packet.len, s->packet.ingress, t_ns);
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

/* arrive_by: count in what had ideally arrived by t_ns, and drop what the queue does not take. */
static __always_inline void arrive_by(struct port *p, struct tclass *k, u32 c, u64 t_ns)
{
	bool may_drop = queue_may_drop(p, k);

	/* each packet is counted in once */
	while (can_loop) {
		struct slot *s;
		u64 *dropped;

		if (k->arrived == k->queue.tail)
			break;
		s = slot_at(&k->queue, k->arrived);
		if (!s || s->packet.t_ns > t_ns)
			break;
		k->arrived++;
		if (may_drop) {
			dropped = drop_counter(p, k, &s->packet);
			if (dropped) {
				(*dropped)++;
				drop_slot(p, k, c, s, t_ns);
				continue;
			}
			queue_add(p, k, s->packet.len);
		}
		k->arrived_bytes += s->packet.len;
	}
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
		u64 free_bytes;
		s64 len;

		if (i == q->tail || !n)
			break;
		s = slot_at(q, i++);
		if (!s)
			break;
		len = s->packet.len;
		free_bytes = buffer_account(n, -len);
		if (s->packet.ingress)
			ingress_account(s->packet.ingress, c, -len, free_bytes, now_ns());
	}
	p->state.queue_bytes -= k->queue_bytes;
	k->queue_bytes = 0;
	k->arrived_bytes = 0;
	k->arrived = q->tail;
	k->dropped = 0;
}

#endif
