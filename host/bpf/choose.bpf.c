// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * choose: gives a cgroup's new TCP connections their congestion control, as a sockops program.
 *
 * Whether ECN is negotiated depends on the control that a socket has when it connects, or on its listener's: so it is
 * chosen before the SYN, and for listeners. A connection whose listener was there before gets it once it is
 * established.
 */
#include "include/kernel.h"
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "Dual BSD/GPL";

#define SOL_TCP	       6
#define TCP_CONGESTION 13

/* bpf_sock_ops.op, of uapi/linux/bpf.h. */
enum {
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
};

struct bpf_sock_ops { /* its beginning */
	u32 op;
};

/* The control's name. Set by the loader. */
const volatile char control[16] = "";

enum choose_count {
	CHOSEN,
	REFUSED, /* the kernel has no such control any more */
	CHOOSE_COUNTS,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, CHOOSE_COUNTS);
	__type(key, u32);
	__type(value, u64);
} choose_counts SEC(".maps");

SEC("sockops")
int choose(struct bpf_sock_ops *ops)
{
	char name[16];
	u32 what;
	u64 *n;

	if (ops->op != BPF_SOCK_OPS_TCP_CONNECT_CB && ops->op != BPF_SOCK_OPS_TCP_LISTEN_CB &&
	    ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	for (u32 i = 0; i < sizeof(name); i++) /* the helper wants the stack */
		name[i] = control[i];
	what = bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name)) ? REFUSED : CHOSEN;
	n = bpf_map_lookup_elem(&choose_counts, &what);
	if (n)
		(*n)++;
	return 1;
}
