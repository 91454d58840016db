/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PCN_CLOCK_H
#define PCN_CLOCK_H

/*
 * While a program of the guest computes, the clock stands still. So the kernel writes the time into
 * a page before the program goes on, and the vDSO reads it there, without a system call. The page
 * lies below the vDSO's.
 */
struct pcn_time {
	unsigned long long monotonic_ns; /* 0 before the first is written */
	unsigned long long real_ns;
	unsigned long reads; /* by programs, at this time */
};

/* So many reads at one time make a program ask the kernel, where the clock may go on: pcn_step. */
#define PCN_READS 10000

/* pcn_publish_time writes the time before a program goes on. */
void pcn_publish_time(void);

#endif
