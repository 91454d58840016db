/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* DCQCN's notification point (NP): SIGCOMM 2015, sec. 3.1. */
#ifndef PCN_ALGO_DCQCN_NP_H
#define PCN_ALGO_DCQCN_NP_H

#include "param.h"

struct dcqcn_np_params {
	u64 interval_ns KEY("cnp_interval")
		PARAM("Least time between two CNPs of a flow; 0: a CNP for every marked packet",
		      "0 to 1s", "50us");
};

struct dcqcn_np {
	u64 cnp_at_ns; /* the latest CNP */
	bool sent;
};

/* Returns whether to answer the packet with a CNP. */
static __always_inline bool dcqcn_np_packet(struct dcqcn_np *np, u64 interval_ns, u64 now_ns,
					    bool ce)
{
	if (!ce || (np->sent && (s64)(now_ns - np->cnp_at_ns) < (s64)interval_ns))
		return false;
	np->cnp_at_ns = now_ns;
	np->sent = true;
	return true;
}

#endif
