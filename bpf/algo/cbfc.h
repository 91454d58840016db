/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Credit-based flow control, InfiniBand Architecture Specification, volume 1, 7.9: one virtual lane of one link.
 *
 *	sender		FCTBS = blocks sent					a packet may go if it fits FCCL - FCTBS
 *	receiver	ABR   = blocks received
 *			FCCL  = ABR + blocks free in its buffer			told every update period Tc, if it
 *changed an update	also says FCTBS, and ABR = FCTBS: what was lost on the way is no longer waited for
 *
 * Credits are blocks of 64 bytes, a packet takes whole ones. As free = buffer - held, and what arrives adds as much to
 *ABR as to held, FCCL moves only when blocks leave the buffer: FCCL = buffer + blocks that left, but for losses.
 *
 * The specification's counters have 12 bits, and FCCL is at most 2048 blocks (128 KB) ahead of ABR. Here they have 64,
 * so that a buffer can be larger, such as the 280 KB of TCD's paper, and never wrap.
 */
#ifndef PCN_ALGO_CBFC_H
#define PCN_ALGO_CBFC_H

#define CBFC_BLOCK_SHIFT 6 /* 64 bytes */

struct cbfc_params {
	u64 buffer_blocks; /* of the receiver; 0: no CBFC */
	u64 period_ns;	   /* Tc */
};

struct cbfc_tx {
	u64 fctbs;
	u64 fccl;
};

struct cbfc_rx {
	u64 abr;
	u64 held; /* blocks in the buffer */
};

/* cbfc_blocks: that a packet takes. */
static __always_inline u64 cbfc_blocks(u64 len_bytes)
{
	return (len_bytes + (1 << CBFC_BLOCK_SHIFT) - 1) >> CBFC_BLOCK_SHIFT;
}

/* cbfc_tx_init: a link starts with what its receiver's empty buffer takes. */
static __always_inline void cbfc_tx_init(struct cbfc_tx *tx, const struct cbfc_params *p)
{
	*tx = (struct cbfc_tx){.fccl = p->buffer_blocks};
}

/* cbfc_may_send: whether there are credits for a packet. */
static __always_inline bool cbfc_may_send(const struct cbfc_tx *tx, u64 blocks)
{
	return (s64)(tx->fccl - tx->fctbs - blocks) >= 0;
}

static __always_inline void cbfc_send(struct cbfc_tx *tx, u64 blocks)
{
	tx->fctbs += blocks;
}

/* cbfc_tx_update: an update says this FCCL. An older one that comes late takes nothing back. */
static __always_inline void cbfc_tx_update(struct cbfc_tx *tx, u64 fccl)
{
	if ((s64)(fccl - tx->fccl) > 0)
		tx->fccl = fccl;
}

static __always_inline void cbfc_receive(struct cbfc_rx *rx, u64 blocks)
{
	rx->abr += blocks;
	rx->held += blocks;
}

/* cbfc_release: blocks leave the buffer. */
static __always_inline void cbfc_release(struct cbfc_rx *rx, u64 blocks)
{
	rx->held -= blocks;
}

static __always_inline u64 cbfc_fccl(const struct cbfc_rx *rx, const struct cbfc_params *p)
{
	return rx->abr + p->buffer_blocks - rx->held;
}

/* cbfc_resync: an update of the other direction says how many blocks were sent before it. */
static __always_inline void cbfc_resync(struct cbfc_rx *rx, u64 fctbs)
{
	rx->abr = fctbs;
}

/* cbfc_tick: when the receiver says what changed at t_ns: the end of the period, or t_ns if that is one. */
static __always_inline u64 cbfc_tick(const struct cbfc_params *p, u64 t_ns)
{
	u64 period_ns = p->period_ns ?: 1;

	return (t_ns + period_ns - 1) / period_ns * period_ns;
}

#endif
