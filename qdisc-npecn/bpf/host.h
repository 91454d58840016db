/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How late a host's TCP is. Ports keep ideal time, but hosts run by the kernel's clock: when the
 * CPU has too much to do they answer late, and the run is that of a slower network. So a host's
 * port measures how long after its cause a packet comes, in the papers' time:
 *
 *	ACK		the ideal arrival of the packet that it acknowledges
 *	data		the latest of: the time that TCP's pacing set for it; the ideal arrival
 *			of the ACK that opened a full window; the ends of the flow's and the
 *			link's packet before it
 *	first data	when the flow was to start, which user space knows: EVENT_START
 *
 * Retransmissions have no ideal time, and are left out.
 */
#ifndef NPECN_HOST_H
#define NPECN_HOST_H

#include <bpf/bpf_core_read.h>
#include "include/host_arrival.h"
#include "series.h"

extern void *bpf_rdonly_cast(const void *obj, u32 btf_id) __ksym;

/* The class of ACKs: DSCP 48. */
#define CONTROL_CLASS 6

/* Hosts are watched from then on; 0: not at all. Set by user space before the flows start. */
u64 watch_from_ns = 0;

struct data_sent {
	u64 at_ns;
	u8 full; /* with it the window was full: the next waits for an ACK */
	u8 pad[7];
};

/* What each TCP socket sent last, by its address. The loader sets how many there are. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct data_sent);
} data_sent SEC(".maps");

/* What only this needs of the kernel's structs. */
struct sk_buff___socket {
	struct sock *sk;
} __attribute__((preserve_access_index));

struct sock___protocol {
	u16 sk_protocol;
} __attribute__((preserve_access_index));

struct hrtimer {
	s64 _softexpires;
} __attribute__((preserve_access_index));

struct tcp_sock___sender {
	u32 rcv_nxt;
	u32 snd_cwnd;
	u32 packets_out;
	u32 lost_out;
	u32 retrans_out;
	struct hrtimer pacing_timer;
} __attribute__((preserve_access_index));

/* answers: what arrived last at the host is of the socket's connection. */
static __always_inline bool answers(const struct host_arrival *a, const struct sock *sk)
{
	return a && a->t_ns && a->dport == sk->__sk_common.skc_num &&
	       a->sport == sk->__sk_common.skc_dport;
}

/* tell_start: a flow sends its first data. */
static __always_inline void tell_start(const struct sock *sk, u64 now)
{
	struct event_start e = {
		.kind = EVENT_START,
		.saddr = sk->__sk_common.skc_rcv_saddr,
		.sport = sk->__sk_common.skc_num,
		.at_ns = now,
	};

	emit(&e, sizeof(e));
}

/* data_due: when the packet could have come that follows the last one. */
static __always_inline u64 data_due(const struct port *p, const struct tcp_sock___sender *tcp,
				    const struct host_arrival *a, const struct data_sent *last)
{
	u64 due_ns = p->state.link_free_ns, paced_ns;

	if (due_ns < last->at_ns)
		due_ns = last->at_ns;
	/* an older time was for an earlier packet, and is over */
	paced_ns = (u64)tcp->pacing_timer._softexpires >> dilation_shift;
	if (due_ns < paced_ns)
		due_ns = paced_ns;
	if (a && last->full && due_ns < a->t_ns)
		due_ns = a->t_ns;
	return due_ns;
}

/* watch_data: a socket's packet comes to the port, which has decided on all before it. */
static __noinline void watch_data(struct port *p, const struct sock *sk,
				  const struct host_arrival *a, u64 now)
{
	u64 key = (u64)sk;
	struct data_sent *last = bpf_map_lookup_elem(&data_sent, &key);
	const struct tcp_sock___sender *tcp =
		bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock___sender));
	/* TCP counts the packet when it has been queued */
	struct data_sent this = {.at_ns = now, .full = tcp->packets_out + 1 >= tcp->snd_cwnd};

	if (!last) {
		bpf_map_update_elem(&data_sent, &key, &this, BPF_ANY);
		tell_start(sk, now);
		return;
	}
	if (!tcp->lost_out && !tcp->retrans_out && !p->state.backlogged)
		count_late(&p->counters.late_data, data_due(p, tcp, a, last), now);
	*last = this;
}

/* watch_host: a packet that the host made comes to its port, before it is queued. */
static __always_inline void watch_host(struct port *p, u32 id, u32 c, struct sk_buff *skb, u64 now)
{
	const struct sock *sk = ((struct sk_buff___socket *)skb)->sk;
	const struct host_arrival *a;

	if (!watch_from_ns || now < watch_from_ns || !sk ||
	    ((const struct sock___protocol *)sk)->sk_protocol != IPPROTO_TCP)
		return;
	a = bpf_map_lookup_elem(&host_arrivals, &id);
	if (!answers(a, sk))
		a = NULL;
	if (c != CONTROL_CLASS) {
		watch_data(p, sk, a, now);
	} else if (a) {
		const struct tcp_sock___sender *tcp =
			bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock___sender));

		if (tcp->rcv_nxt == a->seq_end)
			count_late(&p->counters.late_acks, a->t_ns, now);
	}
}

#endif
