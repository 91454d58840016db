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

#endif
