/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * first_rtt: makes packets of a flow's first round trip not ECN-capable, at tcx egress of a sender.
 * A switch with WRED and ECN drops such packets when its queue is long, where it marks others.
 *
 * draft-dai-tsvwg-pfc-free-congestion-control-00, sec. 2.3 and 3: the last packet of the initial
 * window stays ECN-capable, and so does the last of a message, which has PSH or FIN. So one of them
 * arrives, and a loss is detected without a timeout.
 *
 * A control includes this behind its flow table, whose entries have two members:
 *	first_rtt	the first round trip goes on
 *	first_end	TCP's sequence number behind the initial window
 */
#ifndef PCN_FIRST_RTT_H
#define PCN_FIRST_RTT_H

#include "packet.h"

#define TCP_PSH 8

SEC("tc")
int first_rtt(struct __sk_buff *skb)
{
	struct flow_entry *flow;
	struct transport t;
	struct network n;

	if (!network_parse(skb, &n) || transport_parse(skb, &n, &t) != TRANSPORT_OK ||
	    t.key.protocol != IPPROTO_TCP || !(t.tos & ECN_MASK) || !t.payload_len ||
	    t.flags & (TCP_PSH | TCP_FIN))
		return TCX_NEXT;
	flow = bpf_map_lookup_elem(&flows, &t.key);
	if (!flow || !flow->first_rtt || (s32)(t.seq + t.payload_len - flow->first_end) >= 0)
		return TCX_NEXT;
	network_set_tos(skb, &n, t.tos, t.tos & ~ECN_MASK);
	return TCX_NEXT;
}

#endif
