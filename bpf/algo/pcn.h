/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PCN's end points: the reaction point (RP, Algorithm 1) and the notification point (NP, Fig. 8).
 *
 * Cheng et al., Re-architecting Congestion Management in Lossless Ethernet, NSDI 2020.
 *
 *	RP  sendRate = lineRate, w = w_min
 *	    per CNP (CE, recRate):
 *	      CE:  sendRate = min(sendRate, recRate * (1 - w_min))
 *		   w = w_min
 *	      else sendRate = sendRate * (1 - w) + lineRate * w
 *		   w = w * (1 - w) + w_max * w
 *
 *	NP  counts recNum, recData and ECNNum per flow over T, from the first packet on, then sends
 *	      ECNNum / recNum > 95%:  CNP(CE, recData / Timer),
 *				      or CNP(CE, pSize / interArrivalTime) if recNum = 1
 *	      else:                   CNP(not CE, 0)
 *
 * Two differences from the paper: sendRate has a floor, since RecRate counts in units of 1 Mbit/s,
 * and a flow at rate 0 would never get another CNP; and unless its windows are periodic, NP closes
 * one at the first packet after T, see pcn_np_packets. On hosts, where a flow may have less than a
 * packet in T, there are more: see catch_up.
 *
 * Pure: no maps, no helpers, integers only. Rates are in bit/s, times in ns, weights in Q24.
 */
#ifndef PCN_ALGO_PCN_H
#define PCN_ALGO_PCN_H

#include "doubt.h"
#include "fixed.h"

/* What reports marks to the sender. */
enum pcn_feedback {
	PCN_FEEDBACK_CNP,  /* CNPs only: the paper */
	PCN_FEEDBACK_ACK,  /* ACKs only, with AccECN where TCP has it */
	PCN_FEEDBACK_AUTO, /* ACKs as long as no CNPs arrive */
	PCN_FEEDBACK_ECE,  /* ACKs only, by the ECE flag of RFC 3168 */
};

struct pcn_rp_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps KEY("min_rate")
		PARAM("Least rate of a flow", "rate_unit to line_rate", "rate_unit");
	/* 20 steps of Fig. 10 stay within 0.01% */
	/* auto: 0.1/N, sec. 6.2: all flows' first increases together are a tenth of the link */
	q24 w_min PARAM("w_min of Algorithm 1", "1/65536 to w_max", "1/128")
		AUTO("min(1 / 128, max(1 / 65536, 1 / (10 * flows)))");
	q24 w_max PARAM("w_max of Algorithm 1", "w_min to below 1", "0.5");
	enum pcn_feedback feedback PARAM(
		"What reports marks to senders: cnp; ack (AccECN of TCP) or ece (RFC 3168), with "
		"which receivers send no CNPs; or auto, ACKs as long as no CNPs arrive",
		"", "cnp") HOST("auto");
	/*
	 * A flow with less than a packet in T gets a CNP a packet. So Algorithm 1 raises its rate
	 * in proportion to the rate itself, and flows that have little keep little.
	 */
	u32 catch_up PARAM("Most periods T that a CNP stands for, if none came meanwhile; and what "
			   "a flow gained since the measured packets left is kept. 0: as in "
			   "Algorithm 1",
			   "0 to 64", "0") HOST("8");
	u64 t_ns FROM("T");
	/*
	 * RecRate tells the network's share only if the sender has more to send than it may. Of a
	 * client that sends a request now and then it tells how much it asks for.
	 */
	q24 idle_cut PARAM("Most of its rate that a flow loses by one CNP while its application, "
			   "not the network, holds it back; 1: as in Algorithm 1",
			   "0 to 1", "1") HOST("1/8");
	/*
	 * Downloads and requests swing together between too fast and too slow, and a request that
	 * takes a few swings has an equal share at best. Short flows gain more from a larger share
	 * than long ones lose.
	 */
	u32 young_bytes KEY("young")
		PARAM("After its start, and after a pause of its application of T or longer, a "
		      "flow is young until so many bytes of frames are acknowledged; 0: never",
		      "0 to 1GB", "0") HOST("1MB");
	q24 w_young
		PARAM("w of Algorithm 1 after a decrease of a young flow, if w_min is less: how "
		      "fast it recovers",
		      "1/65536 to below 1", "1/128") HOST("1/16");
	/*
	 * N flows that all increase gain N w of the link in T, and hear of it 2 T later. As w grows
	 * by a half each T, they ask for a multiple of the link by then. The cut takes nearly all
	 * of what each had, and what a flow has next depends on how many CNPs it got meanwhile.
	 */
	u32 patience PARAM("After a decrease w does not grow before so many CNPs without CE in a "
			   "row, of which only one counts in a round trip; 0: as in Algorithm 1",
			   "0 to 64", "0") HOST("8");
	/*
	 * With segmentation offload TCP sends up to 64 KB at once, at any rate. At a switch one
	 * such burst of a slow flow is a queue, and its packets are all marked or none.
	 */
	u64 burst_ns KEY("burst")
		PARAM("Longest burst: packets that leave back to back last this long at the "
		      "flow's rate; 0: TCP decides",
		      "0 to 10ms", "0ns") HOST("min(10ms, base_rtt / 4)");
	struct doubt_params doubt;
};

