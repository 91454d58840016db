/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The programs that all controls with cong_control share, and their operations. In a plain window
 * (plain.h) a flow acts as CUBIC; else the control alone sets the window, and the core's reductions
 * change nothing.
 *
 * A control includes this behind its program set_state, and of
 *	CONTROL			its name, by which sockets choose it
 *	CONTROL_FLAGS		TCP_CONG_NEEDS_ECN, or 0
 *	start(sk)		a flow was established; not inline
 *	on_ack(sk, sample)	an ACK of such a flow arrived; not inline, if the stack has no room
 *				for both
 *	CONTROL_ECHOES		optional: it has the program cwnd_event, which echoes marks
 *	CONTROL_BURSTS		optional: it has the program min_tso_segs, which limits bursts
 */
#ifndef PCN_OPERATIONS_H
#define PCN_OPERATIONS_H

#include "plain.h"
#include "program.h"

SEC("struct_ops/init")
void CONTROL_PROG(PROGRAM(init), struct sock *sk)
{
	start(sk);
}

SEC("struct_ops/release")
void CONTROL_PROG(PROGRAM(release), struct sock *sk)
{
	plain_end(sk);
	flow_end(sk);
}

static __always_inline void on_any_ack(struct sock *sk, const struct rate_sample *rs)
{
	if (tcp_started(sk))
		on_ack(sk, rs);
	else if (tcp_starts_late(sk))
		start(sk);
}

/* From 6.10 on. */
SEC("struct_ops/cong_control")
void CONTROL_PROG(PROGRAM(cong_control), struct sock *sk, u32 ack, int flag,
		  const struct rate_sample *rs)
{
	on_any_ack(sk, rs);
}

#ifndef __wasm__ /* before 6.10 */
SEC("struct_ops/cong_control_2")
void CONTROL_PROG(PROGRAM(cong_control_2), struct sock *sk, const struct rate_sample *rs)
{
	on_any_ack(sk, rs);
}
#endif

SEC("struct_ops/pkts_acked")
void CONTROL_PROG(PROGRAM(pkts_acked), struct sock *sk, const struct ack_sample *sample)
{
	if (in_window(sk))
		plain_acked(sk, sample);
}

SEC("struct_ops/ssthresh")
u32 CONTROL_PROG(PROGRAM(ssthresh), struct sock *sk)
{
	if (in_window(sk))
		return plain_ssthresh(sk);
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops/undo_cwnd")
u32 CONTROL_PROG(PROGRAM(undo_cwnd), struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops CONTROL = {
	.init = (void *)PROGRAM(init),
	.release = (void *)PROGRAM(release),
	.cong_control = (void *)PROGRAM(cong_control),
	.set_state = (void *)PROGRAM(set_state),
	.ssthresh = (void *)PROGRAM(ssthresh),
	.undo_cwnd = (void *)PROGRAM(undo_cwnd),
	.pkts_acked = (void *)PROGRAM(pkts_acked),
#ifdef CONTROL_ECHOES
	.cwnd_event = (void *)PROGRAM(cwnd_event),
#endif
#ifdef CONTROL_BURSTS
	.min_tso_segs = (void *)PROGRAM(min_tso_segs),
#endif
	.name = TEXT(CONTROL),
	.flags = TCP_CONG_NON_RESTRICTED | CONTROL_FLAGS,
};

#endif
