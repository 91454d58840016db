// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * choose: gives new TCP connections of a cgroup their congestion control, as a sockops program.
 *
 * Whether ECN is negotiated depends on the control of the connecting socket, or on that of the
 * listener. So the control is chosen before the SYN, and for listeners. A connection whose listener
 * is older than this program gets the control once it is established.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>
#include "include/counts.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define SOL_TCP	       6
#define TCP_CONGESTION 13

/* bpf_sock_ops.op, of uapi/linux/bpf.h. */
enum {
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
};

struct bpf_sock_ops { /* the first member; the rest is not used */
	u32 op;
};

/* The control's name. Set by the loader. */
const volatile char control[16] = "";

/* Connections that should get the control. */
struct choose_counts {
	u64 chosen;
	u64 refused; /* the control is no longer registered */
};

COUNTS(choose_counts)

SEC("sockops")
int choose(struct bpf_sock_ops *ops)
{
	char name[16];

	if (ops->op != BPF_SOCK_OPS_TCP_CONNECT_CB && ops->op != BPF_SOCK_OPS_TCP_LISTEN_CB &&
	    ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	for (u32 i = 0; i < sizeof(name); i++) /* the helper wants the stack */
		name[i] = control[i];
	if (bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		choose_counts_add(COUNTER(choose_counts, refused));
	else
		choose_counts_add(COUNTER(choose_counts, chosen));
	return 1;
}
