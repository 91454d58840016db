/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Credit-based flow control of one virtual lane of one link: InfiniBand Architecture Specification,
 * volume 1, 7.9.
 *
 *	sender    FCTBS = blocks sent so far	a packet may go if it fits FCCL - FCTBS
 *	receiver  FCCL  = blocks received + blocks free in its buffer,
 *			  told to the sender every update period Tc
 *
 * Credits are blocks of 64 bytes; a packet takes whole ones. What arrives is received and no
 * longer free, so FCCL moves only when blocks leave the buffer: FCCL = buffer + blocks that left.
 * An update therefore says how many blocks left.
 *
 * The specification's updates also carry FCTBS, from which the receiver learns what was lost on
 * the way. That is left out: the links here lose nothing. Its counters have 12 bits, and FCCL is at
 * most 2048 blocks (128 KB) ahead of what was received. Here they have 64, so that a buffer can be
 * larger, such as the 280 KB of TCD's paper, and never wrap.
 */
#ifndef PCN_ALGO_CBFC_H
#define PCN_ALGO_CBFC_H

#define CBFC_BLOCK_SHIFT 6 /* 64 bytes */

struct cbfc_params {
	u64 buffer_blocks; /* of the receiver; 0: no CBFC */
	u64 period_ns;	   /* Tc */
};

struct cbfc_tx {
	u64 fctbs; /* flow control total blocks sent */
	u64 fccl;  /* flow control credit limit */
};

struct cbfc_rx {
	u64 held; /* blocks in the buffer */
};

static __always_inline u64 cbfc_blocks(u64 len_bytes)
{
	return (len_bytes + (1 << CBFC_BLOCK_SHIFT) - 1) >> CBFC_BLOCK_SHIFT;
}

/* cbfc_tx_init: a link begins with credits for all of the receiver's empty buffer. */
static __always_inline void cbfc_tx_init(struct cbfc_tx *tx, const struct cbfc_params *p)
{
	*tx = (struct cbfc_tx){.fccl = p->buffer_blocks};
}

static __always_inline bool cbfc_may_send(const struct cbfc_tx *tx, u64 blocks)
{
	return (s64)(tx->fccl - tx->fctbs - blocks) >= 0;
}

static __always_inline void cbfc_send(struct cbfc_tx *tx, u64 blocks)
{
	tx->fctbs += blocks;
}

/* cbfc_tx_update: an older FCCL that comes late takes nothing back. */
static __always_inline void cbfc_tx_update(struct cbfc_tx *tx, u64 fccl)
{
	if ((s64)(fccl - tx->fccl) > 0)
		tx->fccl = fccl;
}

static __always_inline void cbfc_receive(struct cbfc_rx *rx, u64 blocks)
{
	rx->held += blocks;
}

static __always_inline void cbfc_release(struct cbfc_rx *rx, u64 blocks)
{
	rx->held -= blocks;
}

/* cbfc_tick: when the receiver tells what changed at t_ns: at the end of the period. */
static __always_inline u64 cbfc_tick(const struct cbfc_params *p, u64 t_ns)
{
	u64 period_ns = p->period_ns ?: 1;

	return (t_ns + period_ns - 1) / period_ns * period_ns;
}

#endif