struct pcn_rp {
	u64 send_rate_bps;
	u64 before_bps, before_last_bps; /* the rate before the latest CNP, and the one before */
	u64 heard_ns;			 /* when the latest CNP came; 0: none did */
	q24 w STAT("w of Algorithm 1");
	u32 app_limited; /* the latest ACK says that the application had no more to send */
	u32 young_bytes; /* that the flow is young for; 0: it is not */
	u32 quiet_cnps;	 /* without CE since the latest decrease, one in a round trip */
	u64 quiet_ns;	 /* when the latest one came, or the decrease */
	u64 rtt_ns;	 /* smoothed, as of the latest ACK; 0: not known */
};

static __always_inline u64 pcn_floor(u64 rate_bps, const struct pcn_rp_params *p)
{
	return rate_bps < p->min_rate_bps ? p->min_rate_bps : rate_bps;
}

/* w after the start and after a decrease. */
static __always_inline q24 pcn_least_w(const struct pcn_rp *rp, const struct pcn_rp_params *p)
{
	return rp->young_bytes && p->w_young > p->w_min ? p->w_young : p->w_min;
}

static __always_inline void pcn_rp_init(struct pcn_rp *rp, const struct pcn_rp_params *p)
{
	rp->send_rate_bps = p->line_rate_bps; /* Algorithm 1, line 1 */
	rp->young_bytes = p->young_bytes;
	rp->w = pcn_least_w(rp, p); /* line 2 */
	rp->before_bps = rp->before_last_bps = 0;
	rp->heard_ns = 0;
	rp->quiet_cnps = 0;
	rp->quiet_ns = rp->rtt_ns = 0;
}

/*
 * What the flow would receive at its present rate. RecRate is that of packets that left before the
 * latest two CNPs came, and so at the rate of then: NP closes a window at a packet behind it, and
 * that packet left before the CNP of the window before arrived. If packets are far apart, that is
 * long ago, and RecRate itself would take back whatever the flow has gained since.
 */
static __always_inline u64 pcn_present(const struct pcn_rp *rp, const struct pcn_rp_params *p,
				       u64 rec_rate_bps)
{
	u64 then_bps = rp->before_last_bps ?: p->line_rate_bps, present_bps = rp->send_rate_bps;

	if (rec_rate_bps < then_bps) /* rates are below 2^40 */
		present_bps = q24_scale(present_bps, (rec_rate_bps << Q24_SHIFT) / then_bps);
	return present_bps > rec_rate_bps ? present_bps : rec_rate_bps;
}

