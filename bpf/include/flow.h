/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The key of a flow, in every map. The source is the sender of data. */
#ifndef PCN_FLOW_H
#define PCN_FLOW_H

#define AF_INET6 10

/*
 * Keys hold the network namespace: on one host two namespaces may have flows of the same addresses
 * and ports. Set by the loader: in the lab all addresses differ, and kernels before 6.2 do not tell
 * a tc program the namespace.
 */
const volatile bool netns_keys = false;

struct flow_key {
	u32 saddr[4]; /* network byte order; IPv4 as ::ffff:a.b.c.d */
	u32 daddr[4];
	u16 sport; /* network byte order */
	u16 dport;
	u8 protocol;
	u8 pad[3];
	u64 netns; /* the namespace's cookie; 0 without netns_keys */
};

static __always_inline void flow_key_ipv4(struct flow_key *k, __be32 saddr, __be32 daddr, u16 sport,
					  u16 dport, u8 protocol)
{
	*k = (struct flow_key){
		.saddr = {0, 0, bpf_htonl(0xffff), saddr},
		.daddr = {0, 0, bpf_htonl(0xffff), daddr},
		.sport = sport,
		.dport = dport,
		.protocol = protocol,
	};
}

#endif
