/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How congestion controls read and set a TCP socket. */
#ifndef PCN_TCP_H
#define PCN_TCP_H

#include "clock.h"
#include "flow.h"
#include "sender.h"

#define TCP_CONG_NON_RESTRICTED 1 /* a child namespace may select it by sysctl */
#define TCP_CONG_NEEDS_ECN	2

#define TCP_ESTABLISHED 1

#define TCP_CA_Recovery 3
#define TCP_CA_Loss	4

#define TCP_ECN_OK	   1
#define TCP_ECN_QUEUE_CWR  2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_ACCECN	   16 /* the connection negotiated AccECN */

/* Events of tcp_congestion_ops.cwnd_event. */
#define CA_EVENT_CWND_RESTART 1
#define CA_EVENT_LOSS	      3
#define CA_EVENT_ECN_NO_CE    4
#define CA_EVENT_ECN_IS_CE    5

#define ICSK_ACK_SCHED 1
#define ICSK_ACK_NOW   16

#define TCP_FIRST_WINDOW 10

#define DEFAULT_TSO_SEGS 2 /* net.ipv4.tcp_min_tso_segs */

#define SK_PACING_NONE	 0
#define SK_PACING_NEEDED 1

#define ETHERNET_LEN 14

/* A window that never binds. The send buffer or the rate does. */
#define CWND_UNBOUND (1U << 20)

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 flags;
	char name[16];
} __attribute__((preserve_access_index));

/* Addresses of an IPv6 socket. Kernels without IPv6 lack them. */
struct in6_addr___words {
	union {
		__be32 u6_addr32[4];
	} in6_u;
} __attribute__((preserve_access_index));

struct sock_common___ipv6 {
	struct in6_addr___words skc_v6_daddr, skc_v6_rcv_saddr;
} __attribute__((preserve_access_index));

/* The socket must be established. */
static __always_inline void tcp_flow_key(struct sock *sk, struct flow_key *k)
{
	struct sock_common___ipv6 *v6 = (void *)&sk->__sk_common;
	struct net *net = netns_keys ? sk->__sk_common.skc_net.net : NULL;

	flow_key_ipv4(k, sk->__sk_common.skc_rcv_saddr, sk->__sk_common.skc_daddr,
		      bpf_htons(sk->__sk_common.skc_num), sk->__sk_common.skc_dport, IPPROTO_TCP);
	k->netns = net ? net->net_cookie : 0;
	if (sk->__sk_common.skc_family != AF_INET6 || !bpf_core_field_exists(v6->skc_v6_daddr))
		return;
	for (u32 i = 0; i < 4; i++) { /* an IPv4 address is mapped here too */
		k->saddr[i] = v6->skc_v6_rcv_saddr.in6_u.u6_addr32[i];
		k->daddr[i] = v6->skc_v6_daddr.in6_u.u6_addr32[i];
	}
}

/* The window of a control whose bursts are limited, while snd_cwnd lets one burst leave. */
struct tcp_burst_window {
	u32 packets;
	u32 shown; /* what snd_cwnd was set to; 0: it is the window itself */
	u32 calm;  /* no packet was marked for long, so the flow is not paced */
};

/* What a receiver keeps of packets without a mark that came in a row: echo_unmarked(). */
struct tcp_unmarked {
	u32 owner; /* the socket's, if the latest packet had no mark */
	u32 seq;   /* the sequence number expected after it */
};

/*
 * What a control keeps in the private part of the socket, which is there when the flow table has no
 * room. All fields are words: the namespace's cookie may be anywhere.
 *
 * The key is kept because release is called when the socket has lost its port already. owner tells
 * whether an entry is of this socket: after the peer reset a connection, another socket may have
 * the same addresses and ports while this one is not closed yet. 0: the flow was never established.
 */
struct sock_state {
	union {
		u8 cubic[60]; /* struct bictcp, while the flow has a plain window */
		struct {      /* otherwise, of a control with a window */
			struct tcp_burst_window kept;
			struct tcp_unmarked unmarked;
		};
	};
	u16 window;  /* enum doubt_reason: why the flow has a window; 0: it has none */
	u16 counted; /* for which reason it was counted last */
	u32 saddr[4];
	u32 daddr[4];
	u16 sport, dport;
	u32 owner;
};