/* The CNP says CE: the flow is congested. */
static __always_inline void pcn_rp_decrease(struct pcn_rp *rp, const struct pcn_rp_params *p,
					    u64 rec_rate_bps)
{
	u64 target_bps;

	if (p->catch_up)
		rec_rate_bps = pcn_present(rp, p, rec_rate_bps);
	target_bps = pcn_floor(rec_rate_bps - q24_scale(rec_rate_bps, p->w_min), p);
	if (rp->app_limited && p->idle_cut < Q24_ONE) {
		u64 least_bps = rp->send_rate_bps - q24_scale(rp->send_rate_bps, p->idle_cut);

		if (target_bps < least_bps)
			target_bps = pcn_floor(least_bps, p);
	}
	if (target_bps < rp->send_rate_bps)
		rp->send_rate_bps = target_bps; /* line 6 */
	rp->w = pcn_least_w(rp, p);		/* line 7 */
}

/* The application paused for T or longer, and has something to send again. */
static __always_inline void pcn_rp_restart(struct pcn_rp *rp, const struct pcn_rp_params *p)
{
	rp->young_bytes = p->young_bytes;
}

/* So many bytes of frames were acknowledged. */
static __always_inline void pcn_rp_age(struct pcn_rp *rp, u32 acked_bytes)
{
	rp->young_bytes -= acked_bytes < rp->young_bytes ? acked_bytes : rp->young_bytes;
}

/* After a CNP without CE: whether w stays as it is. */
static __always_inline bool pcn_patient(struct pcn_rp *rp, const struct pcn_rp_params *p,
					u64 now_ns)
{
	if (rp->quiet_cnps >= p->patience)
		return false;
	if (now_ns - rp->quiet_ns >= rp->rtt_ns) {
		rp->quiet_cnps++;
		rp->quiet_ns = now_ns;
	}
	return true;
}

#define PCN_ONE_PERIOD 256U

/* The CNP does not say CE. It stands for so many periods T, in units of 1 / PCN_ONE_PERIOD. */
static __always_inline void pcn_rp_increase(struct pcn_rp *rp, const struct pcn_rp_params *p,
					    u64 now_ns, u32 periods)
{
	u64 gap_bps =
		p->line_rate_bps > rp->send_rate_bps ? p->line_rate_bps - rp->send_rate_bps : 0;
	u64 step_bps = q24_scale(gap_bps, rp->w), most_bps = 2 * rp->send_rate_bps;

	if (periods != PCN_ONE_PERIOD && step_bps < most_bps) {
		step_bps = step_bps * periods / PCN_ONE_PERIOD;
		if (step_bps > most_bps)
			step_bps = most_bps; /* the rate at most triples */
		if (step_bps > gap_bps)
			step_bps = gap_bps;
	}
	rp->send_rate_bps += step_bps; /* line 10 */
	if (pcn_patient(rp, p, now_ns))
		return;
	rp->w = rp->w - q24_scale(rp->w, rp->w) + q24_scale(rp->w, p->w_max); /* line 11 */
}

/*
 * For how many periods T this CNP stands, since no other came meanwhile: at most catch_up. They are
 * not rounded. A flow of a packet in 1.5 T would otherwise gain a third more than it should.
 */
static __always_inline u32 pcn_periods(struct pcn_rp *rp, const struct pcn_rp_params *p, u64 now_ns)
{
	u64 since_ns = now_ns - rp->heard_ns, most_ns = p->catch_up * p->t_ns;
	bool first = !rp->heard_ns || now_ns < rp->heard_ns;

	if (!p->catch_up || !p->t_ns)
		return PCN_ONE_PERIOD;
	rp->heard_ns = now_ns;
	if (first)
		return PCN_ONE_PERIOD;
	if (since_ns > most_ns)
		since_ns = most_ns; /* T is at most 1 s */
	return since_ns * PCN_ONE_PERIOD / p->t_ns;
}

