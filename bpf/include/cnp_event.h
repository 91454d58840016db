/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a notification tells a congestion control. */
#ifndef PCN_CNP_EVENT_H
#define PCN_CNP_EVENT_H

/* A CNP arrived that passed the checks of the reaction point (react.h). */
struct cnp_event {
	u64 now_ns;	  /* the papers' time */
	u64 rec_rate_bps; /* 0: the CNP names no rate */
	u64 floor_bps;	  /* no CNP may bring the flow below it; 0: the control's own minimum */
	bool ce;	  /* congested */
	bool ue;	  /* TCD: undetermined; never with ce */
};

/* A CNM of QCN arrived that passed the checks of the reaction point (react_cnm.h). */
struct cnm_event {
	u64 now_ns;
	u32 qntz_fb; /* quantised feedback, 1 to 63 */
};

#endif
