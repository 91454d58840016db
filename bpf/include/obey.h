/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a CNP does to a flow of PCN, however it was heard. */
#ifndef PCN_OBEY_H
#define PCN_OBEY_H

#include "sender.h"

/* pcn_flow_cnp: Algorithm 1, and the statistics. Under the flow's lock. */
static __always_inline void pcn_flow_cnp(struct pcn_flow *flow, const struct pcn_rp_params *p, bool ce,
					 u64 rec_rate_bps)
{
	pcn_rp_cnp(&flow->rp, p, ce, rec_rate_bps);
	if (ce) {
		flow->sender.rec_rate_bps = rec_rate_bps;
		flow->sender.cnp_decrease++;
	} else {
		flow->sender.cnp_increase++;
	}
}

#endif
