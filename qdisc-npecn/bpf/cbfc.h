/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CBFC between two ports: the receiving one posts the blocks that became free. The sending one
 * spends them in obey.h. Credits are counted by algo/cbfc.h.
 */
#ifndef NPECN_CBFC_H
#define NPECN_CBFC_H

#include "ring.h"

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
	struct link_ring *r = link_ring_of(up_id, c);
	struct link_event *e;
	struct class_tx *tx;

	if (!up || !r)
		return;
	tx = &class_at(up, c)->tx;
	link_lock(r);
	i = tx->event_tail;
	/* no more can wait */
	bounded (LINK_EVENTS) {
		if (i == tx->event_head)
			break;
		e = link_event_at(r, i - 1);
		if (e->at_ns == at_ns) {
			e->value += blocks;
			goto out;
		}
		if (e->at_ns < at_ns)
			break;
		i--;
	}
	/* no room: the sender sleeps, and the first update has long been in force */
	if (tx->event_tail - tx->event_head >= LINK_EVENTS) {
		e = link_event_at(r, tx->event_head);
		cbfc_tx_update(&tx->credits, tx->credits.fccl + e->value);
		tx->event_head++;
	}
	k = tx->event_tail;
	/* later updates move up */
	bounded (LINK_EVENTS) {
		if (k == i)
			break;
		*link_event_at(r, k) = *link_event_at(r, k - 1);
		k--;
	}
	e = link_event_at(r, i);
	e->at_ns = at_ns;
	e->value = blocks;
	tx->event_tail++;
out:
	link_unlock(r);
}

/* cbfc_account: a packet that came in by `in` entered or left the node. */
static __always_inline void cbfc_account(struct port *in, struct class_rx *rx, u32 c, s64 bytes,
					 u64 t_ns)
{
	u64 blocks = cbfc_blocks(bytes > 0 ? bytes : -bytes);

	if (bytes > 0) {
		u64 held = cbfc_receive(&rx->credits, blocks);

		if (held > rx->held_max_blocks)
			rx->held_max_blocks = held;
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

#endif
