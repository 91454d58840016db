/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QCN (quantized congestion notification), 802.1Qau: congestion point (CP) and reaction point (RP).
 *
 *	CP  a sample every so many bytes sent:
 *	      Fb = -(Q_off + w * Q_delta),  Q_off = Q - Q_eq,  Q_delta = Q - Q_old
 *	      Fb < 0: send its 6-bit quantisation to the sampled packet's source, in a CNM
 *	      the larger it is, the sooner the next sample
 *	RP  CNM:  TR = CR, except in the first cycle since the last cut (extra fast recovery)
 *		  CR = CR * max(1/2, 1 - QntzFb * G_d)
 *	    timer, byte counter: recovery.h
 */
#ifndef PCN_ALGO_QCN_H
#define PCN_ALGO_QCN_H

#include "fixed.h"
#include "recovery.h"

#define QCN_FB_MAX 63

#define QCN_W_SHIFT 8 /* w is Q8 */

struct qcn_cp_params {
	/* Below 2^32; 0: no congestion point */
	u64 qeq_bytes PARAM("Q_eq, the queue to keep (CP; MIB: cpQueueSizeSetPoint)", "1KB to 1GB",
			    "26000B * max(line_rate, 10Gbps) / 10Gbps");
	/* Below 2^32 */
	u64 sample_base_bytes
		PARAM("Bytes between two samples without congestion (CP; MIB: MinSampleBase)",
		      "1KB to 1GB", "150KB");
	q8 w PARAM("Weight of the queue's growth in the feedback (CP; MIB: cpFeedbackWeight)",
		   "1/256 to 64", "2");
	q24 jitter KEY("sample_jitter")
		PARAM("Share by which the distance of two samples varies, up and down (CP)",
		      "0 to 0.5", "0.15");
};

struct qcn_cp {
	s64 credit_bytes; /* until the next sample */
	u64 q_old_bytes;
	u32 random; /* state of random_next, not 0 */
	u32 pad;
};

struct qcn_sample {
	s64 qoff_bytes, qdelta_bytes;
	u32 qntz_fb; /* 0: send nothing */
	u32 pad;
};

static __always_inline void qcn_cp_init(struct qcn_cp *cp, const struct qcn_cp_params *p, u32 seed)
{
	*cp = (struct qcn_cp){.credit_bytes = p->sample_base_bytes, .random = seed ?: 1};
}

/* 63 at |Fb| = Q_eq * (2 w + 1) and above. */
static __always_inline u32 qcn_quantise(const struct qcn_cp_params *p, u64 fb_bytes)
{
	u64 top = (p->qeq_bytes * (2 * p->w + (1 << QCN_W_SHIFT))) >> QCN_W_SHIFT;

	if (fb_bytes >= top)
		return QCN_FB_MAX;
	return fb_bytes * QCN_FB_MAX / top;
}

/* Bytes until the next sample: the base divided by 1 to 8, plus or minus the jitter. */
static __always_inline s64 qcn_credit(struct qcn_cp *cp, const struct qcn_cp_params *p, u32 qntz_fb)
{
	u64 mean = p->sample_base_bytes / (1 + (qntz_fb >> 3));
	u64 spread = q24_scale(mean, p->jitter);

	return mean - spread + ((2 * spread * random_next(&cp->random)) >> 32);
}

/* The packet leaves queue_bytes behind. */
static __always_inline struct qcn_sample
qcn_cp_packet(struct qcn_cp *cp, const struct qcn_cp_params *p, u64 queue_bytes, u32 len)
{
	struct qcn_sample s = {};
	s64 fb;

	cp->credit_bytes -= len;
	if (cp->credit_bytes > 0)
		return s;
	s.qoff_bytes = (s64)(queue_bytes - p->qeq_bytes);
	s.qdelta_bytes = (s64)(queue_bytes - cp->q_old_bytes);
	cp->q_old_bytes = queue_bytes;
	fb = s.qoff_bytes + ((s.qdelta_bytes * (s64)p->w) >> QCN_W_SHIFT); /* -Fb */
	if (fb > 0)
		s.qntz_fb = qcn_quantise(p, fb);
	cp->credit_bytes = qcn_credit(cp, p, s.qntz_fb);
	return s;
}

