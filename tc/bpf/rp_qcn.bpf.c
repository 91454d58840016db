// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rp_qcn: QCN's reaction point (802.1Qau), at tcx ingress of the sender. Takes CNMs out of the stream, checks them,
 * finds the flow by the headers of the sampled packet that they bring back, and cuts its rate;
 * bpf/cc/qcn.bpf.c raises it again.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/hear.h"
#include "include/cnm.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Those of bpf/cc/qcn.bpf.c. Set by the loader. */
const volatile struct qcn_rp_params params = {};

FLOW_TABLE(struct qcn_flow);

/* sampled_flow: whose packet was sampled. False if it was not TCP over plain IPv4. */
static __always_inline bool sampled_flow(const struct cnm_frame *f, struct flow_key *k)
{
	struct {
		struct iphdr ip;
		__be16 source, dest;
	} h;

	__builtin_memcpy(&h, f->msdu, sizeof(h));
	if (bpf_ntohs(f->pdu.encap_msdu_len) < sizeof(h) || h.ip.version != 4 || h.ip.ihl != 5 ||
	    h.ip.protocol != IPPROTO_TCP || (h.ip.frag_off & bpf_htons(0x3fff)))
		return false;
	flow_key_ipv4(k, h.ip.saddr, h.ip.daddr, h.source, h.dest, IPPROTO_TCP);
	return true;
}

static __always_inline void react(const struct cnm_frame *f, u64 t_ns)
{
	u32 qntz_fb = bpf_ntohs(f->pdu.qntz_fb); /* well-formed: no other bits */
	struct qcn_flow *flow = NULL;
	struct flow_key key;

	if (sampled_flow(f, &key))
		flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow) {
		count(RP_NO_FLOW);
		return;
	}
	bpf_spin_lock(&flow->lock);
	qcn_rp_cnm(&flow->rp, loaded(params), t_ns, flow->sender.sent_bytes, qntz_fb);
	flow->sender.cnp_decrease++;
	bpf_spin_unlock(&flow->lock);
	count(RP_DECREASE);
}

SEC("tc")
int rp_ingress(struct __sk_buff *skb)
{
	const struct ethhdr *eth = (void *)(long)skb->data;
	struct cnm_frame f = {};
	u32 len = skb->len;

	if (other_vlan(skb) || (void *)(eth + 1) > (void *)(long)skb->data_end || eth->h_proto != bpf_htons(ETH_P_CNM))
		return TCX_NEXT;
	if (len < CNM_MIN_FRAME_LEN || len > CNM_FRAME_LEN || bpf_skb_load_bytes(skb, 0, &f, len) ||
	    !cnm_well_formed(&f, len) || !f.pdu.qntz_fb) /* no congestion point sends one without feedback */
		count(RP_MALFORMED);
	else
		react(&f, arrival_ns(skb));
	return TCX_DROP;
}
