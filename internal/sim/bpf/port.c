// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The algorithms of a simulated switch port: what it marks, when it pauses its peer, and which
 * credits it has. The port itself (queues, link, PAUSE on the wire) is Go: ../port.go.
 *
 * This is compiled for wasm32, to run; and for BPF, for the layout of its structs in BTF.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include "include/marker.h"
#include "algo/param.h"
#include "algo/cbfc.h"
#include "algo/fecn.h"
#include "algo/npecn.h"
#include "algo/pfc.h"
#include "algo/pfc_watchdog.h"
#include "algo/qcn.h"
#include "algo/red.h"
#include "algo/tcd.h"
#ifdef OWN_MARKER
#include OWN_MARKER
#endif

/* The marking rules, by their names in schemes. */
enum port_marker {
	PORT_MARKER_NONE,
	PORT_MARKER_NPECN,
	PORT_MARKER_RED,
	PORT_MARKER_QCN,
	PORT_MARKER_FECN,
	PORT_MARKER_OWN,
};

/* The same for all switch ports of a run. Written once. */
struct port_params {
	u32 marker; /* enum port_marker */
	u32 tcd;    /* TCD marks */
	u32 watch;  /* all detectors say what they would mark */
	u32 pad;
	u64 max_ton_ns; /* TCD's max(T_on); 0: no TCD */
	u64 over_bytes; /* the queue that TCD calls over, if it only says so */
	u64 ecn_bytes;	/* the threshold of plain ECN, which only says so */
	struct red_params red;
	struct qcn_cp_params qcn;
	struct fecn_params fecn;
	struct pfc_params pfc;
	struct cbfc_params cbfc;
	struct pfc_watchdog_params watchdog;
#ifdef OWN_MARKER
	struct own_marker_params own;
#endif
};

struct port_params port_params = {};

/* What detectors said of the packets of a bin. The simulator clears it. */
struct port_detected {
	u32 npecn, ecn, fecn, tcd_ce, tcd_ue;
	u32 tcd_state; /* after the latest packet; never cleared */
};

/* The sending end of a link: a port. */
struct port_state {
	u64 rate_bps;
	u32 random; /* of its choices; not 0 */
	u32 pad;
	struct red_params red; /* those of all, unless the simulator scales them */
	struct qcn_cp cp;
	struct port_detected said;
};

/* A class of it. */
struct port_class {
	struct npecn_cp npecn;
	struct fecn_cp fecn;
	struct tcd_cp tcd;
	struct cbfc_tx credits;
#ifdef OWN_MARKER
	struct own_marker own;
#endif
};

/* A class at the receiving end. */
struct port_ingress {
	struct pfc_params pfc; /* those of all, unless the simulator scales them */
	struct pfc_repeat repeat;
	struct cbfc_rx credits;
	struct pfc_watchdog watchdog; /* of the queue at the same port */
};

/* A packet that starts on the wire. */
struct departure {
	u64 t_ns;
	u64 sojourn_ns;
	u64 queue_bytes; /* that it leaves behind, of its class */
	u32 queue_packets;
	u32 len;
	u32 not_ect;
	u32 waited; /* for a RESUME or for credits */
};

/* What a departing packet becomes: one of these, or QCN's feedback << PORT_FEEDBACK_SHIFT. */
enum port_verdict {
	PORT_CE = 1,
	PORT_UE = 2,
	PORT_FEEDBACK_SHIFT = 8,
};

/* What the simulator says of a departing packet. */
enum port_flags {
	PORT_WAITED = 1,  /* for a RESUME or for credits */
	PORT_NOT_ECT = 2, /* not ECN-capable, and WRED let it pass: it is never marked */
	/* << this: packets before that it did not ask about, see port_calm_bytes */
	PORT_CALM_SHIFT = 8,
};

/* BTF has the types of variables. */
struct {
	struct port_state port;
	struct port_class class;
	struct port_ingress ingress;
	enum port_marker marker;
	enum port_verdict verdict;
	enum port_flags flags;
	enum pfc_action action;
	enum pfc_watchdog_verdict found;
	enum tcd_state state;
} port_types = {};

#ifdef __wasm__

