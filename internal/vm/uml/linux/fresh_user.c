// SPDX-License-Identifier: GPL-2.0
/* The host's side of fresh.c. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#include "fresh.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

int pcn_find_hole(int fd, unsigned long from, unsigned long to, unsigned long *start,
		  unsigned long *end)
{
	off_t hole = lseek(fd, from, SEEK_HOLE), data;

	if (hole < 0 || (unsigned long)hole >= to)
		return 0;
	data = lseek(fd, hole, SEEK_DATA); /* fails if there is no data behind */
	*start = hole;
	*end = data < 0 || (unsigned long)data > to ? to : data;
	return 1;
}

void pcn_touch(void *start, unsigned long bytes)
{
	madvise(start, bytes, MADV_POPULATE_WRITE);
}

int pcn_touch_huge(void *start, unsigned long bytes, unsigned long huge_bytes)
{
	char *at = start, *end = at + bytes;

	/* the host makes huge pages only of what has a page */
	for (; at < end; at += huge_bytes)
		*(volatile char *)at = *(volatile char *)at;
	return madvise(start, bytes, MADV_COLLAPSE) == 0;
}
