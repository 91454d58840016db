/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The congestion notification packet (CNP): a RoCEv2 CNP, over IPv4 or IPv6, whose reserved bytes
 * carry RecRate (NSDI 2020, Fig. 9), the flow's ports and, on hosts with keys, a tag (cnp_tag.h).
 * Package cnp is the same in Go; the bytes are equal. docs/security.md shows them.
 */
#ifndef PCN_CNP_H
#define PCN_CNP_H

#include "crc32.h"
#include "flow.h"
#include "notify_event.h"
#include "packet.h"

#define ROCE_PORT    4791
#define CNP_OPCODE   0x81
#define CNP_BECN     0x40
#define CNP_UE	     0x20 /* TCD: undetermined; reserved in RoCE */
#define CNP_DSCP     48
#define CNP_TTL	     64
#define CNP_PKEY     0xffff
#define CNP_FRAG_OFF 0x4000 /* do not fragment */

/* The PSN of a CNP for a flow of UDP; for one of TCP it is 0. A CNP has no sequence of its own. */
#define CNP_PSN_UDP IPPROTO_UDP

struct bth {
	u8 opcode;
	u8 flags;
	__be16 pkey;
	u8 becn; /* FECN, BECN, 6 reserved bits */
	u8 dest_qp[3];
	__be32 psn;
};

struct cnp_payload {
	__be32 rec_rate;
	__be16 flow_sport;
	__be16 flow_dport;
	u8 tag[8];
};

/* What follows the IP header, of either family. */
struct cnp_body {
	struct udphdr udp;
	struct bth bth;
	struct cnp_payload pcn;
	u32 icrc; /* little endian */
} __attribute__((packed));

struct cnp_ipv4 {
	struct iphdr ip;
	struct cnp_body body;
} __attribute__((packed));

struct cnp_ipv6 {
	struct ipv6hdr ip;
	struct cnp_body body;
} __attribute__((packed));

_Static_assert(sizeof(struct cnp_body) == 40, "a CNP is 40 bytes of UDP");
_Static_assert(sizeof(struct cnp_ipv4) == 60, "a CNP over IPv4 is 60 bytes");
_Static_assert(sizeof(struct cnp_ipv6) == 80, "a CNP over IPv6 is 80 bytes");

/* CNPs of different flows take different paths. */
static __always_inline __be16 cnp_udp_source(__be16 flow_sport, __be16 flow_dport)
{
	return bpf_htons(0xc000) | ((flow_sport ^ flow_dport) & bpf_htons(0x3fff));
}

/* Over 20 bytes, with 0 in place of the checksum. The result over a correct header is 0. */
static __always_inline u16 ip_checksum(const void *header)
{
	const u16 *w = header;
	u32 sum = 0;

	for (u32 i = 0; i < sizeof(struct iphdr) / 2; i++)
		sum += w[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Eight bytes of a packed header at once. */
static __always_inline u64 word(const void *header, u32 i)
{
	return ((const u64 *)header)[i];
}

/* The register after 8 bytes of 0xff, which stand for the LRH that RoCEv2 lacks (rxe_icrc.c). */
#define ICRC_SEED 0xdebb20e3

/*
 * What may change on the way counts as ones in the ICRC: TOS, TTL and the checksums of IPv4;
 * traffic class, flow label and hop limit of IPv6; UDP's checksum; the byte of FECN and BECN
 * (rxe_icrc.c).
 *
 * What precedes RecRate is the same in all well-formed CNPs of a flow. The crc_ functions give the
 * register behind it, which the reaction point remembers.
 */
static __always_inline u32 crc_ipv4(const struct cnp_ipv4 *c)
{
	u32 crc = ICRC_SEED;

	crc = crc32_8(crc, word(c, 0) | 0xff00);     /* TOS */
	crc = crc32_8(crc, word(c, 1) | 0xffff00ff); /* TTL, header checksum */
	crc = crc32_8(crc, word(c, 2));
	crc = crc32_8(crc, word(c, 3) | 0xffff0000); /* UDP's checksum */
	return crc32_8(crc, word(c, 4) | 0xff);	     /* FECN, BECN */
}

static __always_inline u32 icrc_ipv4(const struct cnp_ipv4 *c, u32 crc)
{
	return ~crc32_8(crc32_8(crc, word(c, 5)), word(c, 6));
}

static __always_inline u32 crc_ipv6(const struct cnp_ipv6 *c)
{
	u32 crc = ICRC_SEED;

	/* traffic class and flow label, hop limit */
	crc = crc32_8(crc, word(c, 0) | 0xff000000ffffff0fULL);
	crc = crc32_8(crc, word(c, 1));
	crc = crc32_8(crc, word(c, 2));
	crc = crc32_8(crc, word(c, 3));
	crc = crc32_8(crc, word(c, 4));
	crc = crc32_8(crc, word(c, 5) | 0xffffULL << 48); /* UDP's checksum */
	return crc32_8(crc, word(c, 6) | 0xffULL << 32);  /* FECN, BECN */
}

static __always_inline u32 icrc_ipv6(const struct cnp_ipv6 *c, u32 crc)
{
	return ~crc32_4(crc32_8(crc32_8(crc, word(c, 7)), word(c, 8)), word(c, 9));
}

/* Leaves out the tag and the ICRC. */
static __always_inline void cnp_build_body(struct cnp_body *b, const struct flow_key *key,
					   const struct notification *cnp)
{
	*b = (struct cnp_body){
		.udp =
			{
				.source = cnp_udp_source(key->sport, key->dport),
				.dest = bpf_htons(ROCE_PORT),
				.len = bpf_htons(sizeof(struct cnp_body)),
			},
		.bth =
			{
				.opcode = CNP_OPCODE,
				.pkey = CNP_PKEY,
				.becn = CNP_BECN | (cnp->ue ? CNP_UE : 0),
				.psn = key->protocol == IPPROTO_UDP ? bpf_htonl(CNP_PSN_UDP) : 0,
			},
		.pcn =
			{
				.rec_rate = bpf_htonl(cnp->rec_rate),
				.flow_sport = key->sport,
				.flow_dport = key->dport,
			},
	};
}

static __always_inline u8 cnp_tos(const struct notification *cnp)
{
	return CNP_DSCP << 2 | (cnp->ce ? ECN_CE : 0);
}

/* The CNP that answers the flow, without tag and ICRC. */
static __always_inline void cnp_build_ipv4(struct cnp_ipv4 *c, const struct flow_key *key,
					   const struct notification *cnp)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = cnp_tos(cnp),
		.tot_len = bpf_htons(sizeof(*c)),
		.frag_off = bpf_htons(CNP_FRAG_OFF),
		.ttl = CNP_TTL,
		.protocol = IPPROTO_UDP,
		.saddr = key->daddr[3],
		.daddr = key->saddr[3],
	};

	ip.check = ip_checksum(&ip);
	c->ip = ip;
	cnp_build_body(&c->body, key, cnp);
}

