/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Credit-based flow control (CBFC) of one virtual lane of one link: InfiniBand Architecture
 * Specification, volume 1, 7.9.
 *
 *	sender    FCTBS = blocks sent so far	a packet may go if it fits FCCL - FCTBS
 *	receiver  FCCL  = blocks received + blocks free in its buffer,
 *			  sent to the sender every update period Tc
 *
 * A credit is a block of 64 bytes; a packet takes whole blocks. A block that arrives is received,
 * but no longer free. So FCCL grows only when blocks leave the buffer: FCCL = buffer + blocks that
 * left.
 *
 * The specification's updates also carry FCTBS, by which a receiver learns what was lost. That is
 * left out: Linux's links here lose nothing, and the simulator gives lost credits back by itself.
 * The specification's counters have 12 bits, and its FCCL is at most 2048 blocks (128 KB) ahead of
 * what came. These have 64 bits: they never wrap, and buffers can be larger, as TCD's 280 KB.
 */
#ifndef PCN_ALGO_CBFC_H
#define PCN_ALGO_CBFC_H

#define CBFC_BLOCK_SHIFT 6 /* 64 bytes */

struct cbfc_params {
	u64 buffer_blocks; /* the receiver's buffer; 0: no CBFC */
	u64 period_ns;	   /* Tc, the update period */
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

/* A link begins with credits for the receiver's whole buffer. */
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

/* An older FCCL that arrives late takes no credits back. */
static __always_inline void cbfc_tx_update(struct cbfc_tx *tx, u64 fccl)
{
	if ((s64)(fccl - tx->fccl) > 0)
		tx->fccl = fccl;
}

/* Returns the blocks in the buffer then. One CPU may receive while another releases. */
static __always_inline u64 cbfc_receive(struct cbfc_rx *rx, u64 blocks)
{
	return __sync_fetch_and_add(&rx->held, blocks) + blocks;
}

static __always_inline void cbfc_release(struct cbfc_rx *rx, u64 blocks)
{
	__sync_fetch_and_sub(&rx->held, blocks);
}

/* The receiver reports a change at t_ns when the update period ends. */
static __always_inline u64 cbfc_tick(const struct cbfc_params *p, u64 t_ns)
{
	u64 period_ns = p->period_ns ?: 1;

	return (t_ns + period_ns - 1) / period_ns * period_ns;
}

#endif
