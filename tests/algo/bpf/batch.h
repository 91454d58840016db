/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The algorithm headers as programs that a Go test can run.
 *
 * Each program takes a batch of steps from its array map, passes them one after the other to the
 * header under test, and writes the outcome back into the step. Nothing is decided here. A program
 * returns the number of steps that it did.
 */
#ifndef PCN_TEST_BATCH_H
#define PCN_TEST_BATCH_H

#define MAX_STEPS 65536

#define ARRAY(name, type_, entries)                                                                \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, entries);                                                      \
		__type(key, u32);                                                                  \
		__type(value, type_);                                                              \
	} name SEC(".maps")

#endif
