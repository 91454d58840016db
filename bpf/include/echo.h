/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * At the receiver: ACKs echo each packet's mark, as RFC 8257 has it, and not RFC 3168's latch. A packet with another
 * mark than the one before sends a delayed ACK off first, with the old mark; so no ACK covers both kinds.
 *
 * With AccECN ACKs carry a counter of marks, and none of this is needed.
 */
#ifndef PCN_ECHO_H
#define PCN_ECHO_H

#include "tcp.h"

/* echo_set: what ACKs say from now on. */
static __always_inline void echo_set(struct sock *sk, bool ce)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* echo_event: cwnd_event's CA_EVENT_ECN_IS_CE or CA_EVENT_ECN_NO_CE. e may be NULL. */
static __always_inline void echo_event(struct sock *sk, struct echo *e, int event)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	bool ce = event == CA_EVENT_ECN_IS_CE;
	u32 was;

	if (tp->ecn_flags & TCP_ECN_ACCECN)
		return;
	if (!e) {
		echo_set(sk, ce);
		return;
	}
	was = e->ce;
	if (was != ce && ((struct inet_connection_sock *)sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
		echo_set(sk, was);
		bpf_tcp_send_ack((void *)sk, e->seq);
	}
	e->ce = ce;
	e->seq = tp->rcv_nxt;
	echo_set(sk, ce);
}

#endif
