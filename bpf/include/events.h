/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events for user space, in one ring buffer that is read while a run goes on.
 * All times are in the papers' ns. A bin is time / sample_ns.
 */
#ifndef PCN_EVENTS_H
#define PCN_EVENTS_H

enum event_kind {
	EVENT_PFC = 1,	    /* a PAUSE or RESUME was sent */
	EVENT_QUEUE = 2,    /* a port's sample bin is over */
	EVENT_FLOW = 3,	    /* a flow's sample bin at its receiver is over */
	EVENT_OFF = 4,	    /* a port's queue was paused or lacked credits, and no longer is */
	EVENT_DETECTED = 5, /* the same bin: what the detectors of the port found */
	EVENT_START = 7,    /* a TCP flow sends its first data */
	EVENT_STORM = 8,    /* a watchdog of PFC found a storm, or its end */
	EVENT_REPEAT = 6, /* a sample bin of a class is over: PAUSE frames if PAUSE were repeated */
};

/* A PAUSE or RESUME. port is the port that stops or continues; its peer sent the frame. */
struct event_pfc {
	u32 kind;
	u16 port;
	u8 class;
	u8 pause;      /* 1 PAUSE, 0 RESUME */
	u64 sent_ns;   /* ideal time of sending */
	u64 effect_ns; /* ideal time of taking effect: one link delay later */
};

/* A storm of PAUSE at a queue, or its end, with what the watchdog dropped. */
struct event_storm {
	u32 kind;
	u16 port;
	u8 class;
	u8 over;
	u64 at_ns;
	u64 dropped_packets;
	u64 refused_packets;
};

/* PAUSE frames that the port would have sent in the bin if it repeated them: algo/pfc.h. */
struct event_repeat {
	u32 kind;
	u16 port;
	u8 class;
	u8 pad;
	u64 bin;
	u64 frames;
};

struct event_start {
	u32 kind;
	__be32 saddr; /* of the socket that sends */
	u64 at_ns;    /* the time, in the papers' time */
	u16 sport;
	u16 pad[3];
};

struct event_queue {
	u32 kind;
	u32 port;
	u64 bin;
	u64 sent_bytes;
	u32 sent_packets;
	u32 marked_packets;
	u64 queue_bytes; /* at the bin's end */
	u64 queue_max_bytes;
};

struct event_off {
	u32 kind;
	u16 port;
	u8 class;
	u8 pad;
	u64 from_ns, to_ns; /* ideal times */
};

struct event_detected {
	u32 kind;
	u32 port;
	u64 bin;
	u32 npecn_packets; /* that NP-ECN marked, or would have marked; the same for the others */
	u32 ecn_packets;
	u32 fecn_packets;
	u32 tcd_ce_packets;
	u32 tcd_ue_packets;
	u32 tcd_state; /* after the last packet of the bin: enum tcd_state */
};

struct event_flow {
	u32 kind;
	u32 flow; /* index in the flow table */
	u64 bin;
	u64 received_bytes;
	u32 received_packets;
	u32 marked_packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

#endif