SIMULATED("port_params") struct port_params *port_params_address(void)
{
	return &port_params;
}

#ifdef OWN_MARKER
SIMULATED("port_own_params") struct own_marker_params *port_own_params_address(void)
{
	return &port_params.own;
}
#endif

/* With a marking rule of one's own it is longer than BTF says. */
SIMULATED("port_class_size") u32 port_class_size(void)
{
	return sizeof(struct port_class);
}

SIMULATED("port_init") void port_init(struct port_state *p, u32 seed, u64 rate_bps)
{
	*p = (struct port_state){.random = seed, .rate_bps = rate_bps, .red = port_params.red};
	if (port_params.marker == PORT_MARKER_QCN)
		qcn_cp_init(&p->cp, &port_params.qcn, seed);
}

/* A class begins with all credits. */
SIMULATED("port_class_init")
void port_class_init(struct port_class *c, struct port_ingress *in)
{
	*in = (struct port_ingress){.pfc = port_params.pfc};
	*c = (struct port_class){};
	cbfc_tx_init(&c->credits, &port_params.cbfc);
}

static __always_inline u32 mark(struct port_state *p, struct port_class *c,
				const struct departure *d, bool npecn, bool fecn)
{
	switch (port_params.marker) {
	case PORT_MARKER_NPECN:
		return npecn ? PORT_CE : 0;
	case PORT_MARKER_RED:
		if (d->not_ect)
			return 0;
		return red_mark(&p->red, d->queue_bytes, random_next(&p->random)) ? PORT_CE : 0;
	case PORT_MARKER_QCN:
		return qcn_cp_packet(&p->cp, &port_params.qcn, d->queue_bytes, d->len).qntz_fb
		       << PORT_FEEDBACK_SHIFT;
	case PORT_MARKER_FECN:
		return fecn ? PORT_CE : 0;
#ifdef OWN_MARKER
	case PORT_MARKER_OWN: {
		struct mark_event e = {
			.now_ns = d->t_ns,
			.sojourn_ns = d->sojourn_ns,
			.queue_bytes = d->queue_bytes,
			.rate_bps = p->rate_bps,
			.len_bytes = d->len,
			.random = random_next(&p->random),
		};

#ifdef OWN_FEEDBACK
		return own_feedback(&port_params.own, &c->own, &e) << PORT_FEEDBACK_SHIFT;
#else
		return own_mark(&port_params.own, &c->own, &e) ? PORT_CE : 0;
#endif
	}
#endif
	}
	return 0;
}

/* TCD takes the marker's verdict for "over", and has the last word if it marks. */
static __always_inline u32 ternary(struct port_state *p, struct port_class *c,
				   const struct departure *d, u32 verdict)
{
	bool over = port_params.tcd ? verdict & PORT_CE : d->queue_bytes > port_params.over_bytes;
	enum tcd_verdict says =
		tcd_dequeue(&c->tcd, port_params.max_ton_ns, d->t_ns, d->queue_bytes, over);

	p->said.tcd_state = c->tcd.state;
	p->said.tcd_ce += says == TCD_MARK_CE;
	p->said.tcd_ue += says == TCD_MARK_UE;
	if (!port_params.tcd)
		return verdict;
	return says == TCD_MARK_CE ? PORT_CE : says == TCD_MARK_UE ? PORT_UE : 0;
}

/*
 * The simulator need not ask about a packet that leaves a queue shorter than this: nothing happens
 * to it, and nothing changes but the port's random number, once a packet.
 */
SIMULATED("port_calm_bytes") u64 port_calm_bytes(const struct port_state *p)
{
	if (port_params.marker != PORT_MARKER_RED || port_params.watch || port_params.max_ton_ns)
		return 0;
	return p->red.kmin_bytes;
}

