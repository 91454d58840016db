// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * first_rtt: makes LDCP's packets of the first round trip not ECN-capable, at a sender's tcx egress. A switch with
 * WRED and ECN drops such packets when its queue is long, where it marks others.
 *
 * draft-dai-tsvwg-pfc-free-congestion-control-00, sec. 2.3 and 3: the last packet of the initial window, and the last
 * of a message, which TCP pushes or ends with, stay ECN-capable, so that one arrives and a loss is heard of without a
 * timeout.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/packet.h"
#include "include/sender.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define TCP_PSH 8

/* The control's, bpf/cc/ldcp.bpf.c. */
FLOW_TABLE(struct ldcp_flow);

SEC("tc")
int first_rtt(struct __sk_buff *skb)
{
	struct ldcp_flow *flow;
	struct flow_key key;
	struct tcphdr *tcp;
	struct packet p;
	u32 payload, end;
	u8 tos;

	if (!packet_parse(skb, &p, sizeof(*tcp)) || p.ip->protocol != IPPROTO_TCP || !(p.ip->tos & ECN_MASK))
		return TCX_NEXT;
	tcp = p.l4;
	payload = bpf_ntohs(p.ip->tot_len) - sizeof(*p.ip) - tcp->doff * 4;
	if (!payload || tcp->flags & (TCP_PSH | TCP_FIN))
		return TCX_NEXT;
	end = bpf_ntohl(tcp->seq) + payload;
	tos = p.ip->tos;
	flow_key_ipv4(&key, p.ip->saddr, p.ip->daddr, tcp->source, tcp->dest, IPPROTO_TCP);
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow || !flow->first_rtt || (s32)(end - flow->first_end) >= 0)
		return TCX_NEXT;
	set_tos(skb, tos, tos & ~ECN_MASK);
	return TCX_NEXT;
}
