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
 *	line_rate_bps()			a flow with a window is not paced faster
 *	CONTROL_DOUBT			optional: the struct doubt_params (algo/doubt.h). Then also
 *	CONTROL_ACK_DECREASES(flow)	how often ACKs asked for a decrease
 *	CONTROL_EXPECTS_CNPS		enum doubt_cnps
 *	CONTROL_OBEYS_CNPS_ALONE	in place of these three: without CNPs for marks it would not
 *					slow down, so it has that doubt
 *	CONTROL_BURST_NS		optional; at the flow's rate, packets of this time leave
 *					back to back at most; 0: TCP decides. Then also
 *	CONTROL_RESTART_NS		how long an application pauses until its flow restarts; 0:
 *					never does
 *	control_restart(flow)		it sends again after such a pause
 *
 *	CONTROL_LOSS_CUT		whether control_loss is called if a file does not say so:
 *					"true", the default, or "false"
 *	CONTROL_NO_LOSS_RULE		control_loss does nothing, and no file can say so
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
#include "point.h"
#include "program.h"
#include "tcp.h"

#define CONTROL_WINDOW_BPS line_rate_bps()
#include "window_ack.h"

#ifndef CONTROL_LOSS_CUT
#define CONTROL_LOSS_CUT "true"
#endif

#ifndef CONTROL_NO_LOSS_RULE
/* No paper of a rate has a rule for a loss. On a lossy network a flow must have one. */
struct loss_params {
	flag cut KEY("loss_cut")
		PARAM("A recovery from losses, or a timeout, cuts the rate; to half, unless the "
		      "algorithm has a cut of its own",
		      "", CONTROL_LOSS_CUT) HOST("true");
};

const volatile struct loss_params loss_params = {};
#endif

static __always_inline bool cuts_after_loss(void)
{
#ifdef CONTROL_NO_LOSS_RULE
	return false;
#else
	const struct loss_params *p = loaded(loss_params);

	return p->cut;
#endif
}

FLOW_TABLE(struct flow_entry);

OWN_ENTRY(struct flow_entry)

#define NEEDS_ECN ((CONTROL_FLAGS) & TCP_CONG_NEEDS_ECN)

#ifdef CONTROL_OBEYS_CNPS_ALONE
/* CNPs for marks keep no period. */
const volatile struct doubt_params doubt_params OF("period_ns", "from:0") = {};

#define CONTROL_DOUBT		     (loaded(doubt_params))
#define CONTROL_ACK_DECREASES(flow_) 0
#define CONTROL_EXPECTS_CNPS	     DOUBT_CNPS_FOR_MARKS
#endif

#ifdef CONTROL_DOUBT
static __always_inline u32 start_doubt(struct flow_entry *flow)
{
	doubt_start(&flow->doubt, CONTROL_DOUBT, now_ns());
	return flow->doubt.reason;
}

/* Under the flow's lock. */
static __always_inline u32 doubts(struct flow_entry *flow, const struct ack_event *e)
{
	const struct doubt_event event = {
		.now_ns = e->now_ns,
		.rtt_ns = (u64)flow->sender.srtt_us * 1000 >> dilation_shift,
		.decreases = flow->sender.cnp_decrease + CONTROL_ACK_DECREASES(flow),
		.cnps = flow->sender.cnp_decrease + flow->sender.cnp_increase,
		.packets = flow->sender.packets,
		.marks = flow->sender.marked_packets,
		.expect_cnps = CONTROL_EXPECTS_CNPS,
	};

	return doubt_ack(&flow->doubt, CONTROL_DOUBT, &event);
}

/* Under the flow's lock. */
static __always_inline u32 doubts_after_loss(struct flow_entry *flow, u64 event_ns)
{
	return doubt_loss(&flow->doubt, CONTROL_DOUBT, event_ns,
			  (u64)flow->sender.srtt_us * 1000 >> dilation_shift);
}
#else
static __always_inline u32 start_doubt(struct flow_entry *flow)
{
	return DOUBT_NONE;
}

static __always_inline u32 doubts(struct flow_entry *flow, const struct ack_event *e)
{
	return DOUBT_NONE;
}

static __always_inline u32 doubts_after_loss(struct flow_entry *flow, u64 event_ns)
{
	return DOUBT_NONE;
}
#endif

/* rp_near() doubles it twice. */
#define SIGHT_MOST (1U << 28)

/* Keeps what rp_sight_good() compares with CNPs. */
static __always_inline void keep_sight(struct sock *sk, struct cnp_guard *g)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 una = tp->snd_una, flight = tp->snd_nxt - (g->sighted ? g->una : una),
	    lately = g->flight - (g->flight >> 6);

	if (!on_host)
		return;
	g->una = una;
	g->flight = flight > lately ? flight : lately;
	if (g->flight > SIGHT_MOST)
		g->flight = SIGHT_MOST;
	g->expected = tp->rcv_nxt;
	g->window = tp->rcv_wnd;
	g->sighted = 1;
}

