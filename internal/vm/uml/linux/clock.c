// SPDX-License-Identifier: GPL-2.0
/* The page in which programs of the guest find the time: see clock.h. */
#include <linux/init.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/timekeeping.h>
#include "clock.h"
#include "pcn.h"

static struct page *time_page;
static struct pcn_time *now;

static int __init pcn_clock_init(void)
{
	time_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!time_page)
		panic("no memory for the page of the time");
	now = page_address(time_page);
	return 0;
}
subsys_initcall(pcn_clock_init);

struct vm_area_struct *pcn_map_clock(struct mm_struct *mm, unsigned long address)
{
	static struct vm_special_mapping mapping = {
		.name = "[vvar]",
		.pages = &time_page,
	};

	return _install_special_mapping(
		mm, address, PAGE_SIZE,
		VM_READ | VM_WRITE | VM_SHARED | VM_MAYSHARE | VM_MAYREAD | VM_MAYWRITE, &mapping);
}

void pcn_publish_time(void)
{
	unsigned long flags;
	u64 monotonic_ns;

	/* with interrupts off, to read the clock is no try: see pcn_step */
	local_irq_save(flags);
	monotonic_ns = ktime_get_ns();
	if (monotonic_ns != now->monotonic_ns)
		now->reads = 0;
	now->monotonic_ns = monotonic_ns;
	now->real_ns = ktime_get_real_ns();
	local_irq_restore(flags);
}
