// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * pcn_dctcp: DCTCP (SIGCOMM 2010, RFC 8257) as a TCP congestion control. The kernel has its own,
 * called dctcp. This one runs where that is not built, keeps statistics, and is compared with it in
 * tests.
 *
 * Highlights:
 *   1. Every ACK tells which packets were marked. Alpha is updated once a window (algo/dctcp.h).
 *   2. The receiver must run this control too, or the kernel's: it echoes each packet's mark, where
 *      RFC 3168 latches it.
 *   3. The window grows as Reno's does. Without ECN the flow is one of the kernel's CUBIC.
 *   4. On hosts windows are paced, and bursts limited: see burst in algo/dctcp.h.
 *
 * Try it: pcn run hol --algo pcn_dctcp
 */
#include "include/control.h"
#include "include/echo.h"
#include "include/plain.h"
#include "algo/dctcp.h"
#include "algo/red.h"

/* clang-format off */
const volatile struct dctcp_params params
	SCHEME("section", "dctcp")
	SCHEME("title", "DCTCP: a window that follows the share of marked packets")
	SCHEME("source", "Alizadeh et al., Data Center TCP, SIGCOMM 2010; RFC 8257")
	SCHEME("sender", "window")
	SCHEME("marker", "red")
	SCHEME("ecn", "needed")
	= {};
/* clang-format on */

/* Parameters of switches: a threshold, as in the paper. */
const struct red_params marker_params PREFIX("marking") = {};

struct dctcp_flow {
	FLOW_HEAD;
	struct dctcp dctcp;
	struct dctcp_delay delay;
	struct echo receiver;
	u32 loss_cwnd; /* cwnd before the latest cut, for undo_cwnd */
	u32 ssthresh;  /* of the latest cut */
	u32 window;    /* cwnd as of the latest ACK */
	u32 pad2;
};

FLOW_TABLE(struct dctcp_flow);

OWN_ENTRY(struct dctcp_flow)

/*
 * Why the flow has the window of plain TCP: no mark tells it of congestion, or it has no entry. The
 * core asks this control for each step, so the window is the same as the kernel's CUBIC.
 */
static __always_inline u32 plain(struct sock *sk, const struct dctcp_flow *flow)
{
	u32 reason = plain_reason(sk, true, flow);

	if (reason && !in_window(sk)) {
		tcp_restore_window(sk);
		plain_init(sk);
	}
	plain_because(sk, reason);
	return reason;
}

static __noinline void start(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp_flow flow = {};
	struct flow_key key;

	dctcp_init(&flow.dctcp, loaded(params), tp->snd_nxt, tcp_delivered(sk),
		   tcp_delivered_ce(sk));
	tcp_establish(sk, &flow.sender, &key);
	flow.ssthresh = tp->snd_ssthresh;
	flow.window = tp->snd_cwnd;
	flow.delay.next_seq = tp->snd_nxt;
	flow.owner = tcp_state(sk)->owner;
	echo_start(sk, &flow.receiver);
	if (bpf_map_update_elem(&flows, &key, &flow, BPF_ANY)) {
		plain_because(sk, DOUBT_TABLE_FULL);
		plain_count(sk, DOUBT_TABLE_FULL);
		plain_init(sk);
	} else if (params.burst_ns) {
		tcp_start_pacing(sk);
	}
}

SEC("struct_ops/init")
void BPF_PROG(pcn_dctcp_init, struct sock *sk)
{
	start(sk);
}

SEC("struct_ops/release")
void BPF_PROG(pcn_dctcp_release, struct sock *sk)
{
	plain_end(sk);
	flow_end(sk);
}

/*
 * A kernel may leave out a struct_ops program (KNOWN_ISSUES.md). What the core then takes for
 * ssthresh is anything, and the window grows while the core believes that it shrinks. So neither
 * may be more than what this control knows of. packets were delivered since the latest ACK.
 */
static __always_inline void repair_window(struct sock *sk, struct dctcp_flow *flow, u32 packets)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u8 state = ((struct inet_connection_sock *)sk)->icsk_ca_state;
	u32 most = flow->window > flow->loss_cwnd ? flow->window : flow->loss_cwnd;
	bool reduces = state == TCP_CA_CWR || state == TCP_CA_Recovery;

	if (tp->snd_cwnd > most + packets + TCP_FIRST_WINDOW)
		tp->snd_cwnd = flow->window;
	flow->window = tp->snd_cwnd;
	if (tp->snd_ssthresh == flow->ssthresh || (!reduces && tp->snd_ssthresh <= most))
		return;
	if (reduces)
		flow->ssthresh = dctcp_ssthresh(&flow->dctcp, flow->window);
	tp->snd_ssthresh = flow->ssthresh;
}

