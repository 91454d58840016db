/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What enters and leaves a node: its shared buffer, and flow control on the ingress link. */
#ifndef NPECN_ACCOUNT_H
#define NPECN_ACCOUNT_H

#include "cbfc.h"
#include "pfc.h"

/* ingress_account: bytes that came in by port `id` entered or left the node; its peer hears. */
static __always_inline void ingress_account(u32 id, u32 c, s64 bytes, u64 free_bytes, u64 t_ns)
{
	struct port *in = port_of(id);
	struct tclass *k;

	if (!in)
		return;
	k = class_at(in, c);
	if (!k->config.lossless)
		return;
	if (uses & USE_CBFC && in->config.cbfc.buffer_blocks)
		cbfc_account(in, &k->rx, c, bytes, t_ns);
	else
		pfc_account(in, k, id, c, bytes, free_bytes, t_ns);
}

/* buffer_account: bytes entered or left the node's shared buffer. */
static __always_inline void buffer_account(struct node *n, s64 bytes)
{
	u64 used = __sync_fetch_and_add(&n->used_bytes, bytes) + bytes;

	if (used > n->used_max_bytes)
		n->used_max_bytes = used;
}

/* buffer_free: what of it is free. */
static __always_inline u64 buffer_free(const struct node *n)
{
	u64 used = *(volatile u64 *)&n->used_bytes;

	return n->buffer_bytes > used ? n->buffer_bytes - used : 0;
}

/* leave_node: a packet of class c that came in by port `ingress` leaves the node. */
static __always_inline void leave_node(struct port *p, u32 c, u32 len, u32 ingress, u64 t_ns)
{
	struct node *n = node_of(p);

	if (!n)
		return;
	buffer_account(n, -(s64)len);
	if (ingress)
		ingress_account(ingress, c, -(s64)len, buffer_free(n), t_ns);
}

#endif
