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

/* Hosts may be parted. Set by the loader. */
const volatile bool partitions = false;
/*
 * Packets may be of any IP: fragments, IPv4 with options, and IPv6, where the address of a host is
 * fd00:: and its IPv4 address.
 */
const volatile bool any_ip = false;

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
	u64 not_ip; /* neither plain IPv4, nor another IP where that is known */
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

/* The partitions that a host is within, a bit each. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} sides SEC(".maps");

/* Whether two hosts are not on the same side of each partition. */
static __always_inline bool parted(u32 from, u32 to)
{
	u64 *a = bpf_map_lookup_elem(&sides, &from), *b = bpf_map_lookup_elem(&sides, &to);

	return a && b && *a != *b;
}

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

/* The hash of a flow whose packets have both ports at l4; NULL: they have none. */
static __always_inline u32 hash_of(u32 seed, __be32 saddr, __be32 daddr, u8 protocol,
				   const void *l4, const void *end)
{
	u32 h = mix(mix(mix(seed, saddr), daddr), protocol);

	if (l4 && (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP) && l4 + 4 <= end)
		h = mix(h, *(u32 *)l4);
	h ^= h >> 16;
	h *= 0x85ebca6b;
	h ^= h >> 13;
	h *= 0xc2b2ae35;
	return h ^ (h >> 16);
}

static __always_inline u32 flow_hash(const struct packet *p, u32 seed)
{
	return hash_of(seed, p->ip->saddr, p->ip->daddr, p->ip->protocol, p->l4, p->end);
}

/* Where a packet goes that is not plain IPv4. */
struct destination {
	u32 host; /* its IPv4 address */
	u32 from; /* address of the sender, as that of the host */
	u32 hash;
	u8 tos;
};

/*
 * False if the packet is not IP to an address of a host. Only the first fragment of a datagram has
 * ports, so none goes by them: all of them take one path. Not inline: most runs have no such
 * packets.
 */
static __noinline bool find_other(struct __sk_buff *skb, struct destination *to, u32 seed)
{
	__be32 saddr, daddr;
	struct network n;

	if (!to || !network_parse(skb, &n) || n.off != sizeof(struct ethhdr))
		return false;
	if (n.v6) {
		const struct ipv6hdr *ip = n.header;

		if (ip->daddr[0] != bpf_htonl(0xfd000000) || ip->daddr[1] || ip->daddr[2])
			return false;
		saddr = ip->saddr[3];
		daddr = ip->daddr[3];
		/* the protocol of a fragment is that of an extension header: no ports */
		to->hash = hash_of(seed, saddr, daddr, ip->nexthdr, ip + 1,
				   (void *)(long)skb->data_end);
	} else {
		const struct iphdr *ip = n.header;

		saddr = ip->saddr;
		daddr = ip->daddr;
		to->hash = hash_of(seed, saddr, daddr, ip->protocol, NULL, NULL);
	}
	to->host = bpf_ntohl(daddr);
	to->from = bpf_ntohl(saddr);
	to->tos = network_tos(&n);
	return true;
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
	u32 ingress = MARK_INGRESS;
	struct fabric_port *f = bpf_map_lookup_elem(&fabric_ports, &id);
	bool ce = carried(skb) && (skb->cb[CARRY_WORD] & CARRY_CE);
	bool ue = carried(skb) && (skb->cb[CARRY_WORD] & CARRY_UE);
	u8 tos = 0;
	struct packet p;
	struct route *r;
	bool cnm, plain = true;
	struct destination to = {};

	if (!f || !f->known)
		return DROP(no_port);
	cnm = is_cnm(skb, &host);
	if (!cnm) {
		plain = packet_parse(skb, &p, 0);
		if (plain) {
			host = bpf_ntohl(p.ip->daddr);
			to.from = bpf_ntohl(p.ip->saddr);
			tos = p.ip->tos;
		} else {
			if (!any_ip || !find_other(skb, &to, f->seed))
				return DROP(not_ip);
			host = to.host;
			tos = to.tos;
		}
		class = class_of(tos);
		if (!(tos & ECN_MASK))
			not_ect = MARK_NOT_ECT;
		/* at the host's own switch: what is behind it arrives */
		if (partitions && f->clone && parted(to.from - host_base, host - host_base))
			ingress = MARK_PARTED; /* the egress port drops it, as the link's loss */
	}
	host -= host_base;
	if (host >= hosts)
		return DROP(no_route);
	key = f->node * hosts + host;
	r = bpf_map_lookup_elem(&routes, &key);
	if (!r || !r->paths)
		return DROP(no_route);
	if (r->paths > 1 && !cnm)
		path = ((u64)(plain ? flow_hash(&p, f->seed) : to.hash) * r->paths) >> 32;
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
	skb->mark = ingress | not_ect | (id & MARK_PORT_MASK);
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
