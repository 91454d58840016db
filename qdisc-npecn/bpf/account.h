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

/*
 * node_account: bytes that came in by port `id` ideally arrived at the node, or left it. XOFF that
 * follows the free buffer goes by such bytes, too: what has come since would lower it too early.
 */
static __always_inline void node_account(struct node *n, u32 id, u32 c, s64 bytes, u64 t_ns)
{
	u64 arrived = __sync_fetch_and_add(&n->arrived_bytes, bytes) + bytes;
	s64 free_bytes = n->buffer_bytes - arrived;

	ingress_account(id, c, bytes, free_bytes > 0 ? free_bytes : 0, t_ns);
}

/* leave_node: a packet of class c that came in by port `ingress` leaves the node. */
static __always_inline void leave_node(struct port *p, u32 c, u32 len, u32 ingress, u64 t_ns)
{
	struct node *n = node_of(p);

	if (!n)
		return;
	buffer_account(n, -(s64)len);
	if (ingress)
		node_account(n, ingress, c, -(s64)len, t_ns);
}

#endif
