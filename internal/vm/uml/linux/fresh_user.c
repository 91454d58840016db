// SPDX-License-Identifier: GPL-2.0
/* The host's side of fresh.c. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "fresh.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/*
 * A page of 2 MiB takes the host 0.1 to 0.3 ms, and as small pages 1 to 2 ms. It takes longer where
 * the host is a virtual machine whose own host has no memory behind it.
 */
#define SLOW_NS 2000000

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

	for (; at < end; at += huge_bytes) {
		struct timespec from, to;

		clock_gettime(CLOCK_MONOTONIC, &from);
		/* the host makes a huge page only of what has a page */
		*(volatile char *)at = *(volatile char *)at;
		if (madvise(at, huge_bytes, MADV_COLLAPSE))
			return 0;
		clock_gettime(CLOCK_MONOTONIC, &to);
		if ((to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec > SLOW_NS)
			return 0;
	}
	return 1;
}