static __always_inline void cnp_build_ipv6(struct cnp_ipv6 *c, const struct flow_key *key,
					   const struct notification *cnp)
{
	u8 class = cnp_tos(cnp);

	c->ip = (struct ipv6hdr){
		.version_class = 6 << 4 | class >> 4,
		.class_label = class << 4,
		.payload_len = bpf_htons(sizeof(struct cnp_body)),
		.nexthdr = IPPROTO_UDP,
		.hop_limit = CNP_TTL,
	};
	__builtin_memcpy(c->ip.saddr, key->daddr, sizeof(key->daddr));
	__builtin_memcpy(c->ip.daddr, key->saddr, sizeof(key->saddr));
	cnp_build_body(&c->body, key, cnp);
}

/*
 * The checks of form cover every field in which the sender has no choice. They leave out DSCP, TTL
 * and flow label, which routers change, and what only the ICRC or the tag protects.
 */

/* UE occurs only with TCD, and never together with CE, which overrides it. */
static __always_inline bool becn_well_formed(u8 becn, u8 tos, bool tcd)
{
	return becn == CNP_BECN || (tcd && becn == (CNP_BECN | CNP_UE) && !(tos & ECN_MASK));
}

static __always_inline bool cnp_body_well_formed(const struct cnp_body *b, u8 tos, bool tcd,
						 bool udp_flows)
{
	const u8 *qp = b->bth.dest_qp;
	u8 ecn = tos & ECN_MASK;

	return (!ecn || ecn == ECN_CE) && becn_well_formed(b->bth.becn, tos, tcd) &&
	       b->udp.source == cnp_udp_source(b->pcn.flow_sport, b->pcn.flow_dport) &&
	       b->udp.len == bpf_htons(sizeof(*b)) && !b->udp.check && !b->bth.flags &&
	       b->bth.pkey == CNP_PKEY && !(qp[0] | qp[1] | qp[2]) &&
	       (!b->bth.psn || (udp_flows && b->bth.psn == bpf_htonl(CNP_PSN_UDP)));
}

static __always_inline bool cnp_ipv4_well_formed(const struct cnp_ipv4 *c, u32 len)
{
	return len == sizeof(*c) && c->ip.tot_len == bpf_htons(sizeof(*c)) && !c->ip.id &&
	       c->ip.frag_off == bpf_htons(CNP_FRAG_OFF) && !ip_checksum(&c->ip);
}

static __always_inline bool cnp_ipv6_well_formed(const struct cnp_ipv6 *c, u32 len)
{
	return len == sizeof(*c) && c->ip.payload_len == bpf_htons(sizeof(c->body));
}

#endif