_Static_assert(sizeof(struct sock_state) <=
		       sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv),
	       "state too long");

static __always_inline struct sock_state *tcp_state(struct sock *sk)
{
	return (struct sock_state *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

/* init was called. The ACK that ends a client's handshake is handled before that. */
static __always_inline bool tcp_started(struct sock *sk)
{
	return tcp_state(sk)->owner;
}

/*
 * init is over, and was not called: the kernel left it out (KNOWN_ISSUES.md). The flow would keep
 * its first window for life, so it starts now.
 */
static __always_inline bool tcp_starts_late(struct sock *sk)
{
	return !tcp_started(sk) && sk->__sk_common.skc_state == TCP_ESTABLISHED;
}

/* No other socket with this key was established at the same time. */
static __always_inline void tcp_keep_key(struct sock *sk, const struct flow_key *k)
{
	struct sock_state *s = tcp_state(sk);

	for (u32 i = 0; i < 4; i++) {
		s->saddr[i] = k->saddr[i];
		s->daddr[i] = k->daddr[i];
	}
	s->sport = k->sport;
	s->dport = k->dport;
	s->owner = bpf_ktime_get_ns() | 1;
}

static __always_inline void tcp_kept_key(struct sock *sk, struct flow_key *k)
{
	const struct sock_state *s = tcp_state(sk);
	struct net *net = netns_keys ? sk->__sk_common.skc_net.net : NULL;

	*k = (struct flow_key){
		.sport = s->sport,
		.dport = s->dport,
		.protocol = IPPROTO_TCP,
		.netns = net ? net->net_cookie : 0,
	};
	for (u32 i = 0; i < 4; i++) {
		k->saddr[i] = s->saddr[i];
		k->daddr[i] = s->daddr[i];
	}
}

/*
 * OWN_ENTRY: flow_of(sk), the flow's entry in the control's table, or NULL; and flow_end(sk), which
 * removes it. Both leave an entry alone that another socket made under the same key.
 */
#define OWN_ENTRY(type_)                                                                           \
	static __always_inline type_ *flow_of(struct sock *sk)                                     \
	{                                                                                          \
		u32 owner = tcp_state(sk)->owner;                                                  \
		struct flow_key key;                                                               \
		type_ *flow;                                                                       \
                                                                                                   \
		if (!owner)                                                                        \
			return NULL;                                                               \
		tcp_kept_key(sk, &key);                                                            \
		flow = bpf_map_lookup_elem(&flows, &key);                                          \
		return flow && flow->owner == owner ? flow : NULL;                                 \
	}                                                                                          \
                                                                                                   \
	static __always_inline void flow_end(struct sock *sk)                                      \
	{                                                                                          \
		struct flow_key key;                                                               \
                                                                                                   \
		if (!flow_of(sk))                                                                  \
			return;                                                                    \
		tcp_kept_key(sk, &key);                                                            \
		bpf_map_delete_elem(&flows, &key);                                                 \
	}

static __always_inline u32 tcp_srtt_us(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->srtt_us >> 3;
}

static __always_inline u32 tcp_retransmissions(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->total_retrans;
}

static __always_inline u32 tcp_delivered(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->delivered;
}

static __always_inline u32 tcp_delivered_ce(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->delivered_ce;
}

static __always_inline bool tcp_ecn_negotiated(struct sock *sk)
{
	return ((struct tcp_sock *)sk)->ecn_flags & (TCP_ECN_OK | TCP_ECN_ACCECN);
}

/*
 * Linux acknowledges a packet with CWR at once, since the sender's window may be one packet
 * (tcp_ecn_accept_cwr). With AccECN the flag is part of a counter.
 */
static __always_inline void tcp_ask_ack(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u8 flags = tp->ecn_flags;

	if ((flags & TCP_ECN_OK) && !(flags & TCP_ECN_ACCECN))
		tp->ecn_flags = flags | TCP_ECN_QUEUE_CWR;
}

/* TCP's own timer paces, unless an fq qdisc does. */
static __always_inline void tcp_start_pacing(struct sock *sk)
{
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* TCP's own timer paces, and sends one burst at a time. With fq it hands on all that it may. */
static __always_inline bool tcp_paces(struct sock *sk)
{
	return sk->sk_pacing_status == SK_PACING_NEEDED;
}

#ifdef __wasm__
/* The simulator has IPv4 only. */
static __always_inline u32 tcp_ip_header_len(struct sock *sk)
{
	return 20;
}
#else
static __always_inline u32 tcp_ip_header_len(struct sock *sk)
{
	return ((struct inet_connection_sock *)sk)->icsk_af_ops->net_header_len;
}
#endif

/* The length of a full frame of the connection. */
static __always_inline u32 tcp_frame_bytes(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->mss_cache + tp->tcp_header_len + tcp_ip_header_len(sk) + ETHERNET_LEN;
}

#ifndef CONTROL_ALLOWS
#define CONTROL_ALLOWS(rate_or_window_) /* only users' own controls are watched */
#endif

/*
 * Frames leave at rate_bps. TCP's pacing counts payload only, and leaves it to each control to
 * respect SO_MAX_PACING_RATE.
 */
static __always_inline void tcp_set_rate(struct sock *sk, u64 rate_bps)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 payload = tp->mss_cache, frame = tcp_frame_bytes(sk);
	/* 800 Gbit/s is 10^11 bytes/s, times 9000: far from 2^64 */
	u64 pace = to_kernel_bytes_per_s(rate_bps) * payload / (frame ?: 1);

	if (pace > sk->sk_max_pacing_rate)
		pace = sk->sk_max_pacing_rate;
	CONTROL_ALLOWS(rate_bps);
	sk->sk_pacing_rate = pace ?: 1;
	tp->snd_cwnd = CWND_UNBOUND;
}

/* Packets that left and, as far as is known, have neither arrived nor been lost. */
static __always_inline u32 tcp_in_flight(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/*
 * Before the first packet after a pause: all was acknowledged, the application had nothing to send,
 * and pacing would have let it send since pause_ns.
 */
static __always_inline bool tcp_paused(struct sock *sk, u64 pause_ns)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	return !tp->packets_out && tp->app_limited &&
	       (s64)(bpf_ktime_get_ns() - tp->tcp_wstamp_ns) >= (s64)pause_ns;
}

/*
 * Limits the packets that leave back to back, from min_tso_segs, which TCP calls each time before
 * it sends. On paths of short round trips TCP makes bursts of 64 KB at any rate (tcp_tso_rtt_log),
 * and a control may not write their limits. But TCP never sends more at once than the window
 * allows, so the window that never binds is set to what is in flight and one burst.
 */
static __always_inline void tcp_limit_burst(struct sock *sk, u32 packets)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 in_flight = tcp_in_flight(sk);

	if (packets < 1)
		packets = 1;
	/* TCP sends at most half of the window at once */
	tp->snd_cwnd = packets + (in_flight > packets ? in_flight : packets);
}

/* Packets that leave in a time at the rate at which the socket is paced. */
static __always_inline u32 tcp_packets_in(struct sock *sk, u64 t_ns)
{
	u64 payload = ((struct tcp_sock *)sk)->mss_cache ?: 1, rate = sk->sk_pacing_rate;

	if (rate > 100000000000) /* 800 Gbit/s: ~0 is no limit */
		rate = 100000000000;
	/* 10^11 bytes/s times 10 ms, in us and ms: 10^12 */
	return (rate / 1000 * (t_ns / 1000) / 1000) / payload;
}

/*
 * As tcp_limit_burst(), for a control with a window, which is kept in the socket meanwhile. The
 * flow must not have a plain window.
 */
static __always_inline void tcp_limit_window_burst(struct sock *sk, u32 packets)
{
	struct tcp_burst_window *kept = &tcp_state(sk)->kept;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 cwnd = tp->snd_cwnd, shown;

	if (!kept->shown || cwnd != kept->shown)
		kept->packets = cwnd; /* the core or the control has set it */
	tcp_limit_burst(sk, packets);
	shown = tp->snd_cwnd;
	if (shown >= kept->packets) {
		tp->snd_cwnd = kept->packets;
		shown = 0;
	}
	kept->shown = shown;
}

/* Makes snd_cwnd the window again. */
static __always_inline void tcp_restore_window(struct sock *sk)
{
	struct tcp_burst_window *kept = &tcp_state(sk)->kept;
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (kept->shown && tp->snd_cwnd == kept->shown)
		tp->snd_cwnd = kept->packets;
	kept->shown = 0;
}

/*
 * Two windows a round trip, in bytes/s: so pacing spreads a window, and does not limit it, also
 * where its timers are late.
 */
static __always_inline u64 tcp_window_pace(struct sock *sk)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (!tp->srtt_us)
		return ~0UL;
	/* srtt_us is 8 times the round trip; 2^20 packets of 9000 bytes * 16 * 10^6 < 2^58 */
	return (u64)tp->snd_cwnd * tp->mss_cache * 16000000 / tp->srtt_us ?: 1;
}

