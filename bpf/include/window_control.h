/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A window-based congestion control: every ACK reports how many packets arrived and how many of
 * them were marked CE. The algorithm says how many may be in flight.
 *
 * A control includes this behind the definitions of struct flow_entry (FLOW_HEAD, then struct echo
 * receiver and the algorithm's state) and of
 *	CONTROL				its name, by which sockets choose it
 *	control_start(flow)		a flow was established
 *	control_ack(flow, event)	an ACK arrived
 *	control_loss(flow, now_ns)	a loss recovery or a timeout began
 *	control_window(flow)		packets that may be in flight, at least 1
 *
 * All but control_start run under the flow's lock, where no helper may be called. The programs and
 * the operations get the control's name: mine_init and so on.
 *
 * The receiver must run this control too: it echoes each packet's mark (echo.h). Without ECN the
 * flow is one of the kernel's CUBIC.
 */
#ifndef PCN_WINDOW_CONTROL_H
#define PCN_WINDOW_CONTROL_H

#include "echo.h"
#include "plain.h"
#include "program.h"
#include "window_ack.h"
#include "window_event.h"

FLOW_TABLE(struct flow_entry);

OWN_ENTRY(struct flow_entry)

static __always_inline void set_window(struct sock *sk, u32 packets)
{
	CONTROL_ALLOWS(packets);
	((struct tcp_sock *)sk)->snd_cwnd = packets ?: 1;
	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
}

static __noinline void start(struct sock *sk)
{
	struct flow_entry flow = {};
	struct flow_key key;

	tcp_establish(sk, &flow.sender, &key);
	control_start(&flow);
	flow.owner = tcp_state(sk)->owner;
	echo_start(sk, &flow.receiver);
	if (bpf_map_update_elem(&flows, &key, &flow, BPF_ANY)) {
		plain_start(sk, DOUBT_TABLE_FULL);
		return;
	}
	if (!tcp_ecn_negotiated(sk)) { /* so far: the handshake may not be over */
		plain_start(sk, DOUBT_NO_ECN);
		return;
	}
	set_window(sk, control_window(&flow));
}

/* Not inline: the stack has room for this or for a start. */
static __noinline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct window_event event = {.now_ns = now_ns()};
	struct flow_entry *flow = flow_of(sk);
	u32 packets, marked, window, reason;

	reason = plain_reason(sk, true, flow);
	if (reason || !flow) {
		on_window_ack(sk, flow, rs, reason);
		return;
	}
	plain_because(sk, DOUBT_NONE); /* the handshake may not have been over at first */
	plain_count(sk, DOUBT_NONE);
	event.rtt_ns = rs->rtt_us > 0 ? (u64)rs->rtt_us * 1000 >> dilation_shift : 0;
	event.limited = rs->prior_in_flight >= ((struct tcp_sock *)sk)->snd_cwnd;
	packets = tcp_delivered(sk);
	marked = tcp_delivered_ce(sk);
	bpf_spin_lock(&flow->lock);
	event.packets = packets - flow->sender.packets;
	event.marked = marked - flow->sender.marked_packets;
	tcp_account(sk, &flow->sender);
	flow->sender.plain_window = 0;
	flow->sender.doubt = DOUBT_NONE;
	/* AccECN counts marks of packets that are not yet acknowledged */
	if (event.marked > event.packets)
		event.packets = event.marked;
	control_ack(flow, &event);
	window = control_window(flow);
	bpf_spin_unlock(&flow->lock);
	set_window(sk, window);
}

SEC("struct_ops/set_state")
void CONTROL_PROG(PROGRAM(set_state), struct sock *sk, u8 state)
{
	struct flow_entry *flow;
	u64 event_ns = now_ns();
	u32 window;

	if (in_window(sk))
		plain_state(sk, state);
	if (state != TCP_CA_Recovery && state != TCP_CA_Loss)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	flow->sender.losses++;
	control_loss(flow, event_ns);
	window = control_window(flow);
	bpf_spin_unlock(&flow->lock);
	if (!in_window(sk))
		set_window(sk, window);
}

#include "echo_mark.h"

SEC("struct_ops/cwnd_event")
void CONTROL_PROG(PROGRAM(cwnd_event), struct sock *sk, int event)
{
	on_mark(sk, event, false);
}

#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN
#define CONTROL_ECHOES
#include "operations.h"

#endif
