/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A flow that may not go by its control (algo/doubt.h): its peer refused ECN, its entry is missing,
 * or nothing tells it of marks. It acts as a plain TCP with the kernel's CUBIC, whose state is in
 * the private part of the socket, so it needs no entry in the flow table. Where the kernel exports
 * no CUBIC it is Reno.
 */
#ifndef PCN_PLAIN_H
#define PCN_PLAIN_H

#include "counts.h"
#include "tcp.h"

#define TCP_CA_CWR 2

/* Flows that fell back to a window, by the reason, in the order of enum doubt_reason. */
struct control_counts {
	u64 no_ecn;	      /* the peer refused ECN */
	u64 table_full;	      /* the flow table had no room */
	u64 no_entry;	      /* the flow's entry was gone, or another flow's */
	u64 no_marks;	      /* packets were lost, and none was marked */
	u64 no_cnps;	      /* the peer sent no CNPs */
	u64 proven;	      /* flows that went back to their control: a decrease was asked for */
	u64 table_full_ended; /* flows that ended, of those that found the table full */
};

COUNTS(control_counts)

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
#ifdef __wasm__
/* The simulator undoes no window. */
static __always_inline u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}
#else
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
#endif
extern void cubictcp_init(struct sock *sk) __ksym __weak;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym __weak;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym __weak;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym __weak;

/* Its state must fit where sock_state has room for it. */
static __always_inline bool have_cubic(void)
{
	return bpf_core_field_exists(((struct bictcp *)0)->bic_origin_point) &&
	       bpf_core_type_size(struct bictcp) <= sizeof(((struct sock_state *)0)->cubic) &&
	       cubictcp_init && cubictcp_recalc_ssthresh && cubictcp_cong_avoid && cubictcp_state &&
	       cubictcp_acked;
}

static __always_inline bool in_window(struct sock *sk)
{
	return tcp_state(sk)->window;
}

/*
 * A window begins. CUBIC is not paced: timers of TCP's pacing cost it throughput. Who limits the
 * rate by SO_MAX_PACING_RATE, or has an fq qdisc, keeps the pacing.
 */
static __always_inline void plain_init(struct sock *sk)
{
	if (sk->sk_pacing_status == SK_PACING_NEEDED && !~sk->sk_max_pacing_rate)
		sk->sk_pacing_status = SK_PACING_NONE;
	if (have_cubic())
		cubictcp_init(sk);
}

static __always_inline u32 plain_ssthresh(struct sock *sk)
{
	u32 half = ((struct tcp_sock *)sk)->snd_cwnd / 2;

	if (have_cubic())
		return cubictcp_recalc_ssthresh(sk);
	return half > 2 ? half : 2;
}

static __always_inline void plain_state(struct sock *sk, u8 state)
{
	if (have_cubic())
		cubictcp_state(sk, state);
}

static __always_inline void plain_acked(struct sock *sk, const struct ack_sample *sample)
{
	if (have_cubic())
		cubictcp_acked(sk, sample);
}

static __always_inline void plain_grow(struct sock *sk, u32 acked)
{
	if (have_cubic())
		cubictcp_cong_avoid(sk, ((struct tcp_sock *)sk)->snd_una, acked);
	else
		tcp_reno_cong_avoid(sk, 0, acked);
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
	if (line && pace > line)
		pace = line;
	if (pace > sk->sk_max_pacing_rate)
		pace = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = pace ?: 1;
}

/*
 * A kernel may leave out a struct_ops program, and takes what a register held for its answer
 * (KNOWN_ISSUES.md). If that was ssthresh or undo_cwnd, the window would be millions of packets.
 * window is that of the latest ACK, or 0. reduces: this ACK is of a reduction.
 */
static __always_inline void plain_repair(struct sock *sk, u32 window, u32 acked, bool reduces)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (window && tp->snd_cwnd > window + acked + TCP_FIRST_WINDOW)
		tp->snd_cwnd = window;
	/* a reduction makes no window larger, but for one of a packet: the least is two */
	if (reduces && tp->snd_ssthresh > tp->snd_cwnd && tp->snd_ssthresh > 2)
		tp->snd_ssthresh = plain_ssthresh(sk);
}

/*
 * An ACK of a flow whose control has cong_control: the core reduces no window then, but this
 * does. window: see plain_repair(). line_rate_bps 0: the line is not known.
 */
static __always_inline void plain_ack(struct sock *sk, const struct rate_sample *rs, u32 window,
				      u64 line_rate_bps)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u8 state = ((struct inet_connection_sock *)sk)->icsk_ca_state;
	bool reduces = state == TCP_CA_Recovery || state == TCP_CA_CWR;

	plain_repair(sk, window, rs->acked_sacked, reduces);
	if (reduces)
		tp->snd_cwnd = tp->snd_ssthresh;
	else
		plain_grow(sk, rs->acked_sacked);
	plain_pace(sk, line_rate_bps);
}

/* What the path holds without a queue: the rate of arrivals times the least round trip. */
static __always_inline u32 plain_path_packets(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 packets = (u64)tp->rate_delivered * tp->rtt_min.s[0].v;

	if (!tp->rate_interval_us)
		return TCP_FIRST_WINDOW;
	packets /= tp->rate_interval_us;
	if (packets < TCP_FIRST_WINDOW)
		return TCP_FIRST_WINDOW;
	return packets < CWND_UNBOUND / 2 ? packets : CWND_UNBOUND / 2;
}

/* Why the flow has a window from now on; DOUBT_NONE: it goes by its control. */
static __always_inline void plain_because(struct sock *sk, u32 reason)
{
	tcp_state(sk)->window = reason;
}

/* The flow goes on with a window, whatever its control did until now. */
static __always_inline void plain_enter(struct sock *sk, u32 reason)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 packets = plain_path_packets(sk);

	plain_init(sk);
	tp->snd_cwnd = packets;
	tp->snd_ssthresh = packets;
	plain_because(sk, reason);
}

/* Counts a flow once for each time that the reason changes. */
static __always_inline void plain_count(struct sock *sk, u32 reason)
{
	struct sock_state *s = tcp_state(sk);
	u32 before = s->counted;

	if (before == reason)
		return;
	s->counted = reason;
	if (reason >= DOUBT_NO_ECN)
		control_counts_add(COUNTER(control_counts, no_ecn) + reason - DOUBT_NO_ECN);
	else if (reason == DOUBT_NONE && before)
		control_counts_add(COUNTER(control_counts, proven));
}

/* The flow ends. */
static __always_inline void plain_end(struct sock *sk)
{
	if (tcp_state(sk)->counted == DOUBT_TABLE_FULL)
		control_counts_add(COUNTER(control_counts, table_full_ended));
}

/* The reason for a window that lies outside the control, or DOUBT_NONE. */
static __always_inline u32 plain_reason(struct sock *sk, bool needs_ecn, bool has_entry)
{
	if (!has_entry)
		return tcp_state(sk)->window == DOUBT_TABLE_FULL ? DOUBT_TABLE_FULL
								 : DOUBT_NO_ENTRY;
	return needs_ecn && !tcp_ecn_negotiated(sk) ? DOUBT_NO_ECN : DOUBT_NONE;
}

/* A flow of a window-based control begins with a plain window. */
static __always_inline void plain_start(struct sock *sk, u32 reason)
{
	tcp_start_pacing(sk);
	plain_because(sk, reason);
	if (reason == DOUBT_TABLE_FULL)
		plain_count(sk, reason);
	plain_init(sk);
	plain_pace(sk, 0);
}

#endif
