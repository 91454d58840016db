/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One clock, one dilation.
 *
 * Rates and times are in the papers' units everywhere. The kernel's clock runs 2^dilation_shift
 * times slower than theirs, so that 40 Gbit/s fits a few cores. The shift is applied only where a
 * value enters or leaves BPF. On a real host the shift is 0.
 */
#ifndef PCN_CLOCK_H
#define PCN_CLOCK_H

/* Set by the loader before load, 0 to 20. */
const volatile u32 dilation_shift = 0;

/* The current time, in the papers' time. */
static __always_inline u64 now_ns(void)
{
	return bpf_ktime_get_ns() >> dilation_shift;
}

/* A duration or a time of the papers, on the kernel's clock. */
static __always_inline u64 to_kernel_ns(u64 t_ns)
{
	return t_ns << dilation_shift;
}

/* A rate of the papers, in the unit of the kernel's pacing. */
static __always_inline u64 to_kernel_bytes_per_s(u64 rate_bps)
{
	return (rate_bps >> 3) >> dilation_shift;
}

#endif
