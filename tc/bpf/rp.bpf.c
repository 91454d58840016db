// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp: PCN's reaction point, at tcx ingress of the sender. Takes CNPs out of the stream, checks them, and runs
 * Algorithm 1 on the flow's entry; the congestion control paces by it from the next ACK on.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/cnp.h"
#include "include/packet.h"
#include "include/rp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

enum rp_count {
	RP_DECREASE, /* CNPs obeyed */
	RP_INCREASE,
	RP_MALFORMED, /* a CNP of ours by its header, but not in its length or fixed fields */
	RP_BAD_ICRC,
	RP_NO_FLOW, /* no live flow of this host */
	RP_COUNTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RP_COUNTS);
	__type(key, u32);
	__type(value, u64);
} rp_counts SEC(".maps");

static __always_inline void count(u32 what)
{
	u64 *n = bpf_map_lookup_elem(&rp_counts, &what);

	if (n)
		(*n)++;
}

/*
 * well_formed: every field in which the sender has no choice. Not DSCP and TTL, which routers change, and not the
 * rest of what the ICRC covers.
 */
static __always_inline bool well_formed(const struct cnp_frame *f, u32 len)
{
	u8 ecn = f->ip.tos & ECN_MASK;
	const u8 *qp = f->bth.dest_qp;

	return len == CNP_FRAME_LEN && (!ecn || ecn == ECN_CE) && f->ip.tot_len == bpf_htons(CNP_IP_LEN) && !f->ip.id &&
	       f->ip.frag_off == bpf_htons(CNP_FRAG_OFF) && !ip_checksum(&f->ip) &&
	       f->udp.source == cnp_udp_source(f->pcn.flow_sport, f->pcn.flow_dport) &&
	       f->udp.len == bpf_htons(CNP_UDP_LEN) && !f->udp.check && !f->bth.flags && f->bth.pkey == CNP_PKEY &&
	       f->bth.becn == CNP_BECN && !(qp[0] | qp[1] | qp[2]) && !f->bth.psn;
}

/* react: the CNP is for the flow that f's receiver is the destination of. */
static __always_inline void react(const struct cnp_frame *f)
{
	bool ce = (f->ip.tos & ECN_MASK) == ECN_CE;
	u64 rec_rate_bps = (u64)bpf_ntohl(f->pcn.rec_rate_mbps) * 1000000;
	struct flow_key key;
	struct rp_flow *flow;

	flow_key_ipv4(&key, f->ip.daddr, f->ip.saddr, f->pcn.flow_sport, f->pcn.flow_dport, IPPROTO_TCP);
	flow = bpf_map_lookup_elem(&rp_flows, &key);
	if (!flow) {
		count(RP_NO_FLOW);
		return;
	}
	pcn_rp_cnp(&flow->rp, &flow->params, ce, rec_rate_bps);
	if (ce) {
		flow->rec_rate_bps = rec_rate_bps;
		flow->cnp_decrease++;
		count(RP_DECREASE);
	} else {
		flow->cnp_increase++;
		count(RP_INCREASE);
	}
}

SEC("tc")
int rp_ingress(struct __sk_buff *skb)
{
	struct cnp_frame *f;
	struct packet p;
	struct bth *bth;

	/* some drivers leave all but the IP header in pages */
	if (skb->len == CNP_FRAME_LEN && (void *)(long)skb->data + CNP_FRAME_LEN > (void *)(long)skb->data_end)
		bpf_skb_pull_data(skb, CNP_FRAME_LEN);
	if (other_vlan(skb) || !packet_parse(skb, &p, sizeof(struct udphdr) + sizeof(*bth)))
		return TCX_NEXT;
	bth = p.l4 + sizeof(struct udphdr);
	if (p.ip->protocol != IPPROTO_UDP || ((struct udphdr *)p.l4)->dest != bpf_htons(ROCE_PORT) ||
	    bth->opcode != CNP_OPCODE)
		return TCX_NEXT;
	f = (void *)p.eth;
	if ((void *)(f + 1) > p.end) {
		count(RP_MALFORMED);
		return TCX_DROP;
	}
	if (!f->pcn.flow_sport)
		return TCX_NEXT; /* somebody else's RoCE: their reserved bytes are zero */
	if (!well_formed(f, skb->len)) {
		count(RP_MALFORMED);
		return TCX_DROP;
	}
	if (cnp_icrc(f) != f->icrc) {
		count(RP_BAD_ICRC);
		return TCX_DROP;
	}
	react(f);
	return TCX_DROP;
}
