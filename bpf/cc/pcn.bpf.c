// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pcn: PCN's sender as a TCP congestion control.
 *
 * The rate is Algorithm 1's, computed by tc/bpf/rp.bpf.c as CNPs come; this file only wires it to TCP: a flow
 * enters the table when it is established, every ACK sets the pacing rate, and the window never binds.
 *
 * Highlights:
 *   1. cong_control replaces the core's window reduction and pacing update, so both are set on every ACK.
 *   2. TCP's ECN echo is ignored: marks come back in CNPs. ECN must still be negotiated, or nothing is marked.
 *   3. A loss halves the rate, once per recovery; the fabric should have none.
 *
 * Try it: pcn run hol --algo pcn
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "include/clock.h"
#include "include/rp.h"
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader; w_min and w_max in Q24. */
const volatile struct pcn_rp_params rp_params = {
	.line_rate_bps = 10000000000ULL,
	.min_rate_bps = 1000000,
	.w_min = PCN_W_ONE / 128,
	.w_max = PCN_W_ONE / 2,
};

/* Flows that found the table full: they run at line rate, uncontrolled. */
u64 flows_refused = 0;

static __always_inline struct rp_flow *flow_of(struct sock *sk)
{
	struct flow_key key;

	tcp_kept_key(sk, &key);
	return bpf_map_lookup_elem(&rp_flows, &key);
}

SEC("struct_ops/pcn_init")
void BPF_PROG(pcn_init, struct sock *sk)
{
	struct rp_flow flow = {
		.params =
			{
				.line_rate_bps = rp_params.line_rate_bps,
				.min_rate_bps = rp_params.min_rate_bps,
				.w_min = rp_params.w_min,
				.w_max = rp_params.w_max,
			},
	};
	struct flow_key key;

	pcn_rp_init(&flow.rp, &flow.params);
	flow.ecn = tcp_ecn_negotiated(sk);
	tcp_flow_key(sk, &key);
	tcp_keep_key(sk, &key);
	if (bpf_map_update_elem(&rp_flows, &key, &flow, BPF_ANY))
		__sync_fetch_and_add(&flows_refused, 1);
	tcp_start_pacing(sk);
	tcp_set_rate(sk, flow.rp.send_rate_bps);
}

SEC("struct_ops/pcn_release")
void BPF_PROG(pcn_release, struct sock *sk)
{
	struct flow_key key;

	tcp_kept_key(sk, &key);
	bpf_map_delete_elem(&rp_flows, &key);
}

static __always_inline void on_ack(struct sock *sk)
{
	struct rp_flow *flow = flow_of(sk);

	tcp_set_rate(sk, flow ? flow->rp.send_rate_bps : rp_params.line_rate_bps);
	if (!flow)
		return;
	flow->packets = tcp_delivered(sk);
	flow->marked_packets = tcp_delivered_ce(sk);
	flow->srtt_us = tcp_srtt_us(sk);
	flow->retransmissions = tcp_retransmissions(sk);
}

/* From 6.10 on. */
SEC("struct_ops/pcn_cong_control")
void BPF_PROG(pcn_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	on_ack(sk);
}

/* Before 6.10. */
SEC("struct_ops/pcn_cong_control_2")
void BPF_PROG(pcn_cong_control_2, struct sock *sk, const struct rate_sample *rs)
{
	on_ack(sk);
}

SEC("struct_ops/pcn_set_state")
void BPF_PROG(pcn_set_state, struct sock *sk, u8 state)
{
	struct rp_flow *flow;

	if (state != TCP_CA_Recovery && state != TCP_CA_Loss)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	pcn_rp_loss(&flow->rp, &flow->params);
	flow->losses++;
	tcp_set_rate(sk, flow->rp.send_rate_bps);
}

SEC("struct_ops/pcn_ssthresh")
u32 BPF_PROG(pcn_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops/pcn_undo_cwnd")
u32 BPF_PROG(pcn_undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops pcn = {
	.init = (void *)pcn_init,
	.release = (void *)pcn_release,
	.cong_control = (void *)pcn_cong_control,
	.set_state = (void *)pcn_set_state,
	.ssthresh = (void *)pcn_ssthresh,
	.undo_cwnd = (void *)pcn_undo_cwnd,
	.name = "pcn",
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
};
