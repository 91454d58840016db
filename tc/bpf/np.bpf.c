// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * np: PCN's notification point (Fig. 8), at the receiver.
 *
 * np_ingress counts each TCP flow's packets and marks. The first packet after T closes the window, and sends the CNP.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/clock.h"
#include "include/notify.h"
#include "algo/pcn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader. */
const volatile struct pcn_np_params np_params = {.t_ns = 50000, .congested_permille = 950};
/* t_jitter_ns: each window's T is drawn from np_params.t_ns +- this; less than T. */
const volatile u64 t_jitter_ns = 0;

/* Flows seen at this receiver; the least recently used goes when it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow_key);
	__type(value, struct pcn_np);
} np_flows SEC(".maps");

static __always_inline struct pcn_np *flow_of(const struct packet *p)
{
	struct pcn_np fresh = {}, *np;
	struct flow_key key;

	np_flow_key(p, &key);
	np = bpf_map_lookup_elem(&np_flows, &key);
	if (np)
		return np;
	bpf_map_update_elem(&np_flows, &key, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&np_flows, &key);
}

/*
 * jitter_ns: what this window's T differs by, the same for each of its packets. Windows of exactly T keep their
 * phase to each other and to the rate cycles they cause, and favour the same flow for milliseconds: the phase
 * effects of Floyd and Jacobson (1991). The paper does not speak of jitter.
 */
static __always_inline s64 jitter_ns(const struct pcn_np *np)
{
	u32 h = (u32)np->start_ns * 2654435761U; /* Knuth's multiplicative hash */

	return (s64)((u64)h * (2 * t_jitter_ns) >> 32) - (s64)t_jitter_ns;
}

SEC("tc")
int np_ingress(struct __sk_buff *skb)
{
	struct pcn_np_params params = *(const struct pcn_np_params *)loaded(np_params);
	u64 t_ns = arrival_ns(skb);
	struct notification say;
	struct pcn_np_cnp cnp;
	struct pcn_np *np;
	struct packet p;

	if (!np_takes(skb, &p))
		return TCX_NEXT;
	np = flow_of(&p);
	if (!np) {
		count(NP_NO_FLOW);
		return TCX_NEXT;
	}
	params.t_ns += jitter_ns(np);
	cnp = pcn_np_packet(np, &params, t_ns, skb->len, (p.ip->tos & ECN_MASK) == ECN_CE);
	if (!cnp.send)
		return TCX_NEXT;
	say = (struct notification){.rec_rate = cnp.rec_rate, .ce = cnp.ce};
	notify(skb, &p, &say);
	return TCX_NEXT;
}
