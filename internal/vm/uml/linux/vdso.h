/* SPDX-License-Identifier: GPL-2.0 */
/* The vDSO's part of the clock: see clock.h. It is included by mainline's um_vdso.c. */
#include "clock.h"

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

/* pcn_clock writes the time of CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME. */
static inline int pcn_clock(clockid_t clock, struct __kernel_timespec *ts)
{
	struct pcn_time *t = (struct pcn_time *)(__ehdr_start - 4096);
	unsigned long long ns;

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return 0;
	if (!t->monotonic_ns || ++t->reads > PCN_READS)
		return 0;
	ns = clock == CLOCK_REALTIME ? t->real_ns : t->monotonic_ns;
	ts->tv_sec = ns / NSEC_PER_SEC;
	ts->tv_nsec = ns % NSEC_PER_SEC;
	return 1;
}
