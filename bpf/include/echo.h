/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The receiver's echo: ACKs echo each packet's mark, as in RFC 8257, without the latch of RFC 3168.
 * If a packet's mark differs from that of the packet before, a pending ACK is first sent with the
 * old mark, and the packet is acknowledged at once. So no ACK covers both kinds.
 *
 * With AccECN, ACKs carry a counter of marks, and none of this is needed.
 */
#ifndef PCN_ECHO_H
#define PCN_ECHO_H

#include "tcp.h"

/* Sets what ACKs say from now on. */
static __always_inline void echo_set(struct sock *sk, bool ce)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* Acknowledges the packet that is being received at once. */
static __always_inline void ack_now(struct sock *sk)
{
	((struct inet_connection_sock *)sk)->icsk_ack.pending |= ICSK_ACK_SCHED | ICSK_ACK_NOW;
}

static __always_inline void echo_start(struct sock *sk, struct echo *e)
{
	e->ce = 0;
	e->seq = ((struct tcp_sock *)sk)->rcv_nxt;
}

/*
 * Packets before this one are not acknowledged yet: their ACK is delayed, or it waits until the
 * owner of the socket releases it (tcp_backlog_ack_defer). rcv_wup is what was expected when the
 * latest ACK was sent.
 */
static __always_inline bool ack_pending(struct sock *sk, const struct echo *e)
{
	s32 behind = e->seq - ((struct tcp_sock *)sk)->rcv_wup;

	/* behind 0: echo_event sent the latest ACK, before the packet that was received then */
	return behind > 0 ||
	       (!behind && ((struct inet_connection_sock *)sk)->icsk_ack.pending & ICSK_ACK_NOW);
}

/* Handles cwnd_event's CA_EVENT_ECN_IS_CE and CA_EVENT_ECN_NO_CE. e may be NULL. */
static __always_inline void echo_event(struct sock *sk, struct echo *e, int event)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	bool ce = event == CA_EVENT_ECN_IS_CE;
	u32 previous_ce;

	if (tp->ecn_flags & TCP_ECN_ACCECN)
		return;
	if (!e) {
		echo_set(sk, ce);
		return;
	}
	previous_ce = e->ce;
	if (previous_ce != ce) {
		if (ack_pending(sk, e)) {
			echo_set(sk, previous_ce);
			bpf_tcp_send_ack((void *)sk, e->seq);
		}
		ack_now(sk);
	}
	e->ce = ce;
	e->seq = tp->rcv_nxt;
	echo_set(sk, ce);
}

/*
 * A shorter way for the usual event, a packet without a mark after another: all that changes is
 * the sequence number, which the socket keeps. To look up the flow's entry costs more than the
 * rest. False: call echo_keeping(). A plain window's state has the same place, hence the owner.
 */
static __always_inline bool echo_unmarked(struct sock *sk, int event)
{
	struct sock_state *s = tcp_state(sk);

	if (event != CA_EVENT_ECN_NO_CE || s->window || !s->owner || s->unmarked.owner != s->owner)
		return false;
	s->unmarked.seq = ((struct tcp_sock *)sk)->rcv_nxt;
	return true;
}

/* As echo_event(), and the next packets may go the shorter way. */
static __always_inline void echo_keeping(struct sock *sk, struct echo *e, int event)
{
	struct sock_state *s = tcp_state(sk);

	if (e && !s->window && s->unmarked.owner == s->owner)
		e->seq = s->unmarked.seq;
	echo_event(sk, e, event);
	if (s->window)
		return; /* the socket has no room for it */
	s->unmarked.owner = e && event == CA_EVENT_ECN_NO_CE ? s->owner : 0;
	s->unmarked.seq = ((struct tcp_sock *)sk)->rcv_nxt;
}

#endif