/* A packet starts. */
SIMULATED("port_depart")
u32 port_depart(struct port_state *p, struct port_class *c, u64 t_ns, u64 sojourn_ns,
		u64 queue_bytes, u32 queue_packets, u32 len, u32 flags)
{
	struct departure d = {
		.t_ns = t_ns,
		.sojourn_ns = sojourn_ns,
		.queue_bytes = queue_bytes,
		.queue_packets = queue_packets,
		.len = len,
		.not_ect = flags & PORT_NOT_ECT,
		.waited = flags & PORT_WAITED,
	};
	bool npecn = false, fecn = false;
	u32 verdict;

	for (u32 calm = flags >> PORT_CALM_SHIFT; calm; calm--)
		random_next(&p->random);
	if (port_params.watch || port_params.marker == PORT_MARKER_NPECN)
		npecn = npecn_transmit(&c->npecn, queue_packets);
	if (port_params.watch || port_params.marker == PORT_MARKER_FECN)
		fecn = fecn_mark(&c->fecn, &port_params.fecn, queue_bytes, len, d.waited);
	verdict = mark(p, c, &d, npecn, fecn);
	if (port_params.watch) {
		p->said.npecn += npecn;
		p->said.fecn += fecn;
		p->said.ecn += queue_bytes > port_params.ecn_bytes;
	}
	if (port_params.max_ton_ns)
		verdict = ternary(p, c, &d, verdict);
	return verdict;
}

/* A class may send again: a RESUME came, or credits. */
SIMULATED("port_on")
void port_on(struct port_class *c, u64 t_ns, u32 queue_packets, u64 queue_bytes)
{
	npecn_resume(&c->npecn, queue_packets);
	if (port_params.max_ton_ns)
		tcd_on(&c->tcd, t_ns, queue_bytes);
}

/*
 * A packet came in by an ingress port, or left: now it holds so many bytes. Returns enum
 * pfc_action, and << 8 how many frames a switch that repeats PAUSE would have sent.
 */
SIMULATED("port_ingress")
u32 port_ingress(struct port_ingress *in, u64 t_ns, u32 arrived, u32 pausing, u64 held,
		 u64 free_bytes)
{
	bool over = held > pfc_xoff_bytes(&in->pfc, free_bytes);
	u32 frames = pfc_repeat(&in->repeat, t_ns, arrived, over);

	return frames << 8 | pfc_check(&in->pfc, pausing, held, free_bytes);
}

/* The RESUME threshold with so many bytes free: the most at which an ingress port goes on. */
SIMULATED("port_xon") u64 port_xon(const struct port_ingress *in, u64 free_bytes)
{
	u64 xoff = pfc_xoff_bytes(&in->pfc, free_bytes);

	return xoff > in->pfc.xon_offset_bytes ? xoff - in->pfc.xon_offset_bytes : 0;
}

/* The watchdog looks at the queue of an ingress port. Returns enum pfc_watchdog_verdict. */
SIMULATED("watchdog_poll")
u32 watchdog_poll(struct port_ingress *in, u64 t_ns, u32 paused, u64 paused_since_ns)
{
	return pfc_watchdog_poll(&port_params.watchdog, &in->watchdog, t_ns, paused,
				 paused_since_ns);
}

/* A PAUSE or a RESUME came for a queue that does not obey. */
SIMULATED("watchdog_hears") void watchdog_hears(struct port_ingress *in, u64 t_ns, u32 pause)
{
	pfc_watchdog_hears(&in->watchdog, t_ns, pause);
}

SIMULATED("credits_may_send") u32 credits_may_send(const struct port_class *c, u32 len)
{
	return cbfc_may_send(&c->credits, cbfc_blocks(len));
}

SIMULATED("credits_send") void credits_send(struct port_class *c, u32 len)
{
	cbfc_send(&c->credits, cbfc_blocks(len));
}

SIMULATED("credits_receive") void credits_receive(struct port_ingress *in, u32 len)
{
	cbfc_receive(&in->credits, cbfc_blocks(len));
}

/* Returns how many blocks are free again. */
SIMULATED("credits_release") u64 credits_release(struct port_ingress *in, u32 len)
{
	cbfc_release(&in->credits, cbfc_blocks(len));
	return cbfc_blocks(len);
}

/* When an update tells of blocks that are free as of t_ns. */
SIMULATED("credits_tick") u64 credits_tick(u64 t_ns)
{
	return cbfc_tick(&port_params.cbfc, t_ns);
}

SIMULATED("credits_update") void credits_update(struct port_class *c, u64 blocks)
{
	cbfc_tx_update(&c->credits, c->credits.fccl + blocks);
}

#endif