/*
 * Whether a flow with a window is paced. Pacing spreads bursts, which matters where queues mark. A
 * flow that no queue has marked for long would only pay for the timers, up to one a packet.
 */
static __always_inline void tcp_set_calm(struct sock *sk, bool calm)
{
	tcp_state(sk)->kept.calm = calm;
}

static __always_inline bool tcp_calm(struct sock *sk)
{
	return tcp_state(sk)->kept.calm;
}

/* 64 KB, the most that leaves at once, in a microsecond. No timer is as fast. */
#define PACE_MOST (65536ULL * 1000000)

/*
 * Whether the bursts of a flow with a window are TCP's own: it is calm, or its window is far more
 * than the path holds. Then pacing spreads nothing, each timer is late, and costs more than the
 * packets that it lets leave.
 */
static __always_inline bool tcp_unpaced(struct sock *sk)
{
	if (sk->sk_pacing_rate < PACE_MOST)
		return tcp_calm(sk);
	sk->sk_pacing_rate = sk->sk_max_pacing_rate;
	return true;
}

/*
 * Packets of a burst that lasts burst_ns at the rate of the window, which is half of the pace; 0:
 * bursts are not limited.
 */
static __always_inline u32 tcp_burst_packets(struct sock *sk, u64 burst_ns)
{
	if (!burst_ns || !tcp_paces(sk))
		return 0;
	return tcp_packets_in(sk, to_kernel_ns(burst_ns) / 2) ?: 1;
}

