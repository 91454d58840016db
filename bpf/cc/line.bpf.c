// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pcn_line: no congestion control. It always sends at line rate, or at the socket's
 * SO_MAX_PACING_RATE. This is what PFC alone makes of the network, the baseline of every
 * comparison.
 */
#include "include/control.h"

struct line_params {
	u64 line_rate_bps FROM("line_rate");
};

/* clang-format off */
const volatile struct line_params params
	SCHEME("name", "pfc")
	SCHEME("title", "PFC: full switches stop their neighbours; no congestion control")
	SCHEME("source", "IEEE 802.1Qbb")
	SCHEME("sender", "line")
	SCHEME("ecn", "needed")
	= {};
/* clang-format on */

SEC("struct_ops/init")
void BPF_PROG(pcn_line_init, struct sock *sk)
{
	tcp_start_pacing(sk);
	tcp_set_rate(sk, params.line_rate_bps);
}

/* From 6.10 on. */
SEC("struct_ops/cong_control")
void BPF_PROG(pcn_line_cong_control, struct sock *sk, u32 ack, int flag,
	      const struct rate_sample *rs)
{
	tcp_set_rate(sk, params.line_rate_bps);
}

/* Before 6.10. */
SEC("struct_ops/cong_control_2")
void BPF_PROG(pcn_line_cong_control_2, struct sock *sk, const struct rate_sample *rs)
{
	tcp_set_rate(sk, params.line_rate_bps);
}

SEC("struct_ops/ssthresh")
u32 BPF_PROG(pcn_line_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops/undo_cwnd")
u32 BPF_PROG(pcn_line_undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops pcn_line = {
	.init = (void *)pcn_line_init,
	.cong_control = (void *)pcn_line_cong_control,
	.ssthresh = (void *)pcn_line_ssthresh,
	.undo_cwnd = (void *)pcn_line_undo_cwnd,
	.name = "pcn_line",
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
};