static __always_inline void on_ack(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 snd_una = tp->snd_una, snd_nxt = tp->snd_nxt, delivered = tp->delivered,
	    delivered_ce = tp->delivered_ce;
	struct dctcp_flow *flow = flow_of(sk);
	u32 reason, cwnd;

	if (!tcp_started(sk)) {
		if (tcp_starts_late(sk))
			start(sk);
		return;
	}
	reason = plain(sk, flow);
	plain_count(sk, reason);
	if (!reason) {
		tcp_restore_window(sk);
		if (flow) {
			repair_window(sk, flow, delivered - flow->sender.packets);
			tcp_set_calm(sk, !flow->dctcp.alpha); /* 66 windows after a mark */
		}
	}
	cwnd = tp->snd_cwnd;
	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	tcp_account(sk, &flow->sender);
	flow->sender.plain_window = reason ? cwnd : 0;
	flow->sender.doubt = reason;
	dctcp_ack(&flow->dctcp, loaded(params), snd_una, snd_nxt, delivered, delivered_ce);
	bpf_spin_unlock(&flow->lock);
}

SEC("struct_ops/in_ack_event")
void BPF_PROG(pcn_dctcp_in_ack_event, struct sock *sk, u32 flags)
{
	on_ack(sk);
}

/*
 * The core calls in_ack_event at receivers too, for each packet. Where nothing was sent, nothing is
 * acknowledged, and once alpha is 0 an ACK changes nothing.
 */
static __always_inline bool only_receives(struct sock *sk)
{
	return tcp_calm(sk) && !in_window(sk) && !((struct tcp_sock *)sk)->data_segs_out;
}

/* See hostSuffix in package loader. */
SEC("struct_ops/in_ack_event_host")
void BPF_PROG(pcn_dctcp_in_ack_event_host, struct sock *sk, u32 flags)
{
	if (!only_receives(sk))
		on_ack(sk);
}

/* The kernel asks once a window, when it enters state CWR after an echoed mark. */
SEC("struct_ops/ssthresh")
u32 BPF_PROG(pcn_dctcp_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp_flow *flow = flow_of(sk);
	u32 cwnd;

	if (plain(sk, flow) || !flow)
		return plain_ssthresh(sk);
	tcp_restore_window(sk);
	cwnd = tp->snd_cwnd;
	flow->loss_cwnd = cwnd;
	flow->delay.samples = 0;
	flow->ssthresh = dctcp_ssthresh(&flow->dctcp, cwnd);
	return flow->ssthresh;
}

/*
 * Not the application held the sender back. With limited bursts the core takes each of them for a
 * full window.
 */
