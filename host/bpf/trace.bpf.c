// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * trace: what happens to one flow, seen from the kernel of its sender. At each segment that comes
 * back it sends the flow's entry to user space, if one of its counters has changed. It costs
 * nothing while it is not attached.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define VALUE_MAX 512

/* Set by the loader: the flow, the size of its entry, and whether every ACK is reported. */
const volatile struct flow_key flow_traced = {};
const volatile u32 value_size = 0;
const volatile bool every_ack = false;

/* The control's flow table. The entries of every control begin like this. */
struct flow_entry {
	FLOW_HEAD;
};

FLOW_TABLE(struct flow_entry);

struct tcp_sock___out {
	u32 packets_out;
} __attribute__((preserve_access_index));

struct trace_event {
	u64 t_ns; /* the kernel's clock */
	u32 cwnd;
	u32 packets_out;
	u8 value[VALUE_MAX]; /* the flow's entry */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 19);
} events SEC(".maps");

const struct trace_event *unused_trace_event __attribute__((unused)); /* keeps the type for Go */

u64 events_lost = 0;

/* The sum of counters at the latest report. */
static u64 reported_counters = 0;

static __always_inline bool traced(const struct flow_key *k)
{
	const u32 *a = (const u32 *)k;
	const volatile u32 *b = (const volatile u32 *)&flow_traced;

	for (u32 i = 0; i < sizeof(*k) / sizeof(*a); i++)
		if (a[i] != b[i])
			return false;
	return true;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(trace, struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	u32 size = value_size;
	struct flow_entry *flow;
	struct trace_event *e;
	struct flow_key key;
	u64 counters;

	if (!tp)
		return 0;
	tcp_flow_key(sk, &key);
	if (!traced(&key))
		return 0;
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return 0;
	counters = flow->sender.cnp_decrease + flow->sender.cnp_increase + flow->sender.losses +
		   flow->sender.marked_packets + flow->sender.retransmissions;
	if (counters == reported_counters && !every_ack)
		return 0;
	reported_counters = counters;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&events_lost, 1);
		return 0;
	}
	e->t_ns = bpf_ktime_get_ns();
	e->cwnd = tp->snd_cwnd;
	e->packets_out = ((struct tcp_sock___out *)tp)->packets_out;
	if (size > VALUE_MAX)
		size = VALUE_MAX;
	bpf_probe_read_kernel(e->value, size, flow);
	bpf_ringbuf_submit(e, 0);
	return 0;
}
