/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A flow whose control needs ECN, but whose peer refused it. None of its packets is marked, so only
 * losses tell of congestion. The flow behaves like Reno: the core's initial window, slow start, one
 * packet a round trip, half after a loss. It is paced as TCP paces, and never faster than the line.
 */
#ifndef PCN_PLAIN_H
#define PCN_PLAIN_H

#include "tcp.h"

#define TCP_CA_CWR 2

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

static __always_inline u32 plain_ssthresh(struct sock *sk)
{
	u32 half = ((struct tcp_sock *)sk)->snd_cwnd / 2;

	return half > 2 ? half : 2;
}

/* As tcp_update_pacing_rate(): the window twice a round trip in slow start, 1.2 times later. */
static __always_inline void plain_pace(struct sock *sk, u64 line_rate_bps)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 window_bytes = (u64)tp->snd_cwnd * tp->mss_cache;
	/* srtt_us is 8 times the round trip; 2^20 packets of 9000 bytes * 20 * 800000 < 2^58 */
	u64 round_trips = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 20 : 12, pace = ~0ULL;
	u64 line =
		to_kernel_bytes_per_s(line_rate_bps) * tp->mss_cache / (tcp_frame_bytes(sk) ?: 1);

	if (tp->srtt_us)
		pace = window_bytes * round_trips * 800000 / tp->srtt_us;
	if (pace > line)
		pace = line;
	if (pace > sk->sk_max_pacing_rate)
		pace = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = pace ?: 1;
}

/* With cong_control the core does not reduce the window, so this does. */
static __always_inline void plain_ack(struct sock *sk, const struct rate_sample *rs,
				      u64 line_rate_bps)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u8 state = ((struct inet_connection_sock *)sk)->icsk_ca_state;

	if (state == TCP_CA_Recovery || state == TCP_CA_CWR)
		tp->snd_cwnd = tp->snd_ssthresh;
	else
		tcp_reno_cong_avoid(sk, 0, rs->acked_sacked);
	plain_pace(sk, line_rate_bps);
}

#endif
