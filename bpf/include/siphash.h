/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SipHash-2-4: Aumasson and Bernstein, SipHash: a fast short-input PRF, INDOCRYPT 2012.
 *
 * Pure: no maps, no helpers.
 */
#ifndef PCN_SIPHASH_H
#define PCN_SIPHASH_H

struct siphash_key {
	u64 k0, k1; /* the key's bytes, little endian */
};

static __always_inline u64 sip_rotate(u64 x, u32 bits)
{
	return x << bits | x >> (64 - bits);
}

static __always_inline void sip_round(u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = sip_rotate(v[1], 13) ^ v[0];
	v[3] = sip_rotate(v[3], 16) ^ v[2];
	v[0] = sip_rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = sip_rotate(v[1], 17) ^ v[2];
	v[3] = sip_rotate(v[3], 21) ^ v[0];
	v[2] = sip_rotate(v[2], 32);
}

/* Hashes n words of 8 bytes, little endian. n is a constant. */
static __always_inline u64 siphash24(const struct siphash_key *key, const u64 *message, u32 n)
{
	u64 v[4] = {
		key->k0 ^ 0x736f6d6570736575ULL,
		key->k1 ^ 0x646f72616e646f6dULL,
		key->k0 ^ 0x6c7967656e657261ULL,
		key->k1 ^ 0x7465646279746573ULL,
	};

#pragma clang loop unroll(full)
	for (u32 i = 0; i <= n; i++) { /* the words, and then the message's length in bytes */
		u64 word = i < n ? message[i] : (u64)n << 59;

		v[3] ^= word;
		sip_round(v);
		sip_round(v);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
