/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Priority-based flow control (PFC), 802.1Qbb: when to send PAUSE and RESUME.
 *
 * Each ingress port and class counts its bytes in the switch. It sends PAUSE when they rise above
 * XOFF and RESUME when they fall to XON. XOFF is static, or alpha times the free part of the shared
 * buffer, as in shared-buffer switches. XON is xon_offset below XOFF.
 *
 * A PAUSE here holds until the RESUME. In real switches and in simulators a PAUSE expires, so they
 * repeat it. How many frames that would be is counted, to compare counts with theirs.
 */
#ifndef PCN_ALGO_PFC_H
#define PCN_ALGO_PFC_H

/* alpha is in units of 2^-8: 1/8 is 32, 1 is 256. */
#define PFC_ALPHA_SHIFT 8

struct pfc_params {
	u64 xoff_bytes;	      /* static threshold; ignored if alpha is set */
	u64 xon_offset_bytes; /* XOFF - XON */
	u32 alpha;	      /* Q8; 0: XOFF is static */
	u32 pad;
};

enum pfc_action {
	PFC_NONE,
	PFC_PAUSE,
	PFC_RESUME,
};

static __always_inline u64 pfc_xoff_bytes(const struct pfc_params *p, u64 free_bytes)
{
	return p->alpha ? (free_bytes * p->alpha) >> PFC_ALPHA_SHIFT : p->xoff_bytes;
}

/*
 * What to send to the upstream port. pausing: it was told to pause. ingress_bytes came from it and
 * are still here. An empty ingress always resumes.
 */
static __always_inline enum pfc_action pfc_check(const struct pfc_params *p, bool pausing,
						 u64 ingress_bytes, u64 free_bytes)
{
	u64 xoff = pfc_xoff_bytes(p, free_bytes);
	u64 xon = xoff > p->xon_offset_bytes ? xoff - p->xon_offset_bytes : 0;

	if (!pausing)
		return ingress_bytes > xoff ? PFC_PAUSE : PFC_NONE;
	return ingress_bytes <= xon ? PFC_RESUME : PFC_NONE;
}

#define PFC_REPEAT_NS 2500 /* half of the time that a PAUSE of ns3-rdma holds */

/* An ingress port and class of a switch that repeats PAUSE. */
struct pfc_repeat {
	u64 last_ns; /* when the last frame was sent */
	u32 over;    /* the bytes have been above XOFF since then */
	u32 pad;
};

/*
 * A packet arrived or left at t_ns; now the bytes are above XOFF, or not. Returns how many PAUSE
 * frames a switch has sent since the previous change: one for each period after the last frame, and
 * one for a packet that arrives while the bytes are above XOFF. This is what ns3-rdma does
 * (qbb-net-device.cc, CheckQueueFull), on which the simulators of PCN and TCD are built.
 */
static __always_inline u32 pfc_repeat(struct pfc_repeat *r, u64 t_ns, bool arrived, bool above_xoff)
{
	u32 frames = 0;

	if (r->over && t_ns > r->last_ns) {
		frames = (t_ns - r->last_ns) / PFC_REPEAT_NS;
		r->last_ns += (u64)frames * PFC_REPEAT_NS;
	}
	r->over = above_xoff && (arrived || r->over);
	if (arrived && above_xoff) {
		frames++;
		r->last_ns = t_ns;
	}
	return frames;
}

#endif
