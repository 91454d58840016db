/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counters: a struct of u64 in a map of the same name, one for each CPU. The members of the struct
 * name the counters everywhere: user space reads the names from BTF. A trailing underscore, which
 * avoids a keyword of C, is not part of the name.
 */
#ifndef PCN_COUNTS_H
#define PCN_COUNTS_H

/*
 * COUNTS(name) defines the map of struct name, and name_add(counter), which adds 1.
 * COUNTER(name, member) is a counter of it.
 */
#define COUNTS(name_)                                                                              \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);                                           \
		__uint(max_entries, 1);                                                            \
		__type(key, u32);                                                                  \
		__type(value, struct name_);                                                       \
	} name_ SEC(".maps");                                                                      \
                                                                                                   \
	static __always_inline void name_##_add(u32 counter)                                       \
	{                                                                                          \
		u32 zero = 0;                                                                      \
		u64 *n = bpf_map_lookup_elem(&name_, &zero);                                       \
                                                                                                   \
		if (n && counter < sizeof(struct name_) / sizeof(*n))                              \
			n[counter]++;                                                              \
	}

#define COUNTER(name_, member_) (__builtin_offsetof(struct name_, member_) / sizeof(u64))

#endif
