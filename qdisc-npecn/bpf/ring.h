/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rings of packets: a port has one for each class, in the order of ideal arrival, and its wire. */
#ifndef NPECN_RING_H
#define NPECN_RING_H

#include "port.h"

extern void bpf_kfree_skb(struct sk_buff *p) __ksym;

/* The slots of all rings. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

static __always_inline struct slot *slot_at(const struct ring *r, u32 i)
{
	u32 k = r->base + (i & r->mask);

	return bpf_map_lookup_elem(&slots, &k);
}

/*
 * can_loop: for loops that end by themselves, soon, which the verifier can't see. It costs a fifth
 * of what bounded() does: an instruction, may_goto, counts. clang-19 has no name for it.
 */
#define can_loop                                                                                   \
	({                                                                                         \
		__label__ end_, out_;                                                              \
		bool more_ = true;                                                                 \
		asm volatile goto("1: .byte 0xe5; .byte 0; .long ((%l[end_] - 1b - 8) / 8) & "     \
				  "0xffff; .short 0"                                               \
				  :                                                                \
				  :                                                                \
				  :                                                                \
				  : end_);                                                         \
		goto out_;                                                                         \
	end_:                                                                                      \
		more_ = false;                                                                     \
	out_:;                                                                                     \
		more_;                                                                             \
	})

static __always_inline bool ring_full(const struct ring *r)
{
	return r->tail - r->head > r->mask;
}

static __always_inline u32 ring_len(const struct ring *r)
{
	return r->tail - r->head;
}

/* ring_sort_in: make room for a packet that arrives at t_ns: later ones move up. Returns where. */
static __always_inline u32 ring_sort_in(struct ring *q, u64 t_ns)
{
	u32 i = q->tail;
	struct slot *last;

	/* most are the last; a loop costs its iterator */
	if (i == q->head)
		return i;
	last = slot_at(q, i - 1);
	if (last && last->packet.t_ns <= t_ns)
		return i;
	/* few are later: those of the last quantum, and what a host has for later */
	bounded (RING_MAX) {
		struct slot *prev, *s;
		struct sk_buff *skb;

		if (i == q->head)
			break;
		prev = slot_at(q, i - 1);
		s = slot_at(q, i);
		if (!prev || !s || prev->packet.t_ns <= t_ns)
			break;
		s->packet.t_ns = prev->packet.t_ns;
		s->packet.len = prev->packet.len;
		s->packet.ingress = prev->packet.ingress;
		s->packet.not_ect = prev->packet.not_ect;
		if (uses & USE_REORDER) { /* it may be the wire */
			s->packet.verdict = prev->packet.verdict;
			s->packet.queue = prev->packet.queue;
		}
		skb = bpf_kptr_xchg(&prev->skb, NULL);
		if (skb) {
			skb = bpf_kptr_xchg(&s->skb, skb);
			if (skb)
				bpf_kfree_skb(skb);
		}
		i--;
	}
	return i;
}

/* ring_flush: free what a ring holds. Returns how many packets that were. */
static __always_inline u64 ring_flush(struct ring *r)
{
	u64 freed = 0;

	bounded (RING_MAX) {
		struct sk_buff *skb;
		struct slot *s;

		if (r->head == r->tail)
			break;
		s = slot_at(r, r->head++);
		if (!s)
			break;
		skb = bpf_kptr_xchg(&s->skb, NULL);
		if (!skb)
			continue;
		bpf_kfree_skb(skb);
		freed++;
	}
	return freed;
}

#endif
