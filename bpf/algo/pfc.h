/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Priority-based flow control, 802.1Qbb: when to send PAUSE and RESUME.
 *
 * Per ingress port and class: PAUSE when its bytes in the switch rise over XOFF, RESUME when they
 * fall to XON. XOFF is static, or alpha times the switch's free shared buffer, as shared-buffer
 * switches do; XON lies xon_offset below it.
 *
 * A PAUSE here holds until the RESUME. Switches whose PAUSE expires repeat it, and so do
 * simulators. How many frames that would be is counted, so that counts can be compared.
 */
#ifndef PCN_ALGO_PFC_H
#define PCN_ALGO_PFC_H

/* alpha is Q8: 1/8 is 32, 1 is 256. */
#define PFC_ALPHA_SHIFT 8

struct pfc_params {
	u64 xoff_bytes;	      /* static threshold; ignored if alpha is set */
	u64 xon_offset_bytes; /* XOFF - XON */
	u32 alpha;	      /* Q8; 0: static */
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
 * pfc_check: what to tell the upstream port, given whether it has been told to pause, the bytes
 * that came from it and are still here, and the shared buffer's free bytes. An empty ingress always
 * resumes.
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

#define PFC_REPEAT_NS 2500 /* half the time for which a PAUSE of ns3-rdma holds */

/* An ingress port and class of a switch that repeats PAUSE. */
struct pfc_repeat {
	u64 last_ns; /* of the last frame */
	u32 over;    /* since then the bytes have been over XOFF */
	u32 pad;
};

/*
 * pfc_repeat: at t_ns a packet came, or left, after which the bytes are over XOFF, or not. Returns
 * how many PAUSE frames a switch has sent since the last change: one in each period after the last
 * frame, and one for a packet that came and finds the bytes over XOFF. This is what ns3-rdma does
 * (qbb-net-device.cc, CheckQueueFull), which the simulators of PCN and TCD are built on.
 */
static __always_inline u32 pfc_repeat(struct pfc_repeat *r, u64 t_ns, bool came, bool over)
{
	u32 frames = 0;

	if (r->over && t_ns > r->last_ns) {
		frames = (t_ns - r->last_ns) / PFC_REPEAT_NS;
		r->last_ns += (u64)frames * PFC_REPEAT_NS;
	}
	r->over = over && (came || r->over);
	if (came && over) {
		frames++;
		r->last_ns = t_ns;
	}
	return frames;
}

#endif
