/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Input of a window-based congestion control (window_control.h). */
#ifndef PCN_WINDOW_EVENT_H
#define PCN_WINDOW_EVENT_H

/* What an ACK reports. */
struct window_event {
	u64 now_ns;
	u64 rtt_ns;   /* 0: not measured */
	u32 packets;  /* that arrived, by this ACK */
	u32 marked;   /* of which with CE */
	bool limited; /* the window held the sender back; if not, it need not grow */
};

#endif
