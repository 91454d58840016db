/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which packets open a connection. */
#ifndef PCN_SYN_H
#define PCN_SYN_H

#include "include/packet.h"

/* Of tcphdr.flags. */
#define TCP_SYN 2
#define TCP_ACK 16

/* The flags of a packet of TCP, of which the transport is parsed; 0 for all others. */
static __always_inline u8 tcp_flags(const struct __sk_buff *skb, const struct network *n,
				    struct transport *t)
{
	if (transport_parse(skb, n, t) != TRANSPORT_OK || t->key.protocol != IPPROTO_TCP)
		return 0;
	return t->flags;
}

#endif