static __always_inline void pcn_rp_cnp(struct pcn_rp *rp, const struct pcn_rp_params *p, u64 now_ns,
				       bool ce, u64 rec_rate_bps)
{
	u32 periods = pcn_periods(rp, p, now_ns);
	u64 rate_bps = rp->send_rate_bps;

	if (ce) {
		pcn_rp_decrease(rp, p, rec_rate_bps); /* lines 4 to 7 */
		rp->quiet_cnps = 0;
		rp->quiet_ns = now_ns;
	} else {
		pcn_rp_increase(rp, p, now_ns, periods); /* lines 8 to 11 */
	}
	rp->before_last_bps = rp->before_bps;
	rp->before_bps = rate_bps;
}

/*
 * A loss or a timeout halves the rate, and it recovers slowly. The paper has no rule for it: its
 * fabric is lossless.
 */
static __always_inline void pcn_rp_loss(struct pcn_rp *rp, const struct pcn_rp_params *p)
{
	rp->send_rate_bps = pcn_floor(rp->send_rate_bps / 2, p);
	rp->w = p->w_min;
	rp->quiet_cnps = 0;
}

#define PCN_RATE_UNIT_BPS 1000000 /* Fig. 9 */

/* When a window of NP begins. */
enum pcn_np_window {
	PCN_WINDOW_ARMED,    /* with the first packet behind the window before */
	PCN_WINDOW_PERIODIC, /* when the one before ends, from the flow's first packet on */
};

struct pcn_np_params {
	/*
	 * sec. 6.2: T is the largest RTT of the network. auto: also long enough for 192 frames of
	 * each of the flows that share a link. So half a frame, by which a count may be wrong, is a
	 * third of w_min = 1/128 (docs/findings.md).
	 */
	u64 t_ns KEY("T") PARAM("Period at which a receiver sends CNPs", "1us to 1s", "50us")
		AUTO("min(1s, max(max(1us, base_rtt), 192 * 8 * 1s * frame * flows / line_rate))");
	permille congested_permille KEY("congested_share")
		PARAM("Share of marked packets above which a receiver asks for a decrease",
		      "0 to 1", "0.95");
	/* Divides 8e9; 0: PCN_RATE_UNIT_BPS */
	u32 rate_unit_bps KEY("rate_unit")
		PARAM("What RecRate counts in CNPs (Fig. 9): 1kbps, 10kbps, 100kbps or 1Mbps",
		      "1kbps to 1Mbps", "1Mbps") DIVIDES("8Gbps");
	q24 t_jitter KEY("T_jitter")
		PARAM("Each window lasts T * (1 +- T_jitter), which keeps flows from synchronising",
		      "0 to 0.5", "0");
	/*
	 * A sender that has something to send is never slower than one unit of RecRate, its least
	 * rate. A packet that comes later than that rate lets it come was sent after a pause.
	 */
	flag pause_is_silence
		PARAM("A window's only packet that came too late even for the least rate tells no "
		      "rate, and asks for no decrease; false: as in Fig. 8, the pause divides",
		      "", "false") HOST("true");
	enum pcn_np_window window PARAM(
		"When a receiver's windows of T begin: armed, each with a packet; or periodic, one "
		"after the other from the flow's first packet on, as Fig. 8 reads",
		"", "armed");
	u32 pad;
};

struct pcn_np {
	u64 start_ns;	      /* Timer = now - start_ns */
	u64 last_ns;	      /* arrival of the latest packet */
	u64 inter_arrival_ns; /* between the latest two packets; 0: there was only one */
	u64 max_gap_ns;	      /* longest time between two packets of this window */
	u64 rec_data_bytes;
	u32 rec_num; /* packets of this window; 0: no window is open */
	u32 ecn_num;
};

struct pcn_np_cnp {
	u32 rec_rate; /* in units of the CNP's RecRate field */
	bool send;
	bool ce;
	u8 pad[2];
};

/*
 * What RecRate counts. The paper's "normalized by 1Mbps" is too coarse for a thousand flows at 10
 * Gbit/s.
 */
static __always_inline u32 pcn_rate_unit_bps(const struct pcn_np_params *p)
{
	return p->rate_unit_bps ? p->rate_unit_bps : PCN_RATE_UNIT_BPS;
}

