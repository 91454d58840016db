// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * arrive: the first tcx ingress program of a lab host. It applies the mark that the last switch
 * port decided on. It counts what arrives by flow, in total and in sample bins of ideal time. It
 * absorbs the datagrams of uncontrolled bursts, which nobody reads. It answers packets that QCN
 * sampled on the last link with a CNM.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/clock.h"
#include "include/events.h"
#include "include/flow.h"
#include "include/host_arrival.h"
#include "include/packet.h"
#include "include/reflect.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Length of a bin of the sampled series; 0: no series. Set by the loader, as for the qdisc. */
const volatile u64 sample_ns = 0;
/* Datagrams to this port are counted and dropped. */
const volatile u16 sink_port = 9;

struct arrival {
	u32 id;
	u32 bin_packets, bin_marked_packets;
	u32 pad;
	u64 bin;
	u64 bin_bytes;		    /* of frames, from the Ethernet header on */
	u64 packets, payload_bytes; /* payload: of TCP or UDP */
	u64 marked_packets;
	u64 first_ns, last_ns; /* ideal times */
};

/* Flows to count. The lab adds them before they start. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct arrival);
} arrivals SEC(".maps");

/* Where they are in it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct flow_key);
	__type(value, u32);
} arrival_index SEC(".maps");

/* How many flows have been added. Set by user space. */
u32 tracked = 0;

#define NOT_TRACKED (~0U)

/* What was found in it last, in slots by a cheap hash: to look it up costs 260 instructions. */
struct recent {
	__be32 saddr, daddr;
	u32 ports;
	u32 protocol; /* 0: nothing yet */
	u32 index;
	u32 tracked; /* then: flows that were added since are not known here */
};

#define RECENT_SHIFT 10

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 << RECENT_SHIFT);
	__type(key, u32);
	__type(value, struct recent);
} recents SEC(".maps");

/* Keeps the type in BTF, for bpf2go. */
const struct event_flow *unused_event_flow __attribute__((unused));

u64 flow_events_lost = 0;

static __always_inline void sample(struct arrival *a, u64 t_ns)
{
	struct event_flow e = {
		.kind = EVENT_FLOW,
		.flow = a->id,
		.bin = a->bin,
		.received_bytes = a->bin_bytes,
		.received_packets = a->bin_packets,
		.marked_packets = a->bin_marked_packets,
	};
	u64 bin;

	if (!sample_ns)
		return;
	bin = t_ns / sample_ns;
	if (bin <= a->bin)
		return;
	if (a->bin_packets && bpf_ringbuf_output(&events, &e, sizeof(e), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&flow_events_lost, 1);
	a->bin = bin;
	a->bin_bytes = 0;
	a->bin_packets = 0;
	a->bin_marked_packets = 0;
}

/* What the packet carries for the application. */
static __always_inline u32 payload_bytes(const struct packet *p)
{
	u32 len = bpf_ntohs(p->ip->tot_len), header = sizeof(struct iphdr) + sizeof(struct udphdr);
	struct tcphdr *tcp = p->l4;

	if (p->ip->protocol == IPPROTO_TCP && (void *)(tcp + 1) <= p->end)
		header = sizeof(struct iphdr) + tcp->doff * 4;
	return len > header ? len - header : 0;
}

static __always_inline void count(struct arrival *a, u64 t_ns, u32 len, u32 payload, bool ce)
{
	sample(a, t_ns);
	a->bin_bytes += len;
	a->bin_packets++;
	a->bin_marked_packets += ce;
	a->packets++;
	a->payload_bytes += payload;
	a->marked_packets += ce;
	if (!a->first_ns)
		a->first_ns = t_ns;
	a->last_ns = t_ns;
}

/* note: what came last, for the host's port. */
static __always_inline void note(struct __sk_buff *skb, const struct packet *p, u64 t_ns)
{
	struct host_arrival *last;
	struct tcphdr *tcp = p->l4;
	u32 id = port_id(skb);

	if (p->ip->protocol != IPPROTO_TCP || (void *)(tcp + 1) > p->end)
		return;
	last = bpf_map_lookup_elem(&host_arrivals, &id);
	if (!last)
		return;
	last->t_ns = t_ns;
	last->seq_end = bpf_ntohl(tcp->seq) + payload_bytes(p);
	last->sport = tcp->source;
	last->dport = bpf_ntohs(tcp->dest);
}

/* find_arrival: look a flow up, and remember it. Not inline: packets come in runs of a flow. */
static __noinline struct arrival *find_arrival(struct recent *r, const struct flow_key *key)
{
	u32 *index = bpf_map_lookup_elem(&arrival_index, key);

	r->saddr = key->saddr[3];
	r->daddr = key->daddr[3];
	r->ports = (u32)key->dport << 16 | key->sport;
	r->protocol = key->protocol;
	r->index = index ? *index : NOT_TRACKED;
	r->tracked = tracked;
	return bpf_map_lookup_elem(&arrivals, &r->index);
}

/* arrival_of: the count of the packet's flow; NULL: it is not tracked. */
static __always_inline struct arrival *arrival_of(const struct packet *p, u32 ports)
{
	const u32 golden = 0x9e3779b1;
	u32 slot = ((ports ^ p->ip->daddr) * golden ^ p->ip->saddr) * golden >> (32 - RECENT_SHIFT);
	struct recent *r = bpf_map_lookup_elem(&recents, &slot);
	struct flow_key key;

	if (!r)
		return NULL;
	if (r->ports == ports && r->saddr == p->ip->saddr && r->daddr == p->ip->daddr &&
	    r->protocol == p->ip->protocol && r->tracked == tracked)
		return bpf_map_lookup_elem(&arrivals, &r->index);
	flow_key_ipv4(&key, p->ip->saddr, p->ip->daddr, ports & 0xffff, ports >> 16,
		      p->ip->protocol);
	return find_arrival(r, &key);
}

SEC("tc")
int arrive(struct __sk_buff *skb)
{
	bool ours = carried(skb), ce = ours && (skb->cb[CARRY_WORD] & CARRY_CE);
	bool ue = ours && (skb->cb[CARRY_WORD] & CARRY_UE);
	u64 t_ns = ours ? (u64)skb->cb[CARRY_HIGH] << 32 | skb->cb[CARRY_LOW] : now_ns();
	struct arrival *a;
	struct packet p;
	u32 ports;
	bool to_sink;
	u8 tos;

	if (!packet_parse(skb, &p, 4)) {
		if (ce)
			bpf_skb_ecn_set_ce(skb); /* of IPv6, or nothing */
		return TCX_NEXT;
	}
	ports = *(u32 *)p.l4; /* TCP and UDP alike: source, destination */
	to_sink = p.ip->protocol == IPPROTO_UDP && ports >> 16 == bpf_htons(sink_port);
	tos = p.ip->tos;
	ce = ce || (tos & ECN_MASK) == ECN_CE;
	note(skb, &p, t_ns);
	a = arrival_of(&p, ports);
	if (a)
		count(a, t_ns, skb->len, payload_bytes(&p), ce);
	if (sampled_feedback(skb))
		send_cnm(skb);
	if (to_sink)
		return TCX_DROP;
	if (ce)
		bpf_skb_ecn_set_ce(skb);
	else if (ue)
		mark_ue(skb, tos);
	return TCX_NEXT;
}

/* The CNM leaves at the current time: a host's port has no lookahead. */
SEC("tc")
int cnm_egress(struct __sk_buff *skb)
{
	return finish_cnm(skb, 0);
}
