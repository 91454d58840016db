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
 * The receiver must run this control too: it echoes each packet's mark (echo.h).
 */
#ifndef PCN_WINDOW_CONTROL_H
#define PCN_WINDOW_CONTROL_H

#include "echo.h"
#include "plain.h"
#include "program.h"
#include "window_event.h"

FLOW_TABLE(struct flow_entry);

OWN_ENTRY(struct flow_entry)

static __always_inline void set_window(struct sock *sk, u32 packets)
{
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
	set_window(sk, control_window(&flow));
}

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

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct window_event event = {.now_ns = now_ns()};
	struct flow_entry *flow = flow_of(sk);
	u32 packets, marked, window;

	if (!tcp_started(sk)) {
		if (tcp_starts_late(sk))
			start(sk);
		return;
	}
	if (!flow) {
		plain_instead(sk, rs, 0, plain_reason(sk, false, false));
		return;
	}
	event.rtt_ns = rs->rtt_us > 0 ? (u64)rs->rtt_us * 1000 >> dilation_shift : 0;
	event.limited = rs->prior_in_flight >= ((struct tcp_sock *)sk)->snd_cwnd;
	packets = tcp_delivered(sk);
	marked = tcp_delivered_ce(sk);
	bpf_spin_lock(&flow->lock);
	event.packets = packets - flow->sender.packets;
	event.marked = marked - flow->sender.marked_packets;
	tcp_account(sk, &flow->sender);
	/* AccECN counts marks of packets that are not yet acknowledged */
	if (event.marked > event.packets)
		event.packets = event.marked;
	control_ack(flow, &event);
	window = control_window(flow);
	bpf_spin_unlock(&flow->lock);
	set_window(sk, window);
}

/* From 6.10 on. */
SEC("struct_ops/cong_control")
void CONTROL_PROG(PROGRAM(cong_control), struct sock *sk, u32 ack, int flag,
		  const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

#ifndef __wasm__ /* before 6.10 */
SEC("struct_ops/cong_control_2")
void CONTROL_PROG(PROGRAM(cong_control_2), struct sock *sk, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}
#endif

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
	set_window(sk, window);
}

SEC("struct_ops/cwnd_event")
void CONTROL_PROG(PROGRAM(cwnd_event), struct sock *sk, int event)
{
	struct flow_entry *flow;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	if (tcp_starts_late(sk))
		start(sk);
	flow = flow_of(sk);
	echo_event(sk, flow ? &flow->receiver : NULL, event);
}

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
	.cwnd_event = (void *)PROGRAM(cwnd_event),
	.set_state = (void *)PROGRAM(set_state),
	.ssthresh = (void *)PROGRAM(ssthresh),
	.undo_cwnd = (void *)PROGRAM(undo_cwnd),
	.pkts_acked = (void *)PROGRAM(pkts_acked),
	.name = TEXT(CONTROL),
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
};

#endif
