// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * adopt: gives TCP connections that exist already a congestion control, as an iterator over the
 * sockets of a network namespace. The control that each had is kept, and a second run gives it
 * back.
 */
#include "include/kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "include/tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define SOL_TCP	       6
#define TCP_CONGESTION 13
#define CONTROL_LEN    16 /* with the zero behind it */

struct bpf_iter__tcp {
	struct sock_common *sk_common;
} __attribute__((preserve_access_index));

struct kernfs_node___id {
	u64 id;
} __attribute__((preserve_access_index));

struct cgroup___node {
	struct kernfs_node___id *kn;
} __attribute__((preserve_access_index));

struct sock_cgroup_data___group {
	struct cgroup___node *cgroup;
} __attribute__((preserve_access_index));

struct sock___group {
	struct sock_cgroup_data___group sk_cgrp_data;
} __attribute__((preserve_access_index));

struct control_name {
	char text[CONTROL_LEN];
};

/*
 * What each adopted connection had, by its socket's cookie. It stays here when the connection ends,
 * until user space removes the map.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct control_name);
} adopted SEC(".maps");

/* The cgroups whose connections are meant, by their ids. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, u32); /* not looked at */
} cgroups SEC(".maps");

/* Addresses of either end. */
struct prefix {
	u32 bits; /* of what follows */
	__be32 addr[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, u32); /* not looked at */
} addresses SEC(".maps");

/* Ports of either end. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u16);
	__type(value, u32); /* not looked at */
} ports SEC(".maps");

/* Set by the loader. */
const volatile struct control_name control = {};
const volatile bool give_back = false;
const volatile bool by_cgroup = false, by_address = false, by_port = false;

/* What came of the connections that are meant. */
u32 changed = 0, refused = 0;

static __always_inline bool of_cgroup(struct sock *sk)
{
	struct sock___group *group = (void *)sk;
	u64 id = BPF_CORE_READ(group, sk_cgrp_data.cgroup, kn, id);

	return bpf_map_lookup_elem(&cgroups, &id);
}

static __always_inline bool of_address(const __be32 *addr)
{
	struct prefix p = {.bits = 128};

	__builtin_memcpy(p.addr, addr, sizeof(p.addr));
	return bpf_map_lookup_elem(&addresses, &p);
}

static __always_inline bool of_port(u16 port)
{
	return bpf_map_lookup_elem(&ports, &port);
}

static __always_inline bool is_meant(struct sock *sk)
{
	struct flow_key key;

	tcp_flow_key(sk, &key);
	return (!by_cgroup || of_cgroup(sk)) &&
	       (!by_address || of_address(key.saddr) || of_address(key.daddr)) &&
	       (!by_port || of_port(bpf_ntohs(key.sport)) || of_port(bpf_ntohs(key.dport)));
}

static __always_inline bool same_name(const struct control_name *a, const struct control_name *b)
{
	for (u32 i = 0; i < CONTROL_LEN; i++) {
		if (a->text[i] != b->text[i])
			return false;
		if (!a->text[i])
			break;
	}
	return true;
}

static __always_inline bool choose(struct tcp_sock *tp, struct control_name *name)
{
	if (bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(*name))) {
		__sync_fetch_and_add(&refused, 1);
		return false;
	}
	__sync_fetch_and_add(&changed, 1);
	return true;
}

static __always_inline void take(struct tcp_sock *tp)
{
	struct control_name had = {}, wanted;
	u64 cookie = bpf_get_socket_cookie(tp);
	bool kept;

	for (u32 i = 0; i < CONTROL_LEN; i++) /* the helper wants the stack */
		wanted.text[i] = control.text[i];
	if (bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, &had, sizeof(had)) ||
	    same_name(&had, &wanted))
		return;
	/* one that is adopted twice gets back what it had at first */
	kept = bpf_map_lookup_elem(&adopted, &cookie);
	if (!kept && bpf_map_update_elem(&adopted, &cookie, &had, BPF_ANY)) {
		__sync_fetch_and_add(&refused, 1);
		return;
	}
	if (!choose(tp, &wanted) && !kept)
		bpf_map_delete_elem(&adopted, &cookie);
}

static __always_inline void restore(struct tcp_sock *tp)
{
	u64 cookie = bpf_get_socket_cookie(tp);
	struct control_name *kept = bpf_map_lookup_elem(&adopted, &cookie), had;

	if (!kept)
		return;
	had = *kept;
	if (choose(tp, &had))
		bpf_map_delete_elem(&adopted, &cookie);
}

SEC("iter/tcp")
int adopt(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp;
	struct sock *sk;

	if (!common || common->skc_state != TCP_ESTABLISHED)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	sk = (struct sock *)tp;
	if (!is_meant(sk))
		return 0;
	if (give_back)
		restore(tp);
	else
		take(tp);
	return 0;
}
