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
	const struct iphdr *ip = (const void *)f->msdu;
	const struct tcphdr *tcp = (const void *)(ip + 1);

	if (bpf_ntohs(f->pdu.encap_msdu_len) < sizeof(*ip) + 4 || ip->version != 4 || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_TCP)
		return false;
	flow_key_ipv4(k, ip->saddr, ip->daddr, tcp->source, tcp->dest, IPPROTO_TCP);
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
	const struct cnm_frame *f;

	linear(skb, CNM_FRAME_LEN);
	f = (void *)(long)skb->data;
	if ((void *)(&f->eth + 1) > (void *)(long)skb->data_end || f->eth.h_proto != bpf_htons(ETH_P_CNM))
		return TCX_NEXT;
	if ((void *)(f + 1) > (void *)(long)skb->data_end || !cnm_well_formed(f, skb->len))
		count(RP_MALFORMED);
	else
		react(f, arrival_ns(skb));
	return TCX_DROP;
}
