/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Classes with weights divide a link in rounds: deficit round robin (Shreedhar and Varghese, 1995),
 * or by packets. Classes without a weight go before them, by strict priority.
 */
#ifndef NPECN_ROUNDS_H
#define NPECN_ROUNDS_H

#include "queue.h"

/* Steps until a class may send: a turn gives the least class a frame. */
#define ROUNDS_STEPS 256

/* turn_pays: whether the class whose turn it is can pay for its first packet; it does. */
static __always_inline bool turn_pays(struct port *p, struct tclass *k)
{
	struct slot *s = slot_at(&k->queue, k->queue.head);
	u32 price = p->config.by_packets ? 1 : s ? s->packet.len : 0;

	if (k->deficit < price)
		return false;
	k->deficit -= price;
	return true;
}

/*
 * choose_class: of the classes that can start a packet now, a bit each and not none, the one that
 * does; in state.chosen. A global function, as next_start.
 */
__noinline int choose_class(struct port *p __arg_nonnull, u32 ready)
{
	u32 strict = ready & ~p->config.weighted, idle = p->config.weighted & ~ready;

	p->state.chosen = highest(strict ?: ready);
	if (strict)
		return 0;
	while (idle && can_loop) { /* who has nothing to send saves nothing */
		u32 c = highest(idle);

		idle ^= 1 << c;
		class_at(p, c)->deficit = 0;
	}
	bounded (ROUNDS_STEPS) {
		u32 c = p->state.turn & (CLASSES - 1);

		if (ready >> c & 1 && turn_pays(p, class_at(p, c))) {
			p->state.chosen = c;
			return 0;
		}
		c = (c + CLASSES - 1) & (CLASSES - 1); /* the higher class first */
		p->state.turn = c;
		if (ready >> c & 1)
			class_at(p, c)->deficit += class_at(p, c)->config.quantum;
	}
	return 0;
}

#endif
