/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Modules of users' own schemes tell the simulator now and then that they still run: no verifier
 * has looked at them, and machine code that never returns to Go can't be stopped from outside.
 * clang calls a function in each basic block (-fsanitize-coverage=trace-pc), loops included. This
 * file is included before the user's: config/scheme/compile/simulate.go.
 */
#ifndef PCN_ENDLESS_H
#define PCN_ENDLESS_H

/* Basic blocks between two questions, a power of two: about 2 ms. */
#define STILL_RUNNING_BLOCKS (1 << 20)

__attribute__((import_module("watch"), import_name("still_running"))) void still_running(void);

__attribute__((no_sanitize("coverage"))) void __sanitizer_cov_trace_pc(void)
{
	static unsigned int blocks;

	if (!(++blocks % STILL_RUNNING_BLOCKS))
		still_running();
}

/*
 * What the compiler calls where an index is out of its array's bounds, or a null pointer is
 * followed: the kernel's verifier refuses both. It ends the simulation. So do a division by zero
 * and a shift by more bits than there are, where a kernel goes on with another number; and a
 * control that allows a flow nothing.
 */
__attribute__((noinline)) void control_allows_nothing(void)
{
	__builtin_trap();
}

#define CONTROL_ALLOWS(rate_or_window_)                                                            \
	do {                                                                                       \
		if ((s64)(rate_or_window_) <= 0)                                                   \
			control_allows_nothing();                                                  \
	} while (0)

__attribute__((noinline)) void __ubsan_handle_out_of_bounds_minimal_abort(void)
{
	__builtin_trap();
}

__attribute__((noinline)) void __ubsan_handle_type_mismatch_minimal_abort(void)
{
	__builtin_trap();
}

__attribute__((noinline)) void __ubsan_handle_divrem_overflow_minimal_abort(void)
{
	__builtin_trap();
}

__attribute__((noinline)) void __ubsan_handle_shift_out_of_bounds_minimal_abort(void)
{
	__builtin_trap();
}

#endif
