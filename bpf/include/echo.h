/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * At the receiver: ACKs echo each packet's mark, as RFC 8257 has it, and not RFC 3168's latch. A packet with another
 * mark than the one before sends an ACK that is owed off first, with the old mark, and is acknowledged at once; so no
 * ACK covers both kinds.
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

/* ack_now: the packet that is being received is acknowledged at once. */
static __always_inline void ack_now(struct sock *sk)
{
	((struct inet_connection_sock *)sk)->icsk_ack.pending |= ICSK_ACK_SCHED | ICSK_ACK_NOW;
}

/* echo_start: at a connection's start. */
static __always_inline void echo_start(struct sock *sk, struct echo *e)
{
	e->ce = 0;
	e->seq = ((struct tcp_sock *)sk)->rcv_nxt;
}

/*
 * ack_owed: packets before this one are not acknowledged yet: their ACK is delayed, or put off until the socket's owner
 * lets go of it (tcp_backlog_ack_defer). rcv_wup is what was expected when the latest ACK was sent.
 */
static __always_inline bool ack_owed(struct sock *sk, const struct echo *e)
{
	s32 behind = e->seq - ((struct tcp_sock *)sk)->rcv_wup;

	/* with behind 0, that ACK was one that is sent below: it did not cover the packet that was received then */
	return behind > 0 ||
	       (!behind && ((struct inet_connection_sock *)sk)->icsk_ack.pending & ICSK_ACK_NOW);
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
	if (was != ce) {
		if (ack_owed(sk, e)) {
			echo_set(sk, was);
			bpf_tcp_send_ack((void *)sk, e->seq);
		}
		ack_now(sk);
	}
	e->ce = ce;
	e->seq = tp->rcv_nxt;
	echo_set(sk, ce);
}

#endif
