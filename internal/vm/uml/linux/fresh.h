/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PCN_FRESH_H
#define PCN_FRESH_H

/* What fresh.c asks of the host. */

/*
 * pcn_find_hole finds the first part of a file, between from and to, that was never touched. It
 * returns 0 if there is none.
 */
int pcn_find_hole(int fd, unsigned long from, unsigned long to, unsigned long *start,
		  unsigned long *end);

/* pcn_touch has the host give memory and map it. A host that can't do that does so at faults. */
void pcn_touch(void *start, unsigned long bytes);

/* pcn_touch_huge does so in pages of huge_bytes. It returns 0 if the host can't, or is slow. */
int pcn_touch_huge(void *start, unsigned long bytes, unsigned long huge_bytes);

#endif
