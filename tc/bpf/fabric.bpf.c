// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fabric: a switch, at tcx ingress of each of its ports.
 *
 * It applies the mark that the last port decided on, and tells the egress port's qdisc the ingress
 * port and the class. It routes by destination, spreads equal-cost paths by a flow hash, and
 * redirects.
 *
 * It answers a packet that QCN sampled on its way with a CNM. A CNM finds its host by the
 * destination address: the hosts' stamp program makes it 02:00 and their IPv4 address.
 *
 * Of data from a host it sends a clone and drops the original. TCP small queues count a packet
 * until it is orphaned; a clone has no socket. So a sender sees the queue of its own host only.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/packet.h"
#include "include/reflect.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define PATHS_MAX 16

/* The addresses of hosts are host_base to host_base + hosts - 1. Set by the loader. */
const volatile u32 host_base = 0;
const volatile u32 hosts = 0;

struct fabric_port {
	u32 known; /* this id is a port: array maps have entries for all ids */
	u32 node;  /* the switch it belongs to */
	u32 clone; /* its peer is a host */
	u32 seed;  /* of the switch's flow hash: switches in a row must choose differently */
};

struct route {
	u32 paths; /* 0: no route */
	u32 ifindex[PATHS_MAX];
};

struct fabric_drops {
	u64 not_ip; /* not plain IPv4 */
	u64 no_route;
	u64 no_port;  /* the device is not one of our ports */
	u64 redirect; /* the clone could not be sent */
};

COUNTS(fabric_drops)

#define DROP(cause) drop(COUNTER(fabric_drops, cause))

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct fabric_port);
} fabric_ports SEC(".maps");

/* Key: node * hosts + host. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct route);
} routes SEC(".maps");

static __always_inline int drop(u32 cause)
{
	fabric_drops_add(cause);
	return TCX_DROP;
}

static __always_inline u32 mix(u32 h, u32 v)
{
	/* murmur3's step: every bit of v reaches every bit of the result after the final mix */
	v *= 0xcc9e2d51;
	v = (v << 15) | (v >> 17);
	v *= 0x1b873593;
	h ^= v;
	h = (h << 13) | (h >> 19);
	return h * 5 + 0xe6546b64;
}

static __always_inline u32 flow_hash(const struct packet *p, u32 seed)
{
	u32 h = mix(mix(mix(seed, p->ip->saddr), p->ip->daddr), p->ip->protocol);

	if ((p->ip->protocol == IPPROTO_TCP || p->ip->protocol == IPPROTO_UDP) &&
	    p->l4 + 4 <= p->end)
		h = mix(h, *(u32 *)p->l4); /* both ports */
	h ^= h >> 16;
	h *= 0x85ebca6b;
	h ^= h >> 13;
	h *= 0xc2b2ae35;
	return h ^ (h >> 16);
}

/* Sets h to the address of the host that the CNM is for. */
static __always_inline bool is_cnm(const struct __sk_buff *skb, u32 *h)
{
	const struct cnm_frame *f = (void *)(long)skb->data;

	if ((void *)(&f->eth + 1) > (void *)(long)skb->data_end ||
	    f->eth.h_proto != bpf_htons(ETH_P_CNM))
		return false;
	*h = (u32)f->eth.h_dest[2] << 24 | (u32)f->eth.h_dest[3] << 16 |
	     (u32)f->eth.h_dest[4] << 8 | f->eth.h_dest[5];
	return true;
}

/* How much a bare ACK weighs in TCP's account of what its socket has sent. */
#define ACK_TRUESIZE 2

/* Whether the packet's socket must not wait for it any longer. A bare ACK weighs nothing there. */
static __always_inline bool must_orphan(struct __sk_buff *skb)
{
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);

	return skb->sk && kernel_skb->truesize > ACK_TRUESIZE;
}

SEC("tc")
int fabric(struct __sk_buff *skb)
{
	u32 id = port_id(skb), class = CNM_CLASS, not_ect = 0, key, host, path = 0, out;
	struct fabric_port *f = bpf_map_lookup_elem(&fabric_ports, &id);
	bool ce = carried(skb) && (skb->cb[CARRY_WORD] & CARRY_CE);
	bool ue = carried(skb) && (skb->cb[CARRY_WORD] & CARRY_UE);
	u8 tos = 0;
	struct packet p;
	struct route *r;
	bool cnm;

	if (!f || !f->known)
		return DROP(no_port);
	cnm = is_cnm(skb, &host);
	if (!cnm) {
		if (!packet_parse(skb, &p, 0))
			return DROP(not_ip);
		host = bpf_ntohl(p.ip->daddr);
		tos = p.ip->tos;
		class = class_of(tos);
		if (!(tos & ECN_MASK))
			not_ect = MARK_NOT_ECT;
	}
	host -= host_base;
	if (host >= hosts)
		return DROP(no_route);
	key = f->node * hosts + host;
	r = bpf_map_lookup_elem(&routes, &key);
	if (!r || !r->paths)
		return DROP(no_route);
	if (r->paths > 1 && !cnm)
		path = ((u64)flow_hash(&p, f->seed) * r->paths) >> 32;
	/* else clang drops the bound that the verifier needs: paths <= PATHS_MAX */
	barrier_var(path);
	out = r->ifindex[path & (PATHS_MAX - 1)];
	if (ce)
		bpf_skb_ecn_set_ce(skb);
	if (ue)
		mark_ue(skb, tos);
	if (sampled_feedback(skb))
		send_cnm(skb);
	skb->priority = class;
	skb->mark = MARK_INGRESS | not_ect | (id & MARK_PORT_MASK);
	if (!f->clone || !must_orphan(skb))
		return bpf_redirect(out, 0);
	if (bpf_clone_redirect(skb, out, 0))
		return DROP(redirect);
	return TCX_DROP;
}

/* The CNM leaves at the ideal time at which the sample arrived. */
SEC("tc")
int cnm_egress(struct __sk_buff *skb)
{
	return finish_cnm(skb, MARK_INGRESS | (port_id(skb) & MARK_PORT_MASK));
}
