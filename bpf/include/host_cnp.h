/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CNPs of real hosts: over IPv4, where they are the lab's (cnp.h) bit by bit, or IPv6; of TCP's or of UDP's flows;
 * and signed, where there are keys. Package cnp is the same in Go; docs/security.md has the bytes.
 */
#ifndef PCN_HOST_CNP_H
#define PCN_HOST_CNP_H

#include "clock.h"
#include "cnp.h"
#include "host_packet.h"
#include "siphash.h"

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

_Static_assert(sizeof(struct cnp_ipv4) == CNP_IP_LEN, "a CNP over IPv4 is 60 bytes");
_Static_assert(sizeof(struct cnp_body) == CNP_UDP_LEN, "a CNP is 40 bytes of UDP");
_Static_assert(sizeof(struct cnp_ipv6) == 80, "a CNP over IPv6 is 80 bytes");

/* The PSN of a CNP for a flow of UDP; for one of TCP it is 0. A CNP has no sequence of its own. */
#define CNP_PSN_UDP IPPROTO_UDP

/*
 * CRC-32 of eight bytes at a time: table[n][b] is the register after byte b and then n zeros, from register 0. The
 * loader computes it.
 */
const volatile u32 crc32_slice[8][256] = {};

static __always_inline u32 crc32_8(u32 crc, u64 bytes)
{
	bytes ^= crc;
	crc = 0;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < 8; i++)
		crc ^= crc32_slice[7 - i][bytes >> 8 * i & 0xff];
	return crc;
}

static __always_inline u32 crc32_4(u32 crc, u32 bytes)
{
	bytes ^= crc;
	crc = 0;
#pragma clang loop unroll(full)
	for (u32 i = 0; i < 4; i++)
		crc ^= crc32_slice[3 - i][bytes >> 8 * i & 0xff];
	return crc;
}

/* word: eight bytes of a header that is packed, at once. */
static __always_inline u64 word(const void *header, u32 i)
{
	return ((const u64 *)header)[i];
}

/*
 * The ICRC leaves out what may change on the way: TOS, TTL and the checksums, or traffic class, flow label, hop limit
 * and the checksum, and the byte of FECN and BECN (rxe_icrc.c). They count as ones.
 *
 * What precedes RecRate is the same in all well-formed CNPs of a flow: crc_ is the register behind it.
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

	crc = crc32_8(crc, word(c, 0) | 0xff000000ffffff0fULL); /* traffic class and flow label, hop limit */
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

/* KEYS: two, so that a new one comes before the old one goes. */
#define KEYS 2

enum key_state {
	KEY_NONE,
	KEY_ACCEPTED, /* RP takes CNPs that it signed */
	KEY_SIGNS,    /* and NP signs with it */
};

struct cnp_key {
	struct siphash_key key;
	u32 state; /* enum key_state */
	u32 pad;
};

/* Written from user space while the programs run. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KEYS);
	__type(key, u32);
	__type(value, struct cnp_key);
} cnp_keys SEC(".maps");

/* What the wall clock (CLOCK_REALTIME) is ahead of the kernel's, in ns. Stamps are of it: hosts agree on it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, s64);
} cnp_clock SEC(".maps");

/*
 * The tag's first word is the key's index and the time of signing; its second the upper half of SipHash. A stamp's
 * unit is 2^13 ns, so it begins anew every 4.9 hours.
 */
#define STAMP_SHIFT    13
#define STAMP_BITS     31
#define STAMP_MASK     ((1U << STAMP_BITS) - 1)
#define TAG_KEY(word)  ((word) >> STAMP_BITS)
#define TAG_STAMP(tag) ((tag) & STAMP_MASK)

struct cnp_tag {
	__be32 stamp; /* key index in the upper bit */
	__be32 mac;
};

/* stamp_now: now_ns is the kernel's time. */
static __always_inline u32 stamp_now(u64 now_ns)
{
	u32 zero = 0;
	s64 *ahead_ns = bpf_map_lookup_elem(&cnp_clock, &zero);

	return (now_ns + (ahead_ns ? *ahead_ns : 0)) >> STAMP_SHIFT & STAMP_MASK;
}

/* stamp_after: how much later a is than b, in stamps. */
static __always_inline s32 stamp_after(u32 a, u32 b)
{
	return (s32)((a - b) << (32 - STAMP_BITS)) >> (32 - STAMP_BITS);
}

/* stamp_word: what a tag signs behind the addresses and the rate and the ports, as they are on the wire. */
static __always_inline u64 stamp_word(const struct cnp_body *b, __be32 stamp, bool ce)
{
	u64 protocol = b->bth.psn ? IPPROTO_UDP : IPPROTO_TCP;

	return stamp | (u64)ce << 32 | protocol << 40;
}

static __always_inline __be32 mac_ipv4(const struct siphash_key *key, const struct cnp_ipv4 *c, __be32 stamp, bool ce)
{
	u64 m[] = {word(&c->ip.saddr, 0), word(&c->body.pcn, 0), stamp_word(&c->body, stamp, ce)};

	return bpf_htonl(siphash24(key, m, 3) >> 32);
}

static __always_inline __be32 mac_ipv6(const struct siphash_key *key, const struct cnp_ipv6 *c, __be32 stamp, bool ce)
{
	u64 m[] = {
		word(c->ip.saddr, 0), word(c->ip.saddr, 1),  word(c->ip.daddr, 0),
		word(c->ip.daddr, 1), word(&c->body.pcn, 0), stamp_word(&c->body, stamp, ce),
	};

	return bpf_htonl(siphash24(key, m, 6) >> 32);
}

#endif
