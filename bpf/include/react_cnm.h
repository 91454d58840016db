/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QCN's reaction point (802.1Qau), at tcx ingress of a sender. It takes CNMs out of the stream,
 * checks them, and hands each to the congestion control of the flow whose packet was sampled. The
 * CNM brings back the headers of that packet, which identify the flow. The file of a control
 * includes this, behind the definitions of
 *
 *	struct flow_entry	FLOW_HEAD, then the control's own state
 *	flows			the table of them, by FLOW_TABLE(struct flow_entry)
 *	control_cnm(flow, event)
 *				a CNM for the flow arrived (cnp_event.h). Runs under the flow's
 *				lock, where no helper may be called
 */
#ifndef PCN_REACT_CNM_H
#define PCN_REACT_CNM_H

#include "cnm.h"
#include "cnp_event.h"
#include "point.h"
#include "rp_counts.h"
#include "sender.h"

/* The flow whose packet was sampled. False: it was not TCP over plain IPv4. */
static __always_inline bool sampled_flow(const struct cnm_frame *f, struct flow_key *k)
{
	struct {
		struct iphdr ip;
		__be16 source, dest;
	} h;

	__builtin_memcpy(&h, f->msdu, sizeof(h));
	if (bpf_ntohs(f->pdu.encap_msdu_len) < sizeof(h) || h.ip.version != 4 || h.ip.ihl != 5 ||
	    h.ip.protocol != IPPROTO_TCP || (h.ip.frag_off & bpf_htons(FRAGMENT)))
		return false;
	flow_key_ipv4(k, h.ip.saddr, h.ip.daddr, h.source, h.dest, IPPROTO_TCP);
	return true;
}

/* Hands the CNM to the control, and keeps the flow's statistics. Under the flow's lock. */
static __always_inline void rp_apply_cnm(struct flow_entry *flow, const struct cnm_event *event)
{
	control_cnm(flow, event);
	if (!flow->sender.plain_window)
		flow->sender.send_rate_bps = control_rate(flow);
	flow->sender.cnp_decrease++;
}

#ifdef __wasm__
/* The simulator's CNMs need no checks. */
SIMULATED("simulate_cnm") void simulate_cnm(u32 qntz_fb)
{
	struct cnm_event event = {.now_ns = now_ns(), .qntz_fb = qntz_fb};

	rp_apply_cnm(simulated_flow(), &event);
}
#endif

static __always_inline void rp_react_cnm(const struct cnm_frame *f, u64 t_ns)
{
	struct cnm_event event = {
		.now_ns = t_ns,
		.qntz_fb = bpf_ntohs(
			f->pdu.qntz_fb), /* the frame is well-formed: no other bits are set */
	};
	struct flow_entry *flow = NULL;
	struct flow_key key;

	if (sampled_flow(f, &key))
		flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		rp_counts_add(RP(no_flow));
		return;
	}
	bpf_spin_lock(&flow->lock);
	rp_apply_cnm(flow, &event);
	bpf_spin_unlock(&flow->lock);
	rp_counts_add(RP(cnp_decrease));
}

SEC("tc")
int rp_ingress(struct __sk_buff *skb)
{
	const struct ethhdr *eth = (void *)(long)skb->data;
	struct cnm_frame f = {};
	u32 len = skb->len;

	if (other_vlan(skb) || (void *)(eth + 1) > (void *)(long)skb->data_end ||
	    eth->h_proto != bpf_htons(ETH_P_CNM))
		return TCX_NEXT;
	if (len < CNM_MIN_FRAME_LEN || len > CNM_FRAME_LEN || bpf_skb_load_bytes(skb, 0, &f, len) ||
	    !cnm_well_formed(&f, len) || !f.pdu.qntz_fb) /* every CNM has feedback */
		rp_counts_add(RP(malformed));
	else
		rp_react_cnm(&f, arrival_ns(skb));
	return TCX_DROP;
}

#endif
