/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What became of the CNPs and CNMs that a reaction point received. docs/security.md explains them. */
#ifndef PCN_RP_COUNTS_H
#define PCN_RP_COUNTS_H

#include "counts.h"

struct rp_counts {
	u64 cnp_decrease; /* obeyed: CNPs that said CE, and CNMs */
	u64 cnp_increase; /* obeyed: CNPs that said neither CE nor UE */
	u64 cnp_hold;	  /* obeyed: CNPs that said UE */
	u64 cnp_udp;	  /* of flows of UDP: they go on to the application */
	u64 malformed;	  /* ours by the header, but wrong in length or in a fixed field */
	u64 no_flow;	  /* no live flow of this host with that peer */
	u64 interface;	  /* on an interface where none are expected */
	u64 prefix;	  /* from an address where none are expected */
	u64 bad_icrc;	  /* damaged */
	u64 unsigned_;	  /* without a tag, where one is required */
	u64 no_key;	  /* signed with a key that this host does not have */
	u64 bad_tag;	  /* not signed with the key that it names */
	u64 stale;	  /* signed too long ago, or in the future */
	u64 replayed;	  /* signed no later than one of the flow that was obeyed */
	u64 rate_limited; /* more than the flow's limit */
};

COUNTS(rp_counts)

#define RP(counter) COUNTER(rp_counts, counter)

#endif
