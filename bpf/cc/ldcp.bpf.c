// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ldcp: LDCP's sender as a TCP congestion control, and its receiver's echo.
 *
 * Highlights:
 *   1. cong_control runs on every ACK and sets the window by algo/ldcp.h. It replaces the core's
 *      own reductions.
 *   2. TCP counts whole packets: a window of 3.7 packets sends 3. Below one packet the window stays
 *      at one, and pacing keeps packets RTT / cw apart.
 *   3. TCP's counts of delivered and of marked packets tell which packets of an ACK were marked.
 *      AccECN keeps the second count exact; without AccECN the receiver's echo does
 *      (include/echo.h).
 *   4. IW is the bandwidth-delay product of the line rate and the path's round trip: the smallest
 *      that was measured to that host before, or what the loader sets.
 *   5. Without ECN the flow is one of the kernel's CUBIC.
 *   6. On hosts a flow that loses ECN-capable packets, and has seen no mark before, is one of CUBIC
 *      too: some queue on the path is full and does not mark (algo/doubt.h).
 *   7. On hosts windows are paced, and bursts limited: see burst in algo/ldcp.h.
 *   8. Packets of the first round trip become not ECN-capable on their way out: include/first_rtt.h
 *      reads this control's flow table.
 *
 * Try it: pcn run ldcp-steady
 */
#include "include/control.h"
#include "include/echo.h"
#include "include/plain.h"
#include "include/program.h"
#include "algo/doubt.h"
#include "algo/ldcp.h"
#include "algo/red.h"

/* clang-format off */
const volatile struct ldcp_params params
	SCHEME("title", "LDCP: every ACK adjusts the window; no PFC is needed")
	SCHEME("source", "Dai, Fu, Tan, PFC-Free Low Delay Control Protocol, "
		"draft-dai-tsvwg-pfc-free-congestion-control-00")
	SCHEME("sender", "window")
	SCHEME("marker", "red")
	SCHEME("at_kmax", "all")
	SCHEME("ecn", "needed")
	SCHEME("accecn", "yes when feedback is accecn")
	SCHEME("delayed_ack", "yes when ack_every is 2")
	SCHEME("first_rtt", "drop when first_rtt is drop")
	= {};
/* clang-format on */
const volatile struct ldcp_path_params path_params = {};

/* A flow starts by its algorithm, at line rate; and no CNPs are waited for. */
const volatile struct doubt_params doubt_params OF("careful", "from:0")
	OF("period_ns", "from:0") = {};

/* Parameters of switches: a ramp, which keeps flows from synchronising. */
const struct red_params marker_params PREFIX("marking")
	OF("kmin_bytes", "default:min(1GB, 5KB * line_rate / 10Gbps)")
		OF("kmax_bytes", "default:min(1GB, 20KB * line_rate / 10Gbps)") = {};
const struct wred_params wred_params = {};

struct ldcp_flow {
	FLOW_HEAD;
	struct ldcp ldcp;
	struct echo receiver;
	u32 first_rtt; /* no ACK arrived yet: packets before first_end are not ECN-capable */
	u32 start_seq, first_end; /* TCP's sequence numbers */
	u32 delivered;		  /* packets, as of the latest ACK */
	u32 delivered_ce;	  /* of which marked */
	u32 pad2;
};

#define CONTROL	   ldcp
#define flow_entry ldcp_flow
#include "include/window_ack.h"

FLOW_TABLE(struct flow_entry);

OWN_ENTRY(struct flow_entry)

/* The smallest round trip measured to each host, in the papers' time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32[4]);
	__type(value, u64);
} base_rtts SEC(".maps");

/*
 * gap_ns: time between two packets, in the papers' time; 0: the window alone decides. The core
 * leaves it to the control to respect SO_MAX_PACING_RATE.
 */
static __always_inline void pace(struct sock *sk, u64 gap_ns)
{
	u64 rate = ~0UL;

	if (gap_ns) /* payload < 2^16, and 10^9 * 2^16 < 2^64 */
		rate = ((struct tcp_sock *)sk)->mss_cache * 1000000000ULL / to_kernel_ns(gap_ns)
			       ?: 1;
	else if (params.burst_ns && !tcp_calm(sk))
		rate = tcp_window_pace(sk);
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
}

static __always_inline void set_window(struct sock *sk, const struct ldcp *l)
{
	((struct tcp_sock *)sk)->snd_cwnd = ldcp_packets(l);
	tcp_set_calm(sk, ldcp_calm(l));
	pace(sk, ldcp_gap_ns(l, (u64)tcp_srtt_us(sk) * 1000 >> dilation_shift));
}