/* Bytes in the units of a CNM: 64 bytes, rounded down, limited to 16 bits. */
static __always_inline s16 qcn_units(s64 bytes)
{
	s64 units = bytes >> 6;

	if (units < -0x8000)
		return -0x8000;
	return units > 0x7fff ? 0x7fff : units;
}

struct qcn_rp_params {
	/* clang-format off */
	struct recovery_params recovery
		OF("byte_counter_bytes", "range:1KB to 10GB")
		OF("byte_counter_bytes",
		   "doc:Bytes sent in a cycle of the byte counter (RP; MIB: rpgByteReset)")
		OF("timer_ns", "doc:Period of the increase timer (RP; MIB: rpgTimeReset)")
		OF("threshold", "doc:Cycles of fast recovery (RP; MIB: rpgThreshold)")
		OF("rai_bps", "doc:R_AI, the step of active increase (RP; MIB: rpgAiRate)")
		OF("rhai_bps", "doc:R_HAI, the step of hyper increase (RP; MIB: rpgHaiRate)")
		OF("min_rate_bps", "doc:Least rate of a flow (RP; MIB: rpgMinRate)")
		OF("hyper_bytes", "from:hai_after_packets * frame")
		OF("half", "key:half_from")
		OF("half", "range:ai or hai")
		OF("half", "default:ai")
		OF("half", "doc:Stage from which on the timer and the byte counter run twice as "
		   "fast (RP): ai, active increase (slides), or hai, hyper increase (ns3-rdma)");
	/* clang-format on */
	q24 gd PARAM("G_d, the share of the rate that each of the 63 steps of feedback cuts "
		     "(RP; MIB: rpgGd)",
		     "1/65536 to 1", "1/128");
	q24 min_decrease_factor
		PARAM("Least share of the rate that is left after a cut (RP; MIB: rpgMinDecFac)",
		      "1/65536 to 1", "0.5");
	u32 hai_after_packets KEY("hai_after_packets")
		PARAM("Packets to send after a cut before hyper increase (RP; slides)",
		      "0 to 1000000", "500");
	u32 pad;
};

struct qcn_rp {
	struct recovery recovery;
	u64 limited; /* a CNM arrived; before, there is no rate limiter and nothing to recover */
};

static __always_inline void qcn_rp_init(struct qcn_rp *rp, const struct qcn_rp_params *p,
					u64 now_ns)
{
	*rp = (struct qcn_rp){};
	recovery_init(&rp->recovery, &p->recovery, now_ns);
}

static __always_inline void qcn_rp_advance(struct qcn_rp *rp, const struct qcn_rp_params *p,
					   u64 now_ns, u64 sent_bytes)
{
	if (rp->limited)
		recovery_advance(&rp->recovery, &p->recovery, now_ns, sent_bytes);
}

/* qntz_fb is 1 to 63. */
static __always_inline void qcn_rp_cnm(struct qcn_rp *rp, const struct qcn_rp_params *p, u64 now_ns,
				       u64 sent_bytes, u32 qntz_fb)
{
	struct recovery *r = &rp->recovery;
	u32 factor = Q24_ONE - (u64)qntz_fb * p->gd;

	qcn_rp_advance(rp, p, now_ns, sent_bytes);
	if ((u64)qntz_fb * p->gd > Q24_ONE || factor < p->min_decrease_factor)
		factor = p->min_decrease_factor;
	recovery_cut(r, &p->recovery, now_ns, sent_bytes, q24_scale(r->rate_bps, factor),
		     rp->limited && !r->byte_stage);
	rp->limited = 1;
}

/* A loss or a timeout halves the rate. The standard has no rule for it: its fabric is lossless. */
static __always_inline void qcn_rp_loss(struct qcn_rp *rp, const struct qcn_rp_params *p,
					u64 now_ns, u64 sent_bytes)
{
	recovery_cut(&rp->recovery, &p->recovery, now_ns, sent_bytes, rp->recovery.rate_bps / 2,
		     false);
	rp->limited = 1;
}

#endif
