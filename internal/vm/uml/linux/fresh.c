// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that nothing has used yet. The machine's memory is a file of the host, whose pages are
 * zero, and exist from when they are first touched. So what the kernel wants to be zero is not
 * written, if it was never used: large maps of BPF cost what is used of them. What will be written
 * is taken from the host many pages at a time, as each page fault takes longer than to get a page:
 * in pages of 2 MiB, if the host gives those, or else in 128 KB.
 */
#include <linux/bitmap.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <as-layout.h>
#include <mem.h>
#include "fresh.h"
#include "pcn.h"

#define MAX_PAGES   (64UL << (30 - PAGE_SHIFT)) /* what is beyond is never fresh */
#define BLOCK_PAGES 32UL
#define BLOCK_BYTES (BLOCK_PAGES << PAGE_SHIFT)
#define HUGE_BYTES  (2 * PMD_SIZE) /* at a time */

static DECLARE_BITMAP(fresh, MAX_PAGES);
static DECLARE_BITMAP(populated, MAX_PAGES / BLOCK_PAGES);
static unsigned long pages; /* of the machine, at most MAX_PAGES */

/* find_fresh asks the host, before the first page is given, which pages were not touched. */
static void find_fresh(void)
{
	unsigned long long offset;
	unsigned long start, end = 0;
	int fd = phys_mapping(0, &offset);

	pages = min(physmem_size >> PAGE_SHIFT, MAX_PAGES);
	while (end < pages &&
	       pcn_find_hole(fd, end << PAGE_SHIFT, pages << PAGE_SHIFT, &start, &end)) {
		start >>= PAGE_SHIFT;
		end >>= PAGE_SHIFT;
		bitmap_set(fresh, start, end - start);
	}
}

/*
 * populate_huge has the host give memory in pages of 2 MiB, from start to end at least. It returns
 * whether it did: not below the part of the memory that is mapped as one, nor where the host has
 * none, is too old, or was slow once.
 */
static bool populate_huge(unsigned long start, unsigned long end)
{
	static bool refused;
	unsigned long lowest = (unsigned long)__va(PFN_PHYS(min_low_pfn));
	unsigned long highest = (unsigned long)__va(physmem_size);
	unsigned long from = max(ALIGN_DOWN(start, HUGE_BYTES), ALIGN(lowest, PMD_SIZE));
	unsigned long to = min(ALIGN(end, HUGE_BYTES), ALIGN_DOWN(highest, PMD_SIZE));

	if (refused || start < from || end > to)
		return false;
	refused = !pcn_touch_huge((void *)from, to - from, PMD_SIZE);
	if (!refused && __pa(to) >> PAGE_SHIFT <= MAX_PAGES)
		bitmap_set(populated, __pa(from) / BLOCK_BYTES, (to - from) / BLOCK_BYTES);
	return !refused;
}

void pcn_populate(void *start, unsigned long bytes)
{
	unsigned long from = (unsigned long)start;

	if (!populate_huge(from, from + bytes))
		pcn_touch((void *)PAGE_ALIGN_DOWN(from), bytes);
}

static void populate_around(unsigned long pfn)
{
	unsigned long block = pfn / BLOCK_PAGES;
	void *start = __va(block * BLOCK_BYTES);

	if (!test_and_set_bit(block, populated) &&
	    !populate_huge((unsigned long)start, (unsigned long)start + BLOCK_BYTES))
		pcn_touch(start, min(BLOCK_PAGES, pages - block * BLOCK_PAGES) << PAGE_SHIFT);
}

/* pcn_must_clear returns whether pages that are being given must still be cleared. */
bool pcn_must_clear(struct page *page, unsigned int order, bool clear)
{
	unsigned long pfn = page_to_pfn(page), end = pfn + (1UL << order);
	bool used = false;

	if (!pages)
		find_fresh();
	if (end > pages)
		return clear;
	for (; pfn < end; pfn++) {
		if (!test_and_clear_bit(pfn, fresh))
			used = true;
		else if (!clear)
			populate_around(pfn);
	}
	return clear && used;
}
