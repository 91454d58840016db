// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * NAME: a notification point. It answers every n-th marked packet of a flow with a CNP.
 *
 * A control uses it by SCHEME("notification", "own ./NAME.c"), and sets its parameters by a
 * variable np_params of the same struct.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "include/notify_event.h"
#include "algo/param.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct NAME_params {
	u32 every PARAM("Marked packets per CNP", "1 to 1000", "1");
	u32 pad;
};

const volatile struct NAME_params params = {.every = 1};

/* State of a flow; all zero at first. */
struct notify_state {
	u32 marked;
	u32 pad;
};

/* Whether the packet counts. Others need no state. */
static __always_inline bool notify_wants(const struct notify_event *event)
{
	return event->ecn == ECN_CE;
}

/*
 * A packet that counts arrived. event has now_ns, frame_bytes and ecn. True: send a CNP that says
 * *cnp.
 */
static __always_inline bool notify_packet(struct notify_state *state, const struct NAME_params *p,
					  const struct notify_event *event,
					  struct notification *cnp)
{
	state->marked++;
	if (state->marked < p->every)
		return false;
	state->marked = 0;
	cnp->ce = true;
	return true;
}

#include "include/notify.h"
