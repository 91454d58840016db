/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Signed CNPs: a tag of the time of signing and a SipHash over what the CNP says, by a key that the
 * hosts share. Package cnp is the same in Go; docs/security.md has the bytes.
 */
#ifndef PCN_CNP_TAG_H
#define PCN_CNP_TAG_H

#include "cnp.h"
#include "siphash.h"

/* Two keys, so that a new one can be accepted before the old one is removed. */
#define KEYS 2

enum key_state {
	KEY_NONE,
	KEY_ACCEPTED, /* RP accepts CNPs that this key signed */
	KEY_SIGNS,    /* RP accepts them, and NP signs with this key */
};

struct cnp_key {
	struct siphash_key key;
	u32 state; /* enum key_state */
	u32 pad;
};

/* User space writes the keys while the programs run. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KEYS);
	__type(key, u32);
	__type(value, struct cnp_key);
} cnp_keys SEC(".maps");

/*
 * The wall clock (CLOCK_REALTIME) minus the kernel's, in ns. Stamps are of the wall clock, because
 * hosts agree on it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, s64);
} cnp_clock SEC(".maps");

/*
 * The tag's first word is the key's index and the time of signing; its second is the upper half of
 * SipHash. A stamp's unit is 2^13 ns, so it wraps every 4.9 hours.
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

/* What the tag of a CNP for a flow of TCP is without keys: see np_sign() and rp_sight_good(). */
struct cnp_sight {
	__be32 seq; /* of the data packet that the CNP answers */
	__be32 ack; /* its acknowledgment number */
};

/* The stamp of a time on the kernel's clock. */
static __always_inline u32 stamp_of(u64 kernel_ns)
{
	u32 zero = 0;
	s64 *ahead_ns = bpf_map_lookup_elem(&cnp_clock, &zero);

	return (kernel_ns + (ahead_ns ? *ahead_ns : 0)) >> STAMP_SHIFT & STAMP_MASK;
}

/* How much later a is than b, in stamps. */
static __always_inline s32 stamp_after(u32 a, u32 b)
{
	return (s32)((a - b) << (32 - STAMP_BITS)) >> (32 - STAMP_BITS);
}

/*
 * The last word that is signed. Before it come the addresses, the rate and the ports, as on the
 * wire.
 */
static __always_inline u64 stamp_word(const struct cnp_body *b, __be32 stamp, bool ce)
{
	u64 protocol = b->bth.psn ? IPPROTO_UDP : IPPROTO_TCP;

	return stamp | (u64)ce << 32 | protocol << 40;
}

static __always_inline __be32 mac_ipv4(const struct siphash_key *key, const struct cnp_ipv4 *c,
				       __be32 stamp, bool ce)
{
	u64 m[] = {word(&c->ip.saddr, 0), word(&c->body.pcn, 0), stamp_word(&c->body, stamp, ce)};

	return bpf_htonl(siphash24(key, m, 3) >> 32);
}

static __always_inline __be32 mac_ipv6(const struct siphash_key *key, const struct cnp_ipv6 *c,
				       __be32 stamp, bool ce)
{
	u64 m[] = {
		word(c->ip.saddr, 0), word(c->ip.saddr, 1),  word(c->ip.daddr, 0),
		word(c->ip.daddr, 1), word(&c->body.pcn, 0), stamp_word(&c->body, stamp, ce),
	};

	return bpf_htonl(siphash24(key, m, 6) >> 32);
}

#endif
