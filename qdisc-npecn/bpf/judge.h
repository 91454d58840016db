/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a port says of each packet that it sends: the marker's verdict, what other detectors would
 * have said, and TCD's third answer. They go by the queue that the packet leaves behind: who had
 * ideally arrived when it started.
 */
#ifndef NPECN_JUDGE_H
#define NPECN_JUDGE_H

#include "port.h"

/* A packet that starts on the wire. */
struct departure {
	const struct packet *packet;
	u32 len;
	u32 class;
	u64 t_ns;
	bool waited; /* for a RESUME or for credits */
	/* what the markers that have a state of their own say, each packet once */
	bool npecn, fecn;
};

/* congestion_point: QCN's. Returns the verdict, and in *queue what the CNM says of the queue. */
static __always_inline u8 congestion_point(struct port *p, struct tclass *k, u32 len, u32 *queue)
{
	struct qcn_sample s = qcn_cp_packet(&k->qcn, &p->config.qcn, k->arrived_bytes, len);

	*queue = (u32)(u16)qcn_units(s.qoff_bytes) << 16 | (u16)qcn_units(s.qdelta_bytes);
	return s.qntz_fb << CARRY_FB_SHIFT;
}

#ifdef OWN_MARKER
static __always_inline u8 mark_own(struct port *p, struct tclass *k, const struct departure *d)
{
	struct mark_event e = {
		.now_ns = d->t_ns,
		.sojourn_ns = d->t_ns - d->packet->t_ns,
		.queue_bytes = k->arrived_bytes,
		.rate_bps = p->state.rate_bps,
		.len_bytes = d->len,
		.random = random_next(&p->state.random),
	};

	return own_mark(&p->own.params, &p->own.state[d->class & (CLASSES - 1)], &e) ? CARRY_CE : 0;
}
#endif

/* mark: the verdict of the port's marker; in *queue what a CNM says of the queue. */
static __always_inline u8 mark(struct port *p, struct tclass *k, const struct departure *d,
			       u32 *queue)
{
	switch (p->config.marker) {
	case MARKER_NPECN:
		return d->npecn ? CARRY_CE : 0;
	case MARKER_RED:
		if (!(uses & USE_RED))
			break;
		if (p->config.wred_bytes && d->packet->not_ect)
			return 0; /* WRED let it pass */
		return red_mark(&p->config.red, k->arrived_bytes, random_next(&p->state.random))
			       ? CARRY_CE
			       : 0;
	case MARKER_QCN:
		if (!(uses & USE_QCN))
			break;
		return congestion_point(p, k, d->len, queue);
	case MARKER_FECN:
		return d->fecn ? CARRY_CE : 0;
#ifdef OWN_MARKER
	case MARKER_OWN:
		return mark_own(p, k, d);
#endif
	}
	return 0;
}

/* observe: count what the detectors say, whether they mark or not. */
static __always_inline void observe(struct port *p, const struct tclass *k,
				    const struct departure *d)
{
	struct detected *said = &p->state.bin.detected;

	said->npecn += d->npecn;
	said->fecn += d->fecn;
	said->ecn += k->arrived_bytes > p->config.detect.ecn_bytes;
}

/* ternary: TCD on top of the marker's verdict. Returns the verdict that holds. */
static __always_inline u8 ternary(struct port *p, struct tclass *k, u64 t_ns, u8 verdict)
{
	const struct detection *detect = &p->config.detect;
	struct detected *said = &p->state.bin.detected;
	bool over = detect->tcd ? verdict & CARRY_CE : k->arrived_bytes > detect->over_bytes;
	enum tcd_verdict tcd =
		tcd_dequeue(&k->tcd, detect->max_ton_ns, t_ns, k->arrived_bytes, over);

	p->state.tcd_state = k->tcd.state;
	said->tcd_ce += tcd == TCD_MARK_CE;
	said->tcd_ue += tcd == TCD_MARK_UE;
	if (!detect->tcd)
		return verdict;
	return tcd == TCD_MARK_CE ? CARRY_CE : tcd == TCD_MARK_UE ? CARRY_UE : 0;
}

/* judge: the verdict on a packet of class k that starts; in *queue what a CNM says of the queue. */
static __always_inline u8 judge(struct port *p, struct tclass *k, struct departure *d, u32 *queue)
{
	u32 marker = p->config.marker;
	bool watch = uses & USE_DETECTORS && p->config.detect.watch;
	u8 verdict;

	*queue = 0;
	if (!k->config.marked)
		return 0;
	if (watch || marker == MARKER_NPECN)
		d->npecn = npecn_transmit(&k->npecn, queue_packets(k));
	if (uses & (USE_DETECTORS | USE_FECN) && (watch || marker == MARKER_FECN))
		d->fecn = fecn_mark(&k->fecn, &p->config.fecn, k->arrived_bytes, d->len, d->waited);
	verdict = mark(p, k, d, queue);
	if (watch)
		observe(p, k, d);
	if (uses & USE_DETECTORS && p->config.detect.max_ton_ns)
		verdict = ternary(p, k, d->t_ns, verdict);
	return verdict;
}

#endif
