/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a notification point gets of a data packet, and what it answers (notify.h). */
#ifndef PCN_NOTIFY_EVENT_H
#define PCN_NOTIFY_EVENT_H

#include "packet.h"

/* Data packets of the flow arrived: one, or several as one skb. */
struct notify_event {
	u64 now_ns;	 /* the papers' time; not yet known to notify_wants */
	u32 frame_bytes; /* from the Ethernet header on, of all packets */
	u32 packets;	 /* that GRO or a virtual device made one of; they have one mark */
	u8 ecn;		 /* ECN_CE, ECN_UE, ... */
};

/* What the CNP says of its flow. */
struct notification {
	u32 rec_rate; /* in the units that RP and NP agree on; 0: no rate */
	bool ce;      /* congested */
	bool ue;      /* TCD: undetermined */
};

#endif
