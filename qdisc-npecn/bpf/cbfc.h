/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CBFC between two ports: the receiving one posts the blocks that became free, the sending one
 * spends them. Credits are counted by algo/cbfc.h.
 */
#ifndef NPECN_CBFC_H
#define NPECN_CBFC_H

#include "off.h"

/*
 * post_credits: tell the port at the other end of `in`, when the update period ends, that blocks
 * are free again as of t_ns. The ports of a node do not work in the order of time, to within their
 * lag: so the update is sorted in.
 */
static __noinline void post_credits(struct port *in, u32 c, u64 t_ns, u64 blocks)
{
	u32 up_id = in->config.peer, i, k;
	u64 at_ns = cbfc_tick(&in->config.cbfc, t_ns) + in->config.pfc_delay_ns;
	struct port *up = port_of(up_id);
	struct link_event *e, *prev;
	struct class_tx *tx;

	if (!up)
		return;
	tx = &class_at(up, c)->tx;
	i = tx->event_tail;
	/* no more can wait */
	bounded (LINK_EVENTS) {
		if (i == tx->event_head)
			break;
		e = link_event_at(up_id, c, i - 1);
		if (!e)
			return;
		if (e->at_ns == at_ns) {
			__sync_fetch_and_add(&e->value, blocks);
			return;
		}
		if (e->at_ns < at_ns)
			break;
		i--;
	}
	/* no room: the sender sleeps, and the first update has long been in force */
	if (tx->event_tail - tx->event_head >= LINK_EVENTS) {
		e = link_event_at(up_id, c, tx->event_head);
		if (!e)
			return;
		cbfc_tx_update(&tx->credits, tx->credits.fccl + e->value);
		tx->event_head++;
	}
	k = tx->event_tail;
	/* later updates move up */
	bounded (LINK_EVENTS) {
		if (k == i)
			break;
		e = link_event_at(up_id, c, k);
		prev = link_event_at(up_id, c, k - 1);
		if (!e || !prev)
			return;
		*e = *prev;
		k--;
	}
	e = link_event_at(up_id, c, i);
	if (!e)
		return;
	e->at_ns = at_ns;
	e->value = blocks;
	__sync_fetch_and_add(&tx->event_tail, 1);
}

/* cbfc_account: a packet that came in by `in` entered or left the node. */
static __always_inline void cbfc_account(struct port *in, struct class_rx *rx, u32 c, s64 bytes,
					 u64 t_ns)
{
	u64 blocks = cbfc_blocks(bytes > 0 ? bytes : -bytes);

	if (bytes > 0) {
		cbfc_receive(&rx->credits, blocks);
		if (rx->credits.held > rx->held_max_blocks)
			rx->held_max_blocks = rx->credits.held;
		return;
	}
	cbfc_release(&rx->credits, blocks);
	post_credits(in, c, t_ns, blocks);
}

/* return_credits: a packet that came in by this port is dropped before the node took it in. */
static __always_inline void return_credits(u32 ingress, u32 c, u32 len, u64 t_ns)
{
	struct port *in = uses & USE_CBFC ? port_of(ingress) : NULL;

	if (in && in->config.cbfc.buffer_blocks && class_at(in, c)->config.lossless)
		post_credits(in, c, t_ns, cbfc_blocks(len));
}

static __always_inline void cbfc_begin_off(struct class_tx *tx, u64 t_ns)
{
	if (tx->off)
		return;
	tx->off = 1;
	tx->off_since_ns = t_ns;
}

/*
 * cbfc_start: the ideal time at which class c, which could otherwise at t_ns, can start a packet of
 * so many blocks; NEVER while no credits for it are in sight. Applies the updates up to that time,
 * and to limit_ns at most.
 */
static __always_inline u64 cbfc_start(struct port *p, struct tclass *k, u32 id, u32 c, u64 t_ns,
				      u64 limit_ns, u64 blocks)
{
	struct class_tx *tx = &k->tx;

	if (t_ns < tx->ready_ns)
		t_ns = tx->ready_ns;
	if (t_ns > limit_ns)
		return t_ns; /* too early to say */
	/* no more can wait */
	bounded (LINK_EVENTS) {
		struct link_event *e;

		if (tx->event_head == tx->event_tail)
			break;
		e = link_event_at(id, c, tx->event_head);
		if (!e)
			break;
		if (e->at_ns > t_ns) {
			if (cbfc_may_send(&tx->credits, blocks))
				break; /* the packet starts before */
			cbfc_begin_off(tx, t_ns);
			if (e->at_ns > limit_ns)
				return e->at_ns; /* known in advance, not due yet */
			t_ns = e->at_ns;
		}
		cbfc_tx_update(&tx->credits, tx->credits.fccl + e->value);
		tx->event_head++;
		if (tx->off && cbfc_may_send(&tx->credits, blocks)) {
			tx->off = 0;
			tx->ready_ns = e->at_ns;
			k->counters.paused_ns += e->at_ns - tx->off_since_ns;
			end_off(p, k, id, c, tx->off_since_ns, e->at_ns);
		}
	}
	if (cbfc_may_send(&tx->credits, blocks))
		return t_ns;
	cbfc_begin_off(tx, t_ns);
	return NEVER;
}

#endif
