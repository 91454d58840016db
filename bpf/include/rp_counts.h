/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a reaction point did with the CNPs and CNMs that it received. docs/security.md explains
 * them.
 */
#ifndef PCN_RP_COUNTS_H
#define PCN_RP_COUNTS_H

#include "counts.h"

struct rp_counts {
	u64 cnp_decrease; /* applied: CNPs that said CE, and CNMs */
	u64 cnp_increase; /* applied: CNPs that said neither CE nor UE */
	u64 cnp_hold;	  /* applied: CNPs that said UE */
	u64 cnp_ce_lost;  /* applied as decreases: they name a rate, but their CE was cleared */
	u64 cnp_udp;	  /* for flows of UDP: passed on to the application */
	u64 malformed;	  /* ours by the header, but with a wrong length or fixed field */
	u64 no_flow;	  /* no live flow of this host with that peer */
	u64 interface;	  /* on an interface where none are expected */
	u64 prefix;	  /* from an address where none are expected */
	u64 bad_icrc;	  /* damaged */
	u64 unsigned_;	  /* without a tag, where one is required */
	u64 no_key;	  /* signed with a key that this host does not have */
	u64 bad_tag;	  /* not signed with the key that it names */
	u64 stale;	  /* signed too long ago, or in the future */
	u64 replayed;	  /* signed no later than one that the flow accepted */
	u64 rate_limited; /* above the rate limit of the flow */
	u64 rise_limited; /* the same, of those that speed up */
	u64 unseen;	  /* by who has not seen the flow's packets */
	u64 elsewhere;	  /* not at the interface or in the VLAN of the flow's CNPs until then */
};

COUNTS(rp_counts)

#define RP(counter) COUNTER(rp_counts, counter)

#endif