static __always_inline u32 path_bdp(struct sock *sk, const struct flow_key *key)
{
	u64 *cached = bpf_map_lookup_elem(&base_rtts, &key->daddr);

	return ldcp_bdp(path_params.line_rate_bps, cached ? *cached : path_params.base_rtt_ns,
			tcp_frame_bytes(sk));
}

/* IW in packets; 0: not set, use the path's bandwidth-delay product. */
static __always_inline u32 initial_window(struct sock *sk)
{
	u32 frame_bytes = tcp_frame_bytes(sk);

	return (params.initial_window_bytes + frame_bytes - 1) / (frame_bytes ?: 1);
}

static __noinline void start(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct ldcp_flow flow = {.first_rtt = 1};
	struct flow_key key;

	tcp_establish(sk, &flow.sender, &key);
	flow.owner = tcp_state(sk)->owner;
	/*
	 * the limit of cw is that of the configured path, the same for all flows: else those that
	 * know a short round trip would get less
	 */
	ldcp_window_init(
		&flow.ldcp, initial_window(sk) ?: path_bdp(sk, &key),
		ldcp_bdp(path_params.line_rate_bps, path_params.base_rtt_ns, tcp_frame_bytes(sk)));
	flow.start_seq = tp->snd_una;
	flow.first_end = flow.start_seq + flow.ldcp.iw * tp->mss_cache;
	flow.delivered = tcp_delivered(sk);
	flow.delivered_ce = tcp_delivered_ce(sk);
	doubt_start(&flow.doubt, loaded(doubt_params), now_ns());
	flow.doubt.decreases = flow.doubt.marks = flow.delivered_ce;
	echo_start(sk, &flow.receiver);
	tcp_start_pacing(sk);
	if (bpf_map_update_elem(&flows, &key, &flow, BPF_ANY)) {
		plain_start(sk, DOUBT_TABLE_FULL);
		return;
	}
	if (!tcp_ecn_negotiated(sk)) { /* so far: the handshake may not be over */
		plain_start(sk, DOUBT_NO_ECN);
		return;
	}
	set_window(sk, &flow.ldcp);
}

/* Remembers the path's round trip for later flows. */
static __always_inline void learn_base_rtt(struct sock *sk, const struct rate_sample *rs)
{
	struct flow_key key;
	u64 rtt_ns, *known;

	if (rs->rtt_us <= 0)
		return;
	rtt_ns = (u64)rs->rtt_us * 1000 >> dilation_shift;
	tcp_kept_key(sk, &key);
	known = bpf_map_lookup_elem(&base_rtts, &key.daddr);
	if (!known)
		bpf_map_update_elem(&base_rtts, &key.daddr, &rtt_ns, BPF_ANY);
	else if (rtt_ns < *known)
		*known = rtt_ns;
}

/* Packets acknowledged since the start, without a gap. */
static __always_inline u32 acked_in_order(struct sock *sk, const struct ldcp_flow *flow)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 mss = tp->mss_cache ?: 1;

	return (tp->snd_una - flow->start_seq + mss - 1) / mss;
}

static __always_inline u64 rtt_ns(const struct ldcp_flow *flow)
{
	return (u64)flow->sender.srtt_us * 1000 >> dilation_shift;
}

/* Each mark asks for a decrease. Only this socket's programs use the doubt: it needs no lock. */
static __always_inline u32 doubts(struct ldcp_flow *flow, u32 delivered_ce)
{
	const struct doubt_event event = {
		.now_ns = now_ns(),
		.rtt_ns = rtt_ns(flow),
		.decreases = delivered_ce,
		.marks = delivered_ce,
	};

	return doubt_ack(&flow->doubt, loaded(doubt_params), &event);
}

/*
 * A loss began behind so many packets. Those of the first round trip are dropped where others are
 * marked, so their loss says nothing.
 */
