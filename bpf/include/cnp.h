/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The congestion notification packet: a RoCEv2 CNP whose reserved bytes carry RecRate (Fig. 9 of the PCN paper)
 * and the flow's ports. Package cnp is the same in Go; the bytes are equal.
 */
#ifndef PCN_CNP_H
#define PCN_CNP_H

#define ROCE_PORT     4791
#define CNP_OPCODE    0x81
#define CNP_BECN      0x40
#define CNP_UE	      0x20 /* TCD: undetermined; reserved in RoCE */
#define CNP_DSCP      48
#define CNP_FRAME_LEN 74
#define CNP_IP_LEN    60
#define CNP_UDP_LEN   40
#define CNP_PKEY      0xffff
#define CNP_FRAG_OFF  0x4000 /* do not fragment */

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

struct cnp_frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	struct bth bth;
	struct cnp_payload pcn;
	u32 icrc; /* little endian */
} __attribute__((packed));

_Static_assert(sizeof(struct cnp_frame) == CNP_FRAME_LEN, "a CNP is 74 bytes");

/* cnp_udp_source: spreads the CNPs of different flows over paths. */
static __always_inline __be16 cnp_udp_source(__be16 flow_sport, __be16 flow_dport)
{
	return bpf_htons(0xc000) | ((flow_sport ^ flow_dport) & bpf_htons(0x3fff));
}

/* One step of the reflected CRC-32 (polynomial 0xedb88320), four bits at a time. */
static const u32 crc32_nibble[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

/* 8 bytes of 0xff, the LRH that RoCEv2 has not, folded in (rxe_icrc.c). */
#define ICRC_SEED 0xdebb20e3

#define ICRC_LEN (CNP_IP_LEN - 4)

/*
 * cnp_icrc: over IP, UDP, BTH and the reserved bytes, with what changes on the way taken as ones: TOS, TTL, both
 * checksums and the byte of FECN and BECN. Stored little endian as it is.
 */
static __always_inline u32 cnp_icrc(const struct cnp_frame *f)
{
	struct {
		struct iphdr ip;
		struct udphdr udp;
		struct bth bth;
		struct cnp_payload pcn;
	} __attribute__((packed)) m;
	const u8 *b = (void *)&m;
	u32 crc = ICRC_SEED;

	m.ip = f->ip;
	m.udp = f->udp;
	m.bth = f->bth;
	m.pcn = f->pcn;
	m.ip.tos = 0xff;
	m.ip.ttl = 0xff;
	m.ip.check = 0xffff;
	m.udp.check = 0xffff;
	m.bth.becn = 0xff;
	for (u32 i = 0; i < ICRC_LEN; i++) { /* the bytes of m */
		crc ^= b[i];
		crc = crc >> 4 ^ crc32_nibble[crc & 15];
		crc = crc >> 4 ^ crc32_nibble[crc & 15];
	}
	return ~crc;
}

/* ip_checksum: of 20 bytes with 0 in the checksum's place; 0 if the right one is there. */
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

#endif
