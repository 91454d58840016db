/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CRC-32 with the reflected polynomial 0xedb88320, eight bytes at a time ("slicing by 8":
 * Kounavis and Berry, ISCC 2005). Pure: no maps, no helpers.
 */
#ifndef PCN_CRC32_H
#define PCN_CRC32_H

/*
 * crc32_slice[n][b] is the register after byte b and then n zero bytes, from register 0. It is
 * linear in b: each entry is the XOR of the entries for the single bits of b, which are the
 * arguments, the highest bit first.
 *
 * CRC32_2 to CRC32_256 list r XOR the entries of the lowest 1 to 8 bits, which are arguments k.
 * They name only bits that are set. With all 8 in each of the 2048 entries they are 0.8 MB of C, a
 * fifth of the time of each compilation of a control.
 */

/* The lowest bit is last: r itself has none of k. */
#define CRC32_2(r, k)	     r, r ^ k
#define CRC32_4(r, k, ...)   CRC32_2(r, __VA_ARGS__), CRC32_2(r ^ k, __VA_ARGS__)
#define CRC32_8(r, k, ...)   CRC32_4(r, __VA_ARGS__), CRC32_4(r ^ k, __VA_ARGS__)
#define CRC32_16(r, k, ...)  CRC32_8(r, __VA_ARGS__), CRC32_8(r ^ k, __VA_ARGS__)
#define CRC32_32(r, k, ...)  CRC32_16(r, __VA_ARGS__), CRC32_16(r ^ k, __VA_ARGS__)
#define CRC32_64(r, k, ...)  CRC32_32(r, __VA_ARGS__), CRC32_32(r ^ k, __VA_ARGS__)
#define CRC32_128(r, k, ...) CRC32_64(r, __VA_ARGS__), CRC32_64(r ^ k, __VA_ARGS__)
#define CRC32_256(r, k, ...) CRC32_128(r, __VA_ARGS__), CRC32_128(r ^ k, __VA_ARGS__)
#define CRC32_SLICE(...)     {CRC32_256(0, __VA_ARGS__)}

/* clang-format off */
static const u32 crc32_slice[8][256] = {
	CRC32_SLICE(0xedb88320, 0x76dc4190, 0x3b6e20c8, 0x1db71064,
		    0x0edb8832, 0x076dc419, 0xee0e612c, 0x77073096),
	CRC32_SLICE(0x3b83984b, 0xf0794f05, 0x958424a2, 0x4ac21251,
		    0xc8d98a08, 0x646cc504, 0x32366282, 0x191b3141),
	CRC32_SLICE(0xe1351b80, 0x709a8dc0, 0x384d46e0, 0x1c26a370,
		    0x0e1351b8, 0x0709a8dc, 0x0384d46e, 0x01c26a37),
	CRC32_SLICE(0xed59b63b, 0x9b14583d, 0xa032af3e, 0x5019579f,
		    0xc5b428ef, 0x8f629757, 0xaa09c88b, 0xb8bc6765),
	CRC32_SLICE(0xb1e6b092, 0x58f35849, 0xc1c12f04, 0x60e09782,
		    0x30704bc1, 0xf580a6c0, 0x7ac05360, 0x3d6029b0),
	CRC32_SLICE(0x1eb014d8, 0x0f580a6c, 0x07ac0536, 0x03d6029b,
		    0xec53826d, 0x9b914216, 0x4dc8a10b, 0xcb5cd3a5),
	CRC32_SLICE(0x8816eaf2, 0x440b7579, 0xcfbd399c, 0x67de9cce,
		    0x33ef4e67, 0xf44f2413, 0x979f1129, 0xa6770bb4),
	CRC32_SLICE(0x533b85da, 0x299dc2ed, 0xf9766256, 0x7cbb312b,
		    0xd3e51bb5, 0x844a0efa, 0x4225077d, 0xccaa009e),
};
/* clang-format on */

/* The register after 8 or 4 more bytes, the first in the lowest bits. */
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

#endif
