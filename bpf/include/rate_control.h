/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A rate-based congestion control: TCP paces at the rate of the algorithm. The rate changes when
 * the reaction point (tc) gets a notification, and at every ACK. The window never binds.
 *
 * A control includes this behind the definitions of struct flow_entry (FLOW_HEAD, then the
 * algorithm's state) and of
 *	CONTROL				its name, by which sockets choose it
 *	CONTROL_FLAGS			TCP_CONG_NEEDS_ECN, or 0
 *	control_start(flow)		a flow was established
 *	control_ack(flow, event)	an ACK arrived
 *	control_loss(flow, now_ns)	a loss recovery or a timeout began
 *	control_rate(flow)		the rate at which the flow is paced
 *	control_set_rate(flow, rate)	sets that rate: experiments start flows at other rates
 *	line_rate_bps()			for flows that found the table full
 *	CONTROL_BURST_NS		optional; at the flow's rate, packets of this time leave
 *					back to back at most; 0: TCP decides
 *
 * All but control_start run under the flow's lock, where no helper may be called. The programs and
 * the operations get the control's name: pcn_init and so on.
 *
 * cong_control replaces the core's window reduction and pacing update, so both are set on every
 * ACK.
 */
#ifndef PCN_RATE_CONTROL_H
#define PCN_RATE_CONTROL_H

#include "plain.h"
#include "program.h"
#include "tcp.h"

FLOW_TABLE(struct flow_entry);

/* Flows that found the table full. They run at line rate, uncontrolled. */
u64 flows_refused = 0;

static __always_inline struct flow_entry *flow_of(struct sock *sk)
{
	struct flow_key key;

	tcp_kept_key(sk, &key);
	return bpf_map_lookup_elem(&flows, &key);
}

/* The peer refused ECN, so no notification comes from this path: see plain.h. */
static __always_inline bool plain(struct sock *sk)
{
	return CONTROL_FLAGS & TCP_CONG_NEEDS_ECN && !tcp_ecn_negotiated(sk);
}

SEC("struct_ops/init")
void CONTROL_PROG(PROGRAM(init), struct sock *sk)
{
	struct flow_entry flow = {};
	struct flow_key key;

	control_start(&flow);
	tcp_establish(sk, &flow.sender, &key);
	flow.sender.send_rate_bps = control_rate(&flow);
	if (plain(sk)) {
		flow.sender.plain_window = ((struct tcp_sock *)sk)->snd_cwnd;
		flow.sender.send_rate_bps = 0;
	}
	if (bpf_map_update_elem(&flows, &key, &flow, BPF_ANY))
		__sync_fetch_and_add(&flows_refused, 1);
	tcp_start_pacing(sk);
	if (plain(sk))
		plain_pace(sk, line_rate_bps());
	else
		tcp_set_rate(sk, control_rate(&flow));
}

SEC("struct_ops/release")
void CONTROL_PROG(PROGRAM(release), struct sock *sk)
{
	struct flow_key key;

	tcp_kept_key(sk, &key);
	bpf_map_delete_elem(&flows, &key);
}

static __always_inline void on_plain_ack(struct sock *sk, struct flow_entry *flow,
					 const struct rate_sample *rs)
{
	plain_ack(sk, rs, line_rate_bps());
	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	tcp_account(sk, &flow->sender);
	flow->sender.plain_window = ((struct tcp_sock *)sk)->snd_cwnd;
	flow->sender.send_rate_bps = 0;
	bpf_spin_unlock(&flow->lock);
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct flow_entry *flow = flow_of(sk);
	struct ack_event event;
	u64 rate_bps;

	if (plain(sk)) {
		on_plain_ack(sk, flow, rs);
		return;
	}
	if (!flow) {
		tcp_set_rate(sk, line_rate_bps());
		return;
	}
	tcp_ack_event(sk, rs, &event);
	bpf_spin_lock(&flow->lock);
	tcp_account(sk, &flow->sender);
	flow->sender.plain_window = 0;
	control_ack(flow, &event);
	rate_bps = control_rate(flow);
	flow->sender.send_rate_bps = rate_bps;
	bpf_spin_unlock(&flow->lock);
	tcp_set_rate(sk, rate_bps);
}

/* From 6.10 on. */
SEC("struct_ops/cong_control")
void CONTROL_PROG(PROGRAM(cong_control), struct sock *sk, u32 ack, int flag,
		  const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

/* Before 6.10. */
SEC("struct_ops/cong_control_2")
void CONTROL_PROG(PROGRAM(cong_control_2), struct sock *sk, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

SEC("struct_ops/set_state")
void CONTROL_PROG(PROGRAM(set_state), struct sock *sk, u8 state)
{
	struct flow_entry *flow;
	u64 event_ns = now_ns(), rate_bps;

	if (state != TCP_CA_Recovery && state != TCP_CA_Loss)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	flow->sender.losses++;
	control_loss(flow, event_ns);
	rate_bps = control_rate(flow);
	flow->sender.send_rate_bps = rate_bps;
	bpf_spin_unlock(&flow->lock);
	if (!plain(sk))
		tcp_set_rate(sk, rate_bps);
}

SEC("struct_ops/ssthresh")
u32 CONTROL_PROG(PROGRAM(ssthresh), struct sock *sk)
{
	if (plain(sk))
		return plain_ssthresh(sk);
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops/undo_cwnd")
u32 CONTROL_PROG(PROGRAM(undo_cwnd), struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

#ifdef CONTROL_BURST_NS
SEC("struct_ops/min_tso_segs")
u32 CONTROL_PROG(PROGRAM(min_tso_segs), struct sock *sk)
{
	u64 burst_ns = CONTROL_BURST_NS;
	u32 packets;

	if (!burst_ns || plain(sk) || !tcp_paces(sk))
		return DEFAULT_TSO_SEGS;
	packets = tcp_packets_in(sk, to_kernel_ns(burst_ns));
	tcp_limit_burst(sk, packets);
	return packets < DEFAULT_TSO_SEGS ? 1 : DEFAULT_TSO_SEGS;
}
#endif

/* The input of set_rate, in place of a packet. */
struct rate_order {
	struct flow_key key;
	u64 rate_bps;
};

/*
 * User space runs this with a struct rate_order as the packet. Returns 1 if there is no such flow.
 */
SEC("tc")
int set_rate(struct __sk_buff *skb)
{
	struct rate_order order;
	struct flow_entry *flow;

	if (bpf_skb_load_bytes(skb, 0, &order, sizeof(order)))
		return 1;
	flow = bpf_map_lookup_elem(&flows, &order.key);
	if (!flow)
		return 1;
	bpf_spin_lock(&flow->lock);
	control_set_rate(flow, order.rate_bps);
	flow->sender.send_rate_bps = control_rate(flow);
	bpf_spin_unlock(&flow->lock);
	return 0;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops CONTROL = {
	.init = (void *)PROGRAM(init),
	.release = (void *)PROGRAM(release),
	.cong_control = (void *)PROGRAM(cong_control),
	.set_state = (void *)PROGRAM(set_state),
	.ssthresh = (void *)PROGRAM(ssthresh),
	.undo_cwnd = (void *)PROGRAM(undo_cwnd),
#ifdef CONTROL_BURST_NS
	.min_tso_segs = (void *)PROGRAM(min_tso_segs),
#endif
	.name = TEXT(CONTROL),
	.flags = TCP_CONG_NON_RESTRICTED | CONTROL_FLAGS,
};

#endif
