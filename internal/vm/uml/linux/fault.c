// SPDX-License-Identifier: GPL-2.0
/* Page faults of programs of the guest. */
#include <linux/mm.h>
#include "pcn.h"

/*
 * Each fault is handed over to the kernel and back, which takes longer than to give a page. So a
 * fault in a program's own memory gives it the neighbours too, up to so many bytes, aligned.
 */
#define AROUND (128 * PAGE_SIZE)

void pcn_fault_around(struct vm_area_struct *vma, unsigned long address)
{
	unsigned long block = address & ~(AROUND - 1);
	unsigned long end = min(block + AROUND, vma->vm_end);
	unsigned long at;

	if (!vma_is_anonymous(vma) || !(vma->vm_flags & VM_WRITE))
		return;
	for (at = max(block, vma->vm_start); at < end; at += PAGE_SIZE) {
		/* they have the fault's page table: it maps 2 MiB */
		pte_t *pte = pte_offset_kernel(pmd_off(vma->vm_mm, at), at);

		/* without FAULT_FLAG_ALLOW_RETRY the lock is kept */
		if (pte_none(*pte) &&
		    handle_mm_fault(vma, at, FAULT_FLAG_WRITE | FAULT_FLAG_USER, NULL) &
			    VM_FAULT_ERROR)
			return;
	}
}
