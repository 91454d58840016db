/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a window-based congestion control is told (window_control.h). */
#ifndef PCN_WINDOW_EVENT_H
#define PCN_WINDOW_EVENT_H

/* What an ACK tells a window-based algorithm. */
struct window_event {
	u64 now_ns;
	u64 rtt_ns;   /* 0: not measured */
	u32 packets;  /* that the ACK says arrived */
	u32 marked;   /* of them, with CE */
	bool limited; /* the window was what held the sender back: else it need not grow */
};

#endif
