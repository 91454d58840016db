/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Histograms of how late things happen. */
#ifndef NPECN_LATE_H
#define NPECN_LATE_H

enum late_limit {
	/* Buckets of 64 ns, the last one open. */
	LATE_BUCKETS = 128,
	LATE_BUCKET_SHIFT = 6,
};

struct lateness {
	u64 max_ns;
	u64 counts[LATE_BUCKETS];
};

/* count_late: what was due at due_ns happens now. */
static __always_inline void count_late(struct lateness *l, u64 due_ns, u64 now)
{
	s64 late_ns = now - due_ns;
	u64 b;

	if (late_ns < 0)
		late_ns = 0;
	b = late_ns >> LATE_BUCKET_SHIFT;
	if (b >= LATE_BUCKETS)
		b = LATE_BUCKETS - 1;
	barrier_var(b); /* or clang checks another register than it indexes by */

	if ((u64)late_ns > l->max_ns)
		l->max_ns = late_ns;
	l->counts[b]++;
}

#endif
