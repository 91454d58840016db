/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A rate-based congestion control: TCP paces at the rate of the algorithm, which changes when the reaction point (tc)
 * hears of congestion and at every ACK; the window never binds.
 *
 * A control includes this behind the definitions of struct flow_entry (a lock, a struct sender and the algorithm's
 * state) and of
 *	control_start(flow)		a flow was established
 *	control_ack(flow, event)	an ACK came
 *	control_loss(flow, now)		a recovery or a timeout began
 *	control_rate(flow)		what to pace by
 *	line_rate_bps()			for flows that found the table full
 * and ends with RATE_CONTROL(name, flags). All but start run under the flow's lock, where no helper may be called.
 *
 * cong_control replaces the core's window reduction and pacing update, so both are set on every ACK.
 */
#ifndef PCN_RATE_CONTROL_H
#define PCN_RATE_CONTROL_H

#include "tcp.h"

FLOW_TABLE(struct flow_entry);

/* Flows that found the table full: they run at line rate, uncontrolled. */
u64 flows_refused = 0;

static __always_inline struct flow_entry *flow_of(struct sock *sk)
{
	struct flow_key key;

	tcp_kept_key(sk, &key);
	return bpf_map_lookup_elem(&flows, &key);
}

SEC("struct_ops/control_init")
void BPF_PROG(control_init, struct sock *sk)
{
	struct flow_entry flow = {};
	struct flow_key key;

	control_start(&flow);
	tcp_establish(sk, &flow.sender, &key);
	if (bpf_map_update_elem(&flows, &key, &flow, BPF_ANY))
		__sync_fetch_and_add(&flows_refused, 1);
	tcp_start_pacing(sk);
	tcp_set_rate(sk, control_rate(&flow));
}

SEC("struct_ops/control_release")
void BPF_PROG(control_release, struct sock *sk)
{
	struct flow_key key;

	tcp_kept_key(sk, &key);
	bpf_map_delete_elem(&flows, &key);
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct flow_entry *flow = flow_of(sk);
	struct ack_event event;
	u64 rate_bps;

	if (!flow) {
		tcp_set_rate(sk, line_rate_bps());
		return;
	}
	tcp_ack_event(sk, rs, &event);
	bpf_spin_lock(&flow->lock);
	tcp_account(sk, &flow->sender);
	control_ack(flow, &event);
	rate_bps = control_rate(flow);
	bpf_spin_unlock(&flow->lock);
	tcp_set_rate(sk, rate_bps);
}

/* From 6.10 on. */
SEC("struct_ops/control_cong_control")
void BPF_PROG(control_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

/* Before 6.10. */
SEC("struct_ops/control_cong_control_2")
void BPF_PROG(control_cong_control_2, struct sock *sk, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

SEC("struct_ops/control_set_state")
void BPF_PROG(control_set_state, struct sock *sk, u8 state)
{
	struct flow_entry *flow;
	u64 now = now_ns(), rate_bps;

	if (state != TCP_CA_Recovery && state != TCP_CA_Loss)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	control_loss(flow, now);
	flow->sender.losses++;
	rate_bps = control_rate(flow);
	bpf_spin_unlock(&flow->lock);
	tcp_set_rate(sk, rate_bps);
}

SEC("struct_ops/control_ssthresh")
u32 BPF_PROG(control_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops/control_undo_cwnd")
u32 BPF_PROG(control_undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

#define RATE_CONTROL(name_, flags_)                                                                                    \
	SEC(".struct_ops.link")                                                                                        \
	struct tcp_congestion_ops control = {                                                                          \
		.init = (void *)control_init,                                                                          \
		.release = (void *)control_release,                                                                    \
		.cong_control = (void *)control_cong_control,                                                          \
		.set_state = (void *)control_set_state,                                                                \
		.ssthresh = (void *)control_ssthresh,                                                                  \
		.undo_cwnd = (void *)control_undo_cwnd,                                                                \
		.name = name_,                                                                                         \
		.flags = TCP_CONG_NON_RESTRICTED | (flags_),                                                           \
	}

#endif