static __noinline void start(struct sock *sk)
{
	struct flow_entry flow = {};
	struct flow_key key;
	u32 reason;

	control_start(&flow);
	tcp_establish(sk, &flow.sender, &key);
	flow.owner = tcp_state(sk)->owner;
	keep_sight(sk, &flow.guard);
	flow.sender.send_rate_bps = control_rate(&flow);
	reason = start_doubt(&flow);
	if (NEEDS_ECN && !tcp_ecn_negotiated(sk))
		reason = DOUBT_NO_ECN; /* so far: the handshake may not be over */
	if (reason) {
		flow.sender.plain_window = ((struct tcp_sock *)sk)->snd_cwnd;
		flow.sender.send_rate_bps = 0;
		flow.sender.doubt = reason;
	}
	if (bpf_map_update_elem(&flows, &key, &flow, BPF_ANY)) {
		reason = DOUBT_TABLE_FULL;
		plain_count(sk, reason);
	}
	tcp_start_pacing(sk);
	plain_because(sk, reason);
	if (reason) {
		plain_init(sk);
		plain_pace(sk, line_rate_bps());
	} else {
		tcp_set_rate(sk, control_rate(&flow));
	}
}

/* The rate of the flow's window. */
static __always_inline u64 window_rate_bps(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 bits = (u64)tp->snd_cwnd * tcp_frame_bytes(sk) * 8, rate_bps = line_rate_bps();

	/* srtt_us is 8 times the round trip; 2^20 packets of 72000 bits * 8 * 10^6 < 2^60 */
	if (tp->srtt_us)
		rate_bps = (bits * 8 * 1000000 / tp->srtt_us) << dilation_shift;
	return rate_bps < line_rate_bps() ? rate_bps : line_rate_bps();
}

/* Not inline: the stack has room for this or for a start. */
static __noinline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct flow_entry *flow = flow_of(sk);
	u32 before = tcp_state(sk)->window, reason = plain_reason(sk, NEEDS_ECN, flow);
	u64 rate_bps, window_bps;
	struct ack_event event;

	if (reason || !flow) {
		on_window_ack(sk, flow, rs, reason);
		return;
	}
	tcp_ack_event(sk, rs, &event);
	window_bps = window_rate_bps(sk);
	bpf_spin_lock(&flow->lock);
	tcp_account(sk, &flow->sender);
	keep_sight(sk, &flow->guard);
	control_ack(flow, &event);
	reason = doubts(flow, &event);
	if (!reason && before && before != DOUBT_NO_ECN)
		control_set_rate(flow, window_bps);
	rate_bps = control_rate(flow);
	if (!reason) {
		flow->sender.send_rate_bps = rate_bps;
		flow->sender.plain_window = 0;
		flow->sender.doubt = 0;
	}
	bpf_spin_unlock(&flow->lock);
	if (reason) {
		on_window_ack(sk, flow, rs, reason);
		return;
	}
	if (before) {
		tcp_start_pacing(sk);
		plain_because(sk, DOUBT_NONE);
		plain_count(sk, DOUBT_NONE);
	}
	tcp_set_rate(sk, rate_bps);
}

SEC("struct_ops/set_state")
void CONTROL_PROG(PROGRAM(set_state), struct sock *sk, u8 state)
{
	bool loss = state == TCP_CA_Recovery || state == TCP_CA_Loss, window = in_window(sk);
	u64 event_ns = now_ns(), rate_bps;
	struct flow_entry *flow;
	u32 reason;

	if (window)
		plain_state(sk, state);
	if (!loss)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	flow->sender.losses++;
	reason = doubts_after_loss(flow, event_ns);
	if (!window && cuts_after_loss())
		control_loss(flow, event_ns);
	rate_bps = control_rate(flow);
	if (!window)
		flow->sender.send_rate_bps = rate_bps;
	bpf_spin_unlock(&flow->lock);
	if (window)
		return;
	if (reason)
		plain_enter(sk, reason);
	else
		tcp_set_rate(sk, rate_bps);
}

#ifdef CONTROL_BURST_NS
static __always_inline void restart(struct sock *sk)
{
	struct flow_entry *flow = flow_of(sk);

	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	control_restart(flow);
	bpf_spin_unlock(&flow->lock);
}

SEC("struct_ops/min_tso_segs")
u32 CONTROL_PROG(PROGRAM(min_tso_segs), struct sock *sk)
{
	u64 burst_ns = CONTROL_BURST_NS, restart_ns = CONTROL_RESTART_NS;
	u32 packets;

	if (in_window(sk))
		return DEFAULT_TSO_SEGS;
	if (restart_ns && tcp_paused(sk, to_kernel_ns(restart_ns)))
		restart(sk);
	if (!burst_ns || !tcp_paces(sk))
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

#ifdef __wasm__
/* The simulator's way to set the rate. */
SIMULATED("simulate_rate") void simulate_rate(u64 rate_bps)
{
	struct flow_entry *flow = simulated_flow();

	control_set_rate(flow, rate_bps);
	flow->sender.send_rate_bps = control_rate(flow);
}
#endif

#ifdef CONTROL_BURST_NS
#define CONTROL_BURSTS
#endif
#include "operations.h"

#endif
