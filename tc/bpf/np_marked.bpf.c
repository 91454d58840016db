// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * np_marked: answers a marked packet with a CNP, unless the flow got one less than an interval ago.
 * It is the notification point of DCQCN (SIGCOMM 2015, sec. 3.1). InfiniBand's congestion control
 * uses it for BECN. The CNP says that there is congestion, and names no rate.
 *
 * With TCD a packet may say UE (undetermined), and so may a CNP (algo/tcd_rp.h).
 */
#define PCN_LAB /* hosts have np */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/notify_event.h"
#include "algo/tcd_rp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set by the loader, as all below. */
const volatile struct dcqcn_np_params params = {.interval_ns = 50000};

/* The codepoint ECN_UE is TCD's mark. */
const volatile bool tcd = false;

#define notify_state tcd_np
#define NOTIFY_MARKED

static __always_inline enum tcd_verdict mark_of(const struct notify_event *event)
{
	if (event->ecn == ECN_CE)
		return TCD_MARK_CE;
	return tcd && event->ecn == ECN_UE ? TCD_MARK_UE : TCD_MARK_NONE;
}

static __always_inline bool notify_wants(const struct notify_event *event)
{
	return mark_of(event) != TCD_MARK_NONE;
}

static __always_inline bool notify_packet(struct tcd_np *np, const struct dcqcn_np_params *p,
					  const struct notify_event *event,
					  struct notification *cnp)
{
	enum tcd_verdict mark = tcd_np_packet(np, p->interval_ns, event->now_ns, mark_of(event));

	cnp->ce = mark == TCD_MARK_CE;
	cnp->ue = mark == TCD_MARK_UE;
	return mark != TCD_MARK_NONE;
}

#include "include/notify.h"
