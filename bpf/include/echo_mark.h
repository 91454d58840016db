/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a window-based control's cwnd_event does: it echoes the mark of a packet that arrived. A
 * control includes this behind the definition of struct flow_entry, which has struct echo receiver,
 * and of start(sk).
 */
#ifndef PCN_ECHO_MARK_H
#define PCN_ECHO_MARK_H

#include "echo.h"

/* on_host: packets without marks take the shorter way. */
static __always_inline void on_mark(struct sock *sk, int event, bool on_host)
{
	struct flow_entry *flow;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	if (tcp_starts_late(sk))
		start(sk);
	if (on_host && echo_unmarked(sk, event))
		return;
	flow = flow_of(sk);
	if (on_host)
		echo_keeping(sk, flow ? &flow->receiver : NULL, event);
	else
		echo_event(sk, flow ? &flow->receiver : NULL, event);
}

#endif
