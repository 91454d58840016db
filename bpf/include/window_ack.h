/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An ACK of a flow that has a plain window in place of its control's. A control includes this
 * behind the definitions of struct flow_entry and, optionally, of
 *	CONTROL_WINDOW_BPS	the window is not paced faster
 */
#ifndef PCN_WINDOW_ACK_H
#define PCN_WINDOW_ACK_H

#include "plain.h"

#ifndef CONTROL_WINDOW_BPS
#define CONTROL_WINDOW_BPS 0
#endif

/* flow may be NULL. */
static __always_inline void on_window_ack(struct sock *sk, struct flow_entry *flow,
					  const struct rate_sample *rs, u32 reason)
{
	if (in_window(sk))
		plain_because(sk, reason);
	else
		plain_enter(sk, reason);
	plain_count(sk, reason);
	plain_ack(sk, rs, flow ? flow->sender.plain_window : 0, CONTROL_WINDOW_BPS);
	if (!flow)
		return;
	bpf_spin_lock(&flow->lock);
	tcp_account(sk, &flow->sender);
	flow->sender.plain_window = ((struct tcp_sock *)sk)->snd_cwnd;
	flow->sender.send_rate_bps = 0;
	flow->sender.doubt = reason;
	bpf_spin_unlock(&flow->lock);
}

#endif