static __always_inline bool may_grow(struct sock *sk)
{
	return !params.burst_ns || !((struct tcp_sock *)sk)->app_limited;
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(pcn_dctcp_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	if (plain(sk, flow_of(sk)))
		plain_grow(sk, acked);
	else if (may_grow(sk))
		tcp_reno_cong_avoid(sk, ack, acked);
}

/* in_ack_event has found out for the same ACK whether the flow has a plain window. */
SEC("struct_ops/cong_avoid_host")
void BPF_PROG(pcn_dctcp_cong_avoid_host, struct sock *sk, u32 ack, u32 acked)
{
	if (in_window(sk))
		plain_grow(sk, acked);
	else if (may_grow(sk))
		tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/undo_cwnd")
u32 BPF_PROG(pcn_dctcp_undo_cwnd, struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp_flow *flow = flow_of(sk);
	u32 cwnd = tp->snd_cwnd;

	if (plain(sk, flow) || !flow)
		return tcp_reno_undo_cwnd(sk);
	return flow->loss_cwnd > cwnd ? flow->loss_cwnd : cwnd;
}

/* A loss halves the window, as in Reno. The core takes the new window from snd_ssthresh. */
static __always_inline void on_loss(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct dctcp_flow *flow = flow_of(sk);
	u32 cwnd;

	if (flow)
		flow->sender.losses++;
	if (plain(sk, flow) || !flow)
		return; /* the core has asked for ssthresh */
	tcp_restore_window(sk);
	cwnd = tp->snd_cwnd;
	flow->ssthresh = cwnd > 4 ? cwnd / 2 : 2;
	tp->snd_ssthresh = flow->ssthresh;
	flow->loss_cwnd = cwnd;
}

SEC("struct_ops/set_state")
void BPF_PROG(pcn_dctcp_set_state, struct sock *sk, u8 state)
{
	if (state == TCP_CA_Recovery && state != ((struct inet_connection_sock *)sk)->icsk_ca_state)
		on_loss(sk);
	if (in_window(sk))
		plain_state(sk, state);
}

static __always_inline void end_slow_start(struct sock *sk, u32 rtt_us)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 rtt_ns = rtt_us * 1000ULL >> dilation_shift,
	    least_ns = tp->rtt_min.s[0].v * 1000ULL >> dilation_shift;
	struct dctcp_flow *flow;

	tcp_restore_window(sk);
	if (tp->snd_cwnd >= tp->snd_ssthresh)
		return;
	flow = flow_of(sk);
	if (!flow ||
	    !dctcp_queues(&flow->delay, loaded(params), tp->snd_una, tp->snd_nxt, rtt_ns, least_ns))
		return;
	flow->ssthresh = tp->snd_cwnd;
	tp->snd_ssthresh = flow->ssthresh;
}

SEC("struct_ops/pkts_acked")
void BPF_PROG(pcn_dctcp_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	if (in_window(sk))
		plain_acked(sk, sample);
	else if (params.slow_start_delay_ns && sample->rtt_us > 0)
		end_slow_start(sk, sample->rtt_us);
}

#define flow_entry dctcp_flow
#include "include/echo_mark.h"

static __always_inline void on_event(struct sock *sk, int event, bool on_host)
{
	if (event == CA_EVENT_LOSS) {
		on_loss(sk);
		return;
	}
	if (event == CA_EVENT_CWND_RESTART && !in_window(sk)) {
		tcp_restore_window(sk);
		return;
	}
	on_mark(sk, event, on_host);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(pcn_dctcp_cwnd_event, struct sock *sk, int event)
{
	on_event(sk, event, false);
}

SEC("struct_ops/cwnd_event_host")
void BPF_PROG(pcn_dctcp_cwnd_event_host, struct sock *sk, int event)
{
	on_event(sk, event, true);
}

/*
 * TCP has set a window for the ACK that it handles, and calls min_tso_segs before it sends by it:
 * see bound_cut in algo/dctcp.h.
 */
static __always_inline void bound_cut(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u8 state = ((struct inet_connection_sock *)sk)->icsk_ca_state;

	if (state != TCP_CA_CWR && state != TCP_CA_Recovery)
		return;
	if (tp->snd_cwnd > tp->prior_cwnd)
		tp->snd_cwnd = tp->prior_cwnd;
}

SEC("struct_ops/min_tso_segs")
u32 BPF_PROG(pcn_dctcp_min_tso_segs, struct sock *sk)
{
	u32 packets;
	u64 pace;

	if (in_window(sk))
		return DEFAULT_TSO_SEGS;
	tcp_restore_window(sk);
	if (params.bound_cut)
		bound_cut(sk);
	if (!params.burst_ns || !tcp_paces(sk))
		return DEFAULT_TSO_SEGS;
	/* the core paces 1.2 windows a round trip */
	pace = tcp_calm(sk) ? ~0ULL : tcp_window_pace(sk);
	if (pace > sk->sk_max_pacing_rate)
		pace = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = pace;
	if (tcp_unpaced(sk))
		return DEFAULT_TSO_SEGS;
	packets = tcp_burst_packets(sk, params.burst_ns);
	tcp_limit_window_burst(sk, packets);
	return packets < DEFAULT_TSO_SEGS ? 1 : DEFAULT_TSO_SEGS;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops pcn_dctcp = {
	.init = (void *)pcn_dctcp_init,
	.release = (void *)pcn_dctcp_release,
	.in_ack_event = (void *)pcn_dctcp_in_ack_event,
	.cwnd_event = (void *)pcn_dctcp_cwnd_event,
	.ssthresh = (void *)pcn_dctcp_ssthresh,
	.cong_avoid = (void *)pcn_dctcp_cong_avoid,
	.undo_cwnd = (void *)pcn_dctcp_undo_cwnd,
	.pkts_acked = (void *)pcn_dctcp_pkts_acked,
	.set_state = (void *)pcn_dctcp_set_state,
	.min_tso_segs = (void *)pcn_dctcp_min_tso_segs,
	.name = "pcn_dctcp",
	.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
};
