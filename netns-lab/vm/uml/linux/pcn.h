/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PCN_H
#define PCN_H

#include <linux/types.h>

/*
 * TCP lets a flow have 2^-pcn_pacing_shift s of its rate in its own host's queue, but two packets
 * at least. Linux has 10, which is 1 ms. With 20 a flow is like one of an adapter of RDMA, which
 * takes the next packet when it can send it.
 */
extern unsigned int pcn_pacing_shift;

/* The JIT: see jit.c. */
bool pcn_jit_address(unsigned long address);
bool pcn_bpf_fault(unsigned long ip, unsigned long address, void *mcontext);

/*
 * CPUs take no time, so a program that tries again and again until the clock has gone on would
 * never end: it reads the clock, or its system calls fail. After so many tries at one instant the
 * clock goes on: by 1 ns at the next, by 2 at the one after that, so that waiting for long does not
 * take long. Mainline goes on by 1 ns at each read and by 1 us at each failure, as at each read
 * from a socket that has no data. So there packets are late, and by how much depends on programs.
 */
#define PCN_TRIES 100000

struct pcn_tries {
	unsigned long long expected_ns; /* the time after the last try */
	unsigned long count;		/* at about that time */
};

/* pcn_step returns by how many ns a try at now_ns makes the clock go on. */
static inline unsigned long pcn_step(struct pcn_tries *tries, unsigned long long now_ns)
{
	unsigned long step_ns;

	tries->count = now_ns == tries->expected_ns ? tries->count + 1 : 0;
	step_ns = tries->count > PCN_TRIES ? tries->count - PCN_TRIES : 0;
	tries->expected_ns = now_ns + step_ns;
	return step_ns;
}

struct vm_area_struct;
struct mm_struct;

/* pcn_fault_around gives a program the pages around one that it was given: see fault.c. */
void pcn_fault_around(struct vm_area_struct *vma, unsigned long address);

/* pcn_map_clock maps the page of the time: see clock.h. */
struct vm_area_struct *pcn_map_clock(struct mm_struct *mm, unsigned long address);

/* In the kernel's time.c: makes the clock go on, if needed, when a system call has failed. */
void pcn_call_failed(void);

#endif