static __always_inline void doubts_after_loss(struct ldcp_flow *flow, u32 acked)
{
	if (acked >= flow->ldcp.iw)
		doubt_loss(&flow->doubt, loaded(doubt_params), now_ns(), rtt_ns(flow));
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	u32 delivered = tcp_delivered(sk), delivered_ce = tcp_delivered_ce(sk), packets, marked,
	    acked, reason;
	u32 before = tcp_state(sk)->window;
	struct ldcp_flow *flow = flow_of(sk);
	struct ldcp now;
	bool limited;

	reason = plain_reason(sk, true, flow);
	if (!reason && flow)
		reason = doubts(flow, delivered_ce);
	if (reason || !flow) {
		on_window_ack(sk, flow, rs, reason);
		if (flow) {
			flow->first_rtt = 0;
			flow->delivered = delivered;
			flow->delivered_ce = delivered_ce;
		}
		return;
	}
	if (before) {
		tcp_start_pacing(sk);
		plain_because(sk, DOUBT_NONE);
		tcp_state(sk)->kept = (struct tcp_burst_window){};
		if (before != DOUBT_NO_ECN) /* else the handshake was not over at first */
			ldcp_resume(&flow->ldcp, ((struct tcp_sock *)sk)->snd_cwnd);
	}
	plain_count(sk, DOUBT_NONE);
	learn_base_rtt(sk, rs);
	acked = acked_in_order(sk, flow);
	tcp_restore_window(sk);
	/* late timers of pacing leave a window unfilled too: it may grow */
	limited = params.burst_ns ? !rs->is_app_limited
				  : rs->prior_in_flight >= ((struct tcp_sock *)sk)->snd_cwnd;
	bpf_spin_lock(&flow->lock);
	tcp_account(sk, &flow->sender);
	flow->sender.plain_window = 0;
	flow->sender.doubt = DOUBT_NONE;
	packets = delivered - flow->delivered;
	marked = delivered_ce - flow->delivered_ce;
	if (marked > packets)
		packets = marked; /* AccECN counts marks of packets that are not yet acknowledged */
	flow->delivered = delivered;
	flow->delivered_ce = delivered_ce;
	if (acked)
		flow->first_rtt = 0;
	ldcp_ack(&flow->ldcp, loaded(params), packets - marked, marked, acked, limited);
	now = flow->ldcp;
	bpf_spin_unlock(&flow->lock);
	set_window(sk, &now);
}

SEC("struct_ops/set_state")
void CONTROL_PROG(PROGRAM(set_state), struct sock *sk, u8 state)
{
	struct ldcp_flow *flow;
	struct ldcp now;
	u32 acked;

	if (in_window(sk))
		plain_state(sk, state);
	if (state != TCP_CA_Recovery && state != TCP_CA_Loss)
		return;
	flow = flow_of(sk);
	if (!flow)
		return;
	acked = acked_in_order(sk, flow);
	doubts_after_loss(flow, acked);
	bpf_spin_lock(&flow->lock);
	if (state == TCP_CA_Recovery)
		ldcp_loss(&flow->ldcp, loaded(params), acked);
	else
		ldcp_timeout(&flow->ldcp);
	flow->first_rtt = 0;
	flow->sender.losses++;
	now = flow->ldcp;
	bpf_spin_unlock(&flow->lock);
	if (!in_window(sk))
		set_window(sk, &now);
}

#include "include/echo_mark.h"

static __always_inline void on_event(struct sock *sk, int event, bool on_host)
{
	on_mark(sk, event, on_host);
	if (event == CA_EVENT_ECN_IS_CE)
		ack_now(sk); /* sec. 2.2: only ACKs of unmarked packets may be delayed */
}

SEC("struct_ops/cwnd_event")
void CONTROL_PROG(PROGRAM(cwnd_event), struct sock *sk, int event)
{
	on_event(sk, event, false);
}

/* See hostSuffix in package loader. */
SEC("struct_ops/cwnd_event_host")
void CONTROL_PROG(PROGRAM(cwnd_event_host), struct sock *sk, int event)
{
	on_event(sk, event, true);
}

SEC("struct_ops/min_tso_segs")
u32 CONTROL_PROG(PROGRAM(min_tso_segs), struct sock *sk)
{
	u32 packets;

	if (in_window(sk))
		return DEFAULT_TSO_SEGS;
	tcp_restore_window(sk);
	if (params.ask_acks && ((struct tcp_sock *)sk)->snd_cwnd == 1)
		tcp_ask_ack(sk);
	if (tcp_unpaced(sk))
		return DEFAULT_TSO_SEGS;
	packets = tcp_burst_packets(sk, params.burst_ns);
	if (!packets)
		return DEFAULT_TSO_SEGS;
	tcp_limit_window_burst(sk, packets);
	return packets < DEFAULT_TSO_SEGS ? 1 : DEFAULT_TSO_SEGS;
}

#define CONTROL_FLAGS TCP_CONG_NEEDS_ECN
#define CONTROL_ECHOES
#define CONTROL_BURSTS
#include "include/operations.h"
#include "include/first_rtt.h"
