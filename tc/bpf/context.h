/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Fields of a tc program's context that bpf/include/kernel.h leaves out. */
#ifndef TC_CONTEXT_H
#define TC_CONTEXT_H

struct context_end {
	u8 before[152]; /* what kernel.h has */
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
};

/* How many packets of the wire the packet is: GRO and TSO make one of several. */
static __always_inline u32 context_segments(const struct __sk_buff *skb)
{
	return ((const volatile struct context_end *)skb)->gso_segs;
}

/* Forgets the time at which the packet came, or at which its sender wants it to leave. */
static __always_inline void context_clear_tstamp(struct __sk_buff *skb)
{
	((volatile struct context_end *)skb)->tstamp = 0;
}

#endif
