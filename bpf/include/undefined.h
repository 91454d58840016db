/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What C leaves undefined, and a kernel answers without a word: a division by zero gives 0, and of
 * a shift by too many bits only the low ones count. A user's own control, marking rule or
 * notification point counts both in labs. A control also counts when a flow may send nothing.
 *
 * clang calls the functions below with a place in the C file (-fsanitize=integer-divide-by-zero,
 * shift-exponent). This file is included before the user's: config/scheme/compile/undefined.go.
 */
#ifndef PCN_UNDEFINED_H
#define PCN_UNDEFINED_H

/* clock.h defines it. What is wrong with a call of it has the line of the call. */
static inline __attribute__((nodebug)) unsigned long long now_ns(void);

/* The beginning of what clang passes. */
struct undefined_place {
	unsigned long long file; /* an offset in the section .rodata.str1.1 */
	unsigned int line;
	unsigned int column;
};

struct undefined_seen {
	struct undefined_place first;
	unsigned long long times;
};

/* The programs of a control share this: it is a map. */
struct {
	struct undefined_seen divisions;
	struct undefined_seen shifts;
	struct undefined_seen standstills; /* without a place */
} undefined __attribute__((section(".data.undefined"), used));

static __attribute__((always_inline)) inline void undefined_add(struct undefined_seen *seen,
								const struct undefined_place *place)
{
	if (!seen->times)
		seen->first = *place;
	__sync_fetch_and_add(&seen->times, 1);
}

static __attribute__((noinline, used)) void
__ubsan_handle_divrem_overflow(const struct undefined_place *place, unsigned long long left,
			       unsigned long long right)
{
	undefined_add(&undefined.divisions, place);
}

static __attribute__((noinline, used)) void
__ubsan_handle_shift_out_of_bounds(const struct undefined_place *place, unsigned long long left,
				   unsigned long long right)
{
	undefined_add(&undefined.shifts, place);
}

/* A control said what a flow may send. With nothing, TCP sends a packet now and then. */
#define CONTROL_ALLOWS(rate_or_window_)                                                            \
	do {                                                                                       \
		if ((s64)(rate_or_window_) <= 0)                                                   \
			__sync_fetch_and_add(&undefined.standstills.times, 1);                     \
	} while (0)

#endif