/* bytes / ns in units of RecRate, rounded to nearest. At least 1, so RP never gets a rate of 0. */
static __always_inline u32 pcn_rec_rate(const struct pcn_np_params *p, u64 bytes, u64 ns)
{
	u64 rate;

	if (!ns)
		ns = 1;
	rate = (bytes * (8000000000 / pcn_rate_unit_bps(p)) + ns / 2) / ns;
	if (rate > 0xffffffff)
		rate = 0xffffffff;
	return rate ? rate : 1;
}

/* Whether the window's only packet came later than at one unit of RecRate. */
static __always_inline bool pcn_after_pause(const struct pcn_np *np, const struct pcn_np_params *p)
{
	return np->rec_data_bytes * (8000000000 / pcn_rate_unit_bps(p)) < np->inter_arrival_ns;
}

/* The lower half of Fig. 8. timer_ns is Timer when the window closes. */
static __always_inline struct pcn_np_cnp pcn_np_close(const struct pcn_np *np,
						      const struct pcn_np_params *p, u64 timer_ns)
{
	struct pcn_np_cnp cnp = {.send = true};

	if ((u64)np->ecn_num * 1000 <= (u64)np->rec_num * p->congested_permille)
		return cnp; /* ECN = 0, recRate = 0 */
	if (np->rec_num == 1 && p->pause_is_silence && pcn_after_pause(np, p))
		return (struct pcn_np_cnp){};
	cnp.ce = true;
	if (np->rec_num == 1 && np->inter_arrival_ns)
		cnp.rec_rate = pcn_rec_rate(p, np->rec_data_bytes, np->inter_arrival_ns);
	else
		cnp.rec_rate = pcn_rec_rate(p, np->rec_data_bytes, timer_ns);
	return cnp;
}

static __always_inline void pcn_np_open(struct pcn_np *np, u64 start_ns)
{
	np->start_ns = start_ns;
	np->max_gap_ns = 0;
	np->rec_data_bytes = 0;
	np->rec_num = 0;
	np->ecn_num = 0;
}

/*
 * The timer of periodic windows. If one has ended by now_ns, this closes it and opens the one that
 * now_ns is in. Windows without a packet send no CNP (sec. 5.2). Where no timer calls this, the
 * flow's next packet does: the CNP says the same, later.
 */
static __always_inline struct pcn_np_cnp pcn_np_expire(struct pcn_np *np,
						       const struct pcn_np_params *p, u64 now_ns)
{
	struct pcn_np_cnp cnp = {};
	u64 timer_ns = now_ns - np->start_ns;

	if (now_ns < np->start_ns || timer_ns < p->t_ns)
		return cnp;
	if (np->rec_num)
		cnp = pcn_np_close(np, p, p->t_ns);
	pcn_np_open(np, now_ns - timer_ns % p->t_ns);
	return cnp;
}

/*
 * Armed windows: if T has passed, the packet that arrived at now_ns closes the open window, and is
 * not part of it. No timer runs.
 *
 * Timer is the time until that packet, but at most T plus the longest gap within the window. Why
 * not T: a window opens with a packet, so dividing by T counts half a packet too much on average.
 * In a window of fewer than 64 packets that is more than the discount w_min, and the queue would
 * never drain. Why the longest gap: packets arrive in bursts, and within a burst the latest gap is
 * almost nothing. Why a limit at all: a flow that was paused is measured only over the time it was
 * sending.
 */
static __always_inline struct pcn_np_cnp pcn_np_rearm(struct pcn_np *np,
						      const struct pcn_np_params *p, u64 now_ns)
{
	struct pcn_np_cnp cnp = {};
	u64 timer_ns = now_ns - np->start_ns;

	if (!np->rec_num || timer_ns < p->t_ns)
		return cnp;
	if (timer_ns > p->t_ns + np->max_gap_ns)
		timer_ns = p->t_ns + np->max_gap_ns;
	cnp = pcn_np_close(np, p, timer_ns);
	np->rec_num = 0;
	return cnp;
}