/* Keeps the key in the socket, and starts the statistics. */
static __always_inline void tcp_establish(struct sock *sk, struct sender *s, struct flow_key *key)
{
	s->ecn = tcp_ecn_negotiated(sk);
	s->segments = ((struct tcp_sock *)sk)->data_segs_out;
	s->payload_bytes = ((struct tcp_sock *)sk)->bytes_sent;
	tcp_flow_key(sk, key);
	tcp_keep_key(sk, key);
}

/* Updates the flow's statistics at an ACK. */
static __always_inline void tcp_account(struct sock *sk, struct sender *s)
{
	const struct tcp_sock *tp = (struct tcp_sock *)sk;
	u32 segments = tp->data_segs_out, header = tcp_frame_bytes(sk) - tp->mss_cache;
	u64 payload_bytes = tp->bytes_sent;

	s->sent_bytes += payload_bytes - s->payload_bytes + (u64)(segments - s->segments) * header;
	s->segments = segments;
	s->payload_bytes = payload_bytes;
	/* on every ACK: a control that a sockops program chose started before the handshake */
	s->ecn = tcp_ecn_negotiated(sk);
	s->packets = tcp_delivered(sk);
	s->marked_packets = tcp_delivered_ce(sk);
	s->srtt_us = tcp_srtt_us(sk);
	s->retransmissions = tcp_retransmissions(sk);
}

/* What an ACK reports to a rate-based algorithm. */
struct ack_event {
	u64 now_ns;
	u64 rtt_ns;	 /* 0: not measured */
	u32 acked_bytes; /* of frames */
	u32 frame_bytes;
	bool app_limited; /* what was acknowledged was sent when there was nothing more to send */
};

static __always_inline void tcp_ack_event(struct sock *sk, const struct rate_sample *rs,
					  struct ack_event *e)
{
	e->now_ns = now_ns();
	e->rtt_ns = rs->rtt_us > 0 ? (u64)rs->rtt_us * 1000 >> dilation_shift : 0;
	e->frame_bytes = tcp_frame_bytes(sk);
	e->acked_bytes = rs->acked_sacked * e->frame_bytes;
	e->app_limited = rs->is_app_limited;
}

#endif
