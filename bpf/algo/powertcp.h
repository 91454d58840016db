/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * PowerTCP's sender: the window follows the power of the path, current times voltage.
 *
 * Addanki, Michel, Schmid: PowerTCP: Pushing the Performance Limits of Datacenter Networks, NSDI
 * 2022, Algorithm 1 (with in-band telemetry).
 *
 *	each hop:	current = dq/dt + txRate, voltage = q + B * tau
 *			norm = current * voltage / (B^2 * tau)
 *	the path:	the hop with the largest norm, after dt since its latest record
 *			power = (power * (tau - dt) + norm * dt) / tau
 *	window:		cwnd = gamma * (cwnd_old / power + beta) + (1 - gamma) * cwnd
 *			rate = cwnd / tau
 *	once a round trip:	cwnd_old = cwnd
 *
 * Here the rate stands for the window, as in algo/hpcc.h, whose records these are. A round trip
 * ends with the ACK of what was sent after the latest end, in packets.
 *
 * Records are in units, so that a current may come out below 0: it is 0 then. Current and voltage
 * count up to 127 times those of a link that is full and has no queue, and power as 1/1024 at
 * least.
 */
#ifndef PCN_ALGO_POWERTCP_H
#define PCN_ALGO_POWERTCP_H

#include "hpcc.h"

struct powertcp_params {
	u64 line_rate_bps FROM("line_rate");
	u64 min_rate_bps PARAM("Least rate of a flow", "1kbps to line_rate", "line_rate / 1000");
	u64 beta_bps PARAM("beta / tau: the rate that is added in each update", "1bps to 800Gbps",
			   "line_rate / 100");
	/* Above 0 */
	u64 rtt_ns PARAM("tau, the round trip of a path without queues, with the time of a packet "
			 "on each link; 0: the network's longest",
			 "0 to 10ms", "0") UNLESS_GIVEN("path_rtt");
	q24 gamma PARAM("Weight of the newest window", "1/1024 to 1", "0.9");
	u32 int_multi PARAM("Scale of the telemetry's fields: units of 128 bytes sent and 80 "
			    "bytes queued, times this",
			    "1 to 160", "max(1, line_rate / 25Gbps)");
};

struct powertcp_rp {
	u64 rate_bps; /* cwnd / tau */
	u64 old_bps;  /* cwnd_old / tau */
	wide_q24 power STAT("Power of the path's link with the most, 1: full and without a queue");
	u64 last[INT_HOPS]; /* prevInt */
	u32 hops;
	u32 round_end; /* packets sent when cwnd_old was set */
};

static __always_inline void powertcp_rp_set_rate(struct powertcp_rp *h, u64 rate_bps)
{
	h->rate_bps = rate_bps;
	h->old_bps = rate_bps;
}

/* Flows start at line rate, as if their link were full. */
static __always_inline void powertcp_rp_init(struct powertcp_rp *h, const struct powertcp_params *p)
{
	*h = (struct powertcp_rp){.power = Q24_ONE};
	powertcp_rp_set_rate(h, p->line_rate_bps);
}

#define POWERTCP_MOST  ((127ULL << Q24_SHIFT) + Q24_ONE - 1)
#define POWERTCP_LEAST (Q24_ONE >> 10)

static __always_inline u64 powertcp_most(u64 value)
{
	return value < POWERTCP_MOST ? value : POWERTCP_MOST;
}

/* norm of a link, Q24. */
static __always_inline u64 powertcp_norm(const struct powertcp_params *p, u64 now, u64 before,
					 u32 rate_kbps, u32 dt_ns)
{
	u64 tx_ns = hpcc_link_time(INT_BYTES_UNIT * p->int_multi, rate_kbps);
	u64 queue_ns = hpcc_link_time(INT_QUEUE_UNIT * p->int_multi, rate_kbps);
	u64 sent = int_bytes_since(now, before) * tx_ns;
	u64 queue = int_queue(now) * queue_ns, queue_before = int_queue(before) * queue_ns;
	u64 current = sent + queue > queue_before ? (sent + queue - queue_before) / dt_ns : 0;

	return powertcp_most(current) * powertcp_most(Q24_ONE + queue / p->rtt_ns) >> Q24_SHIFT;
}

/* NORM_POWER of Algorithm 1. */
static __always_inline void powertcp_measure(struct powertcp_rp *h, const struct powertcp_params *p,
					     const struct int_header *ack)
{
	u64 most = 0;
	u32 most_dt_ns = 0;

	for (u32 i = 0; i < INT_HOPS && i < ack->hops; i++) {
		u32 dt_ns = int_ns_since(ack->hop[i], h->last[i]) ?: 1;
		u64 norm = powertcp_norm(p, ack->hop[i], h->last[i], ack->rate_kbps[i], dt_ns);

		if (norm > most) {
			most = norm;
			most_dt_ns = dt_ns;
		}
	}
	if (most_dt_ns > p->rtt_ns)
		most_dt_ns = p->rtt_ns;
	/* both products are below 2^55: norm < 2^38, tau <= 10 ms < 2^24 */
	h->power = (h->power * (p->rtt_ns - most_dt_ns) + most * most_dt_ns) / p->rtt_ns;
}

/* UPDATE_WINDOW of Algorithm 1. */
static __always_inline void powertcp_update(struct powertcp_rp *h, const struct powertcp_params *p)
{
	u64 power = h->power > POWERTCP_LEAST ? h->power : POWERTCP_LEAST;
	/* rate / power, in two parts: at most 2^42 * 2^24 / 2^14 */
	u64 target = hpcc_share(h->old_bps, Q24_ONE, power) + p->beta_bps;

	h->rate_bps = bounded_rate(q24_scale(target, p->gamma) +
					   q24_scale(h->rate_bps, Q24_ONE - p->gamma),
				   p->min_rate_bps, p->line_rate_bps);
}

static __always_inline void powertcp_keep(struct powertcp_rp *h, const struct int_header *ack)
{
	h->hops = ack->hops;
	for (u32 i = 0; i < INT_HOPS; i++)
		h->last[i] = ack->hop[i];
}

/*
 * NEW_ACK of Algorithm 1. Packets since the connection began: sent and acked, which wrap. The first
 * ACK, and one of another path, is only kept.
 */
static __always_inline void powertcp_rp_ack(struct powertcp_rp *h, const struct powertcp_params *p,
					    u32 sent, u32 acked, const struct int_header *ack)
{
	if (!ack->hops || ack->hops > INT_HOPS)
		return;
	if (!h->round_end || ack->hops != h->hops) {
		h->round_end = sent;
		powertcp_keep(h, ack);
		return;
	}
	powertcp_measure(h, p, ack);
	powertcp_update(h, p);
	powertcp_keep(h, ack);
	if ((s32)(acked - h->round_end) > 0) {
		h->old_bps = h->rate_bps;
		if ((s32)(sent - h->round_end) > 0)
			h->round_end = sent;
	}
}

#endif
