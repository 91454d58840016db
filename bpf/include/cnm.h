/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QCN's congestion notification message (CNM, 802.1Qau). It goes to the sender of a packet that a
 * congestion point sampled. Package cnp is the same in Go, byte for byte.
 */
#ifndef PCN_CNM_H
#define PCN_CNM_H

#define ETH_P_CNM	  0x22E7
#define CNM_MSDU_LEN	  64
#define CNM_FRAME_LEN	  102 /* with the whole MSDU */
#define CNM_MIN_FRAME_LEN 60  /* of Ethernet, without FCS; bytes behind the MSDU are zero */
#define CNM_QNTZ_FB_MAX	  63
/* The next two are from memory of the standard: no source at hand has them. */
#define CNM_QUEUE_SHIFT	   6 /* units of 64 bytes */
#define CNM_PRIORITY_SHIFT 13

struct cnm_pdu {
	__be16 qntz_fb; /* version 4 bits, 0; reserved 6 bits, 0; QntzFb 6 bits */
	__be64 cpid;	/* the congestion point */
	/* signed, in units of 64 bytes */
	__be16 qoff;   /* how far the queue is above its set point */
	__be16 qdelta; /* how far it has grown since the last sample */
	/* of the sampled packet */
	__be16 encap_priority;
	u8 encap_dest[ETH_ALEN];
	__be16 encap_msdu_len;
} __attribute__((packed));

struct cnm_frame {
	struct ethhdr eth;
	struct cnm_pdu pdu;
	u8 msdu[CNM_MSDU_LEN]; /* what follows the Ethernet header in the sampled packet */
} __attribute__((packed));

_Static_assert(sizeof(struct cnm_pdu) == 24, "a CNM's PDU is 24 bytes before the MSDU");
_Static_assert(sizeof(struct cnm_frame) == CNM_FRAME_LEN, "a CNM is 102 bytes");

static __always_inline u32 cnm_frame_len(u32 msdu_len)
{
	u32 len = sizeof(struct cnm_frame) - CNM_MSDU_LEN + msdu_len;

	return len < CNM_MIN_FRAME_LEN ? CNM_MIN_FRAME_LEN : len;
}

/* Rounds down, and stops at what 16 bits hold. */
static __always_inline s16 cnm_queue_units(s64 bytes)
{
	s64 units = bytes >> CNM_QUEUE_SHIFT;

	if (units < -0x8000)
		return -0x8000;
	return units > 0x7fff ? 0x7fff : units;
}

/*
 * Builds the CNM that answers a sampled packet. CNM_MSDU_LEN bytes behind its Ethernet header
 * (without VLAN tag) can be read; msdu_len of them belong to it. The congestion point has no MAC
 * address, so the source of the CNM is the destination of the sampled packet, as in HP's FlexFabric
 * 5700. priority is 0 to 7. Writes all of f, and returns the length of the frame.
 */
static __always_inline u32 cnm_build(struct cnm_frame *f, const u8 *sampled, u16 msdu_len, u64 cpid,
				     u8 qntz_fb, s64 qoff_bytes, s64 qdelta_bytes, u8 priority)
{
	const struct ethhdr *eth = (void *)sampled;
	const u8 *msdu = (void *)(eth + 1);
	u32 len = msdu_len < CNM_MSDU_LEN ? msdu_len : CNM_MSDU_LEN;

	/* else clang computes with 16 bits, and the verifier loses the bounds */
	barrier_var(len);
	if (qntz_fb > CNM_QNTZ_FB_MAX)
		qntz_fb = CNM_QNTZ_FB_MAX;
	__builtin_memcpy(f->eth.h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(f->eth.h_source, eth->h_dest, ETH_ALEN);
	f->eth.h_proto = bpf_htons(ETH_P_CNM);
	f->pdu.qntz_fb = bpf_htons(qntz_fb);
	f->pdu.cpid = bpf_cpu_to_be64(cpid);
	f->pdu.qoff = bpf_htons(cnm_queue_units(qoff_bytes));
	f->pdu.qdelta = bpf_htons(cnm_queue_units(qdelta_bytes));
	f->pdu.encap_priority = bpf_htons(priority << CNM_PRIORITY_SHIFT);
	__builtin_memcpy(f->pdu.encap_dest, eth->h_dest, ETH_ALEN);
	f->pdu.encap_msdu_len = bpf_htons(len);
	for (u32 i = 0; i < CNM_MSDU_LEN; i++) /* the bytes of the MSDU, zeros behind it */
		f->msdu[i] = i < len ? msdu[i] : 0;
	return cnm_frame_len(len);
}

/*
 * Checks every field in which the sender has no choice, but not the padding. len is the length of
 * the CNM; the bytes before the MSDU can be read.
 */
static __always_inline bool cnm_well_formed(const struct cnm_frame *f, u32 len)
{
	u16 msdu_len = bpf_ntohs(f->pdu.encap_msdu_len);

	return f->eth.h_proto == bpf_htons(ETH_P_CNM) &&
	       !(f->pdu.qntz_fb & bpf_htons(~CNM_QNTZ_FB_MAX)) &&
	       !(f->pdu.encap_priority & bpf_htons((1 << CNM_PRIORITY_SHIFT) - 1)) &&
	       msdu_len <= CNM_MSDU_LEN && len == cnm_frame_len(msdu_len);
}

#endif
