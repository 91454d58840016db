/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What wires the programs to the simulator (internal/sim). The same C files are compiled for
 * wasm32, where kernel.h includes this. It stands for the kernel and its BPF helpers.
 *
 * Structs have the layout that they have in the BPF object, so the simulator finds fields by the
 * BTF of that object. A program of a struct_ops is exported under its own name. Beside these, the
 * headers that wire a control or a notification point export functions that begin with simulate_.
 *
 * The simulator's clock is the kernel's at a dilation of 2^10: then 1 us of TCP's round trips is
 * less than 1 ns of the papers' time, and no round trip is rounded.
 */
#ifndef PCN_SIMULATOR_H
#define PCN_SIMULATOR_H

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/*
 * The verifier wants some functions within others; here that is only more code to compile. Not so
 * around a marking rule of a user: what is wrong there would have no line.
 */
#ifndef OWN_MARKER
#undef __always_inline
#define __always_inline inline
#endif

#define SIMULATED(name_) __attribute__((export_name(name_)))
#define IMPORTED(name_)	 __attribute__((import_module("simulator"), import_name(name_)))

#undef SEC
#define SEC(name_)
#undef __ksym
#define __ksym
#undef BPF_PROG
#define BPF_PROG(name_, ...) SIMULATED(#name_) name_(__VA_ARGS__)

/* The kernel's CUBIC is not there. */
#undef bpf_core_type_exists
#define bpf_core_type_exists(type_) 0
#undef bpf_core_type_size
#define bpf_core_type_size(type_) 0

/* Every host has an IPv4 address. */
#undef bpf_core_field_exists
#define bpf_core_field_exists(field_) 0

#define bpf_spin_lock(lock_)
#define bpf_spin_unlock(lock_)

/* The simulator writes this before it calls a program. */
struct simulator {
	u64 now_ns; /* the kernel's clock */
	u64 flow;   /* address of the flow's entry in the flow table */
	u64 flows;  /* address of the flow table, written once */
	u32 random; /* not 0; written once */
	u32 pad;
};

static struct simulator simulator;

SIMULATED("simulator") struct simulator *simulator_address(void)
{
	return &simulator;
}

#define bpf_ktime_get_ns() (simulator.now_ns)

/* xorshift32: the same numbers from the same seed. */
static __always_inline u32 simulated_random(void)
{
	simulator.random ^= simulator.random << 13;
	simulator.random ^= simulator.random >> 17;
	simulator.random ^= simulator.random << 5;
	return simulator.random;
}

#define bpf_get_prandom_u32() simulated_random()

/* Nobody reads the kernel's trace. */
#undef bpf_printk
#define bpf_printk(...) ((void)0)

/* Maps other than the flow table are the simulator's. */
IMPORTED("map_lookup") void *simulator_map_lookup(const void *map, const void *key);
IMPORTED("map_update")
long simulator_map_update(const void *map, const void *key, const void *value);
IMPORTED("map_delete") long simulator_map_delete(const void *map, const void *key);

static __always_inline bool is_flow_table(const void *map)
{
	return (u64)(unsigned long)map == simulator.flows;
}

/*
 * The compiler checks that pointers into a user's own state stay within its size (-fsanitize=
 * local-bounds), as the kernel's verifier does. It has to be told the size. Modules of ours skip
 * that.
 */
#ifdef PCN_ENDLESS_H
__attribute__((noinline, alloc_size(2))) static void *simulated_sized(void *at, unsigned long size)
{
	asm("" : "+r"(at)); /* or the call would be left out */
	return at;
}
#else
#define simulated_sized(at_, size_) (at_)
#endif

static __always_inline void *simulated_flow_address(void)
{
	return (void *)(unsigned long)simulator.flow;
}

#define simulated_flow() simulated_sized(simulated_flow_address(), sizeof(struct flow_entry))

static __always_inline void *simulator_lookup(const void *map, const void *key)
{
	if (is_flow_table(map))
		return simulated_flow_address();
	return simulator_map_lookup(map, key);
}

static __always_inline long simulator_update(const void *map, const void *key, const void *value,
					     u32 size)
{
	if (!is_flow_table(map))
		return simulator_map_update(map, key, value);
	__builtin_memcpy(simulated_flow_address(), value, size);
	return 0;
}

static __always_inline long simulator_delete(const void *map, const void *key)
{
	return is_flow_table(map) ? 0 : simulator_map_delete(map, key);
}

#define bpf_map_lookup_elem(map_, key_)                                                            \
	simulated_sized(simulator_lookup((map_), (key_)), sizeof(*(map_)->value))
#define bpf_map_update_elem(map_, key_, value_, flags_)                                            \
	simulator_update((map_), (key_), (value_), sizeof(*(value_)))
#define bpf_map_delete_elem(map_, key_) simulator_delete((map_), (key_))

struct sock;

/* The core's own growth of the window. */
IMPORTED("reno") void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);

/* The simulator's receivers echo every mark by themselves. */
#define bpf_tcp_send_ack(sk_, seq_)

#endif
