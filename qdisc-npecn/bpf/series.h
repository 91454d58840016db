/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a port tells user space while it runs: events, and a series of bins of sample_ns each. */
#ifndef NPECN_SERIES_H
#define NPECN_SERIES_H

#include "port.h"

/* Keeps the types in BTF, for bpf2go. */
const enum event_kind *unused_event_kind __attribute__((unused));
const struct event_pfc *unused_event_pfc __attribute__((unused));
const struct event_queue *unused_event_queue __attribute__((unused));
const struct event_flow *unused_event_flow __attribute__((unused));
const struct event_repeat *unused_event_repeat __attribute__((unused));
const struct event_start *unused_event_start __attribute__((unused));
const struct event_off *unused_event_off __attribute__((unused));
const struct event_storm *unused_event_storm __attribute__((unused));
const struct event_detected *unused_event_detected __attribute__((unused));

/* Events that found the ring buffer full. */
u64 events_lost = 0;

static __always_inline void emit(void *event, u64 size)
{
	if (bpf_ringbuf_output(&events, event, size, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&events_lost, 1);
}

/* bin_flush: tell of the bin that is over, and begin that of t_ns. */
static __noinline void bin_flush(struct port *p, u32 id, u64 t_ns)
{
	struct bin *b = &p->state.bin;
	struct event_queue e = {
		.kind = EVENT_QUEUE,
		.port = id,
		.bin = b->index,
		.sent_bytes = b->sent_bytes,
		.sent_packets = b->sent_packets,
		.marked_packets = b->marked_packets,
		.queue_bytes = p->state.queue_bytes,
		.queue_max_bytes = b->queue_max_bytes,
	};
	struct event_detected d = {
		.kind = EVENT_DETECTED,
		.port = id,
		.bin = b->index,
		.npecn_packets = b->detected.npecn,
		.ecn_packets = b->detected.ecn,
		.fecn_packets = b->detected.fecn,
		.tcd_ce_packets = b->detected.tcd_ce,
		.tcd_ue_packets = b->detected.tcd_ue,
		.tcd_state = p->state.tcd_state,
	};

	if (b->end_ns)
		emit(&e, sizeof(e));
	if (b->end_ns && p->config.detect.watch)
		emit(&d, sizeof(d));
	b->index = t_ns / sample_ns;
	b->end_ns = (b->index + 1) * sample_ns;
	b->sent_bytes = 0;
	b->sent_packets = 0;
	b->marked_packets = 0;
	b->detected = (struct detected){};
	b->queue_max_bytes = p->state.queue_bytes;
}

/* bin_reach: something happens at t_ns; a bin that ends before is over. */
static __always_inline void bin_reach(struct port *p, u32 id, u64 t_ns)
{
	if (sample_ns && t_ns >= p->state.bin.end_ns)
		bin_flush(p, id, t_ns);
}

#endif
