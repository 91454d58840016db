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
 * arguments.
 */
#define CRC32_1(b, k0, k1, k2, k3, k4, k5, k6, k7)                                                 \
	(((b) & 1 ? k0 : 0) ^ ((b) & 2 ? k1 : 0) ^ ((b) & 4 ? k2 : 0) ^ ((b) & 8 ? k3 : 0) ^       \
	 ((b) & 16 ? k4 : 0) ^ ((b) & 32 ? k5 : 0) ^ ((b) & 64 ? k6 : 0) ^ ((b) & 128 ? k7 : 0))
#define CRC32_4(b, ...)                                                                            \
	CRC32_1(b, __VA_ARGS__), CRC32_1(b + 1, __VA_ARGS__), CRC32_1(b + 2, __VA_ARGS__),         \
		CRC32_1(b + 3, __VA_ARGS__)
#define CRC32_16(b, ...)                                                                           \
	CRC32_4(b, __VA_ARGS__), CRC32_4(b + 4, __VA_ARGS__), CRC32_4(b + 8, __VA_ARGS__),         \
		CRC32_4(b + 12, __VA_ARGS__)
#define CRC32_64(b, ...)                                                                           \
	CRC32_16(b, __VA_ARGS__), CRC32_16(b + 16, __VA_ARGS__), CRC32_16(b + 32, __VA_ARGS__),    \
		CRC32_16(b + 48, __VA_ARGS__)
#define CRC32_SLICE(...)                                                                           \
	{CRC32_64(0, __VA_ARGS__), CRC32_64(64, __VA_ARGS__), CRC32_64(128, __VA_ARGS__),          \
	 CRC32_64(192, __VA_ARGS__)}

/* clang-format off */
static const u32 crc32_slice[8][256] = {
	CRC32_SLICE(0x77073096, 0xee0e612c, 0x076dc419, 0x0edb8832,
		    0x1db71064, 0x3b6e20c8, 0x76dc4190, 0xedb88320),
	CRC32_SLICE(0x191b3141, 0x32366282, 0x646cc504, 0xc8d98a08,
		    0x4ac21251, 0x958424a2, 0xf0794f05, 0x3b83984b),
	CRC32_SLICE(0x01c26a37, 0x0384d46e, 0x0709a8dc, 0x0e1351b8,
		    0x1c26a370, 0x384d46e0, 0x709a8dc0, 0xe1351b80),
	CRC32_SLICE(0xb8bc6765, 0xaa09c88b, 0x8f629757, 0xc5b428ef,
		    0x5019579f, 0xa032af3e, 0x9b14583d, 0xed59b63b),
	CRC32_SLICE(0x3d6029b0, 0x7ac05360, 0xf580a6c0, 0x30704bc1,
		    0x60e09782, 0xc1c12f04, 0x58f35849, 0xb1e6b092),
	CRC32_SLICE(0xcb5cd3a5, 0x4dc8a10b, 0x9b914216, 0xec53826d,
		    0x03d6029b, 0x07ac0536, 0x0f580a6c, 0x1eb014d8),
	CRC32_SLICE(0xa6770bb4, 0x979f1129, 0xf44f2413, 0x33ef4e67,
		    0x67de9cce, 0xcfbd399c, 0x440b7579, 0x8816eaf2),
	CRC32_SLICE(0xccaa009e, 0x4225077d, 0x844a0efa, 0xd3e51bb5,
		    0x7cbb312b, 0xf9766256, 0x299dc2ed, 0x533b85da),
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
