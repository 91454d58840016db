// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * syn: makes SYNs not ECN-capable, at tcx egress of a client, as RFC 3168, sec. 6.1.1, demands.
 *
 * Linux sends the SYN of a socket whose congestion control needs ECN as ECT(0). A server whose
 * control does not need ECN then refuses it, whatever its net.ipv4.tcp_ecn
 * (tcp_ecn_create_request()). A plain SYN gets ECN if tcp_ecn is 1 or 2.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "syn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

SEC("tc")
int syn(struct __sk_buff *skb)
{
	struct transport t;
	struct network n;

	if (!network_parse(skb, &n) || (tcp_flags(skb, &n, &t) & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return TCX_NEXT;
	network_set_tos(skb, &n, t.tos, t.tos & ~ECN_MASK);
	return TCX_NEXT;
}
