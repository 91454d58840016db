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

/*
 * pcn_random_below returns the next number that TCP draws, below ceil. The kernel's own numbers
 * depend on how many others were drawn before, so those of BBR would differ between versions of
 * Linux that do the same. These are the run's seed's alone.
 */
u32 pcn_random_below(u32 ceil);

/* Whether a new hash table draws a random number, against those who choose keys that collide. */
extern bool pcn_draw_hashes;

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

struct page;

/* Memory that nothing has used yet: see fresh.c. */
bool pcn_must_clear(struct page *page, unsigned int order, bool clear);
void pcn_populate(void *start, unsigned long bytes);

/* pcn_map_clock maps the page of the time: see clock.h. */
struct vm_area_struct *pcn_map_clock(struct mm_struct *mm, unsigned long address);

/*
 * A program may also wait with system calls that succeed, as one that asks again and again whether
 * a socket that has room has room: iperf3 does. So after so many calls without a sleep each one
 * takes 1 us, twice as many 2 us, up to 10. The lab's own program is exempt: it has that
 * many calls when thousands of flows start at one time.
 */
#define PCN_CALLS 10000

/* pcn_called makes the clock go on, if needed, when a system call has succeeded. */
void pcn_called(void);

/* pcn_say_current names the program that runs, when the host ends a machine that hangs. */
void pcn_say_current(void);

/* In the kernel's time.c: makes the clock go on, if needed, when a system call has failed. */
void pcn_call_failed(void);

#endif