/* Packets of the flow arrived at now_ns. */
static __always_inline struct pcn_np_cnp pcn_np_packets(struct pcn_np *np,
							const struct pcn_np_params *p, u64 now_ns,
							u32 packets, u64 size_bytes, u32 marked)
{
	bool periodic = p->window == PCN_WINDOW_PERIODIC, first = !np->last_ns;
	struct pcn_np_cnp cnp = {};

	if (now_ns < np->last_ns)
		now_ns = np->last_ns; /* packets of two paths or two CPUs: time does not go back */
	if (!first)
		cnp = periodic ? pcn_np_expire(np, p, now_ns) : pcn_np_rearm(np, p, now_ns);
	np->inter_arrival_ns = first ? 0 : now_ns - np->last_ns;
	np->last_ns = now_ns;
	if (first || (!periodic && !np->rec_num)) /* the packet starts the timer */
		pcn_np_open(np, now_ns);
	else if (np->inter_arrival_ns > np->max_gap_ns)
		np->max_gap_ns = np->inter_arrival_ns;
	np->rec_num += packets;
	np->rec_data_bytes += size_bytes;
	np->ecn_num += marked;
	return cnp;
}

static __always_inline struct pcn_np_cnp
pcn_np_packet(struct pcn_np *np, const struct pcn_np_params *p, u64 now_ns, u32 size_bytes, bool ce)
{
	return pcn_np_packets(np, p, now_ns, 1, size_bytes, ce);
}

/*
 * Feedback from ACKs, for receivers without a notification point. The sender counts the packets
 * that each ACK reports as delivered and as marked, as if they arrived when the ACK did. Each
 * window of T ends with the CNP that NP would have sent.
 *
 * Marks are as exact as ACKs are. AccECN counts them. ECE of RFC 3168 stays set for a round trip
 * after each mark: a flow with some marked packets looks as if all were marked, and slows down
 * where PCN would not.
 */
/* NP sends a CNP every T. After this many T without one, none is expected. */
#define PCN_SILENT_WINDOWS 8

struct pcn_ack {
	struct pcn_np np; /* the window that ACKs fill */
	u64 heard_ns;	  /* when the latest CNP was seen; 0: never */
	u32 packets;	  /* delivered, as of the latest ACK */
	u32 marked;	  /* of which marked */
	u32 cnps;	  /* received until then */
	u32 windows KEY("ack_windows") STAT("Changes of the rate by ACKs instead of CNPs");
	u32 decreases; /* of which down */
	u32 pad;
};

/* What an ACK reports: counters of TCP, which may wrap. */
struct pcn_ack_event {
	u64 now_ns;
	u32 packets; /* delivered since the connection began */
	u32 marked;  /* of which marked */
	u32 frame_bytes;
	u32 cnps; /* received so far */
};

/* Runs Algorithm 1 on an ACK. */
static __always_inline void pcn_rp_ack(struct pcn_rp *rp, struct pcn_ack *a,
				       const struct pcn_rp_params *p,
				       const struct pcn_np_params *np, enum pcn_feedback feedback,
				       const struct pcn_ack_event *e)
{
	u32 packets = e->packets - a->packets, marked = e->marked - a->marked;
	struct pcn_np_cnp cnp;

	if (e->cnps != a->cnps) {
		a->cnps = e->cnps;
		a->heard_ns = e->now_ns;
	}
	a->packets = e->packets;
	a->marked = e->marked;
	if (!packets)
		return;
	if (marked > packets)
		marked = packets;
	cnp = pcn_np_packets(&a->np, np, e->now_ns, packets, (u64)packets * e->frame_bytes, marked);
	if (!cnp.send)
		return;
	if (feedback == PCN_FEEDBACK_AUTO && a->heard_ns &&
	    e->now_ns - a->heard_ns < PCN_SILENT_WINDOWS * np->t_ns)
		return;
	pcn_rp_cnp(rp, p, e->now_ns, cnp.ce, (u64)cnp.rec_rate * pcn_rate_unit_bps(np));
	a->windows++;
	a->decreases += cnp.ce;
}

#endif
