// SPDX-License-Identifier: GPL-2.0
/*
 * x86's BPF JIT, compiled for User Mode Linux (UML). UML's kernel is an ordinary x86-64 program: no
 * SMP, no per-CPU segment, no CFI, no mitigations, and its memory may be written and executed. So
 * the JIT's own file is included as it is, between definitions of what it takes from x86's kernel.
 */
/* The headers of x86 that hold what UML does not have. */
#define _ASM_X86_NOSPEC_BRANCH_H_
#define _ASM_X86_TEXT_PATCHING_H
#include <linux/netdevice.h>
#include <linux/filter.h>
#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/memory.h>
#include <linux/execmem.h>
#include <linux/extable.h>
#include <linux/vmalloc.h>
#include <linux/cfi.h>
#include <asm/extable.h>
#include <asm/cpufeature.h>
#include "pcn.h"

#undef cpu_feature_enabled
#define cpu_feature_enabled(x) 0
#undef boot_cpu_has
#define boot_cpu_has(x) 0

/* Nops of 1 to 8 bytes. */
#undef ASM_NOP_MAX
#define ASM_NOP_MAX 8
static const u8 nops[ASM_NOP_MAX + 1][ASM_NOP_MAX] = {
	{},
	{0x90},
	{0x66, 0x90},
	{0x0f, 0x1f, 0x00},
	{0x0f, 0x1f, 0x40, 0x00},
	{0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00},
	{0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00},
	{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00},
};
#define x86_nops nops

/*
 * The registers at a fault are those of the host's mcontext_t, in its order, which is part of
 * Linux's interface: ex_handler_bpf() sets one of them to 0 and skips the load.
 */
struct fault_regs {
	unsigned long r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip;
};
#define pt_regs fault_regs

/* The JIT's own check of addresses leaves NULL and small offsets from it to be seen as 0. */
#undef VSYSCALL_ADDR
#define VSYSCALL_ADDR 0UL
#undef TASK_SIZE_MAX
#define TASK_SIZE_MAX ((1UL << 20) - PAGE_SIZE)

/* CFI is off. */
#undef cfi_mode
#define cfi_mode CFI_OFF
#undef cfi_bhi
#define cfi_bhi	   0
#define __bhi_args um_bhi_args
static void *um_bhi_args[8];

/* Text is ordinary memory. */
#define text_poke_copy(to, from, n)		   memcpy(to, from, n)
#define text_poke_set(to, c, n)			   memset(to, c, n)
#define smp_text_poke_single(to, from, n, emulate) memcpy(to, from, n)

/* Never called: no mitigation is on. */
extern char x86_return_thunk[], clear_bhb_loop[];
extern char __x86_indirect_thunk_array[16], __x86_indirect_jump_thunk_array[16];

#define ex_handler_bpf um_ex_handler_bpf
bool um_ex_handler_bpf(const struct exception_table_entry *x, struct fault_regs *regs);

#include "../../net/bpf_jit_comp.c"

/*
 * Programs call the kernel's functions by 32-bit offsets, so they must lie within 2 GiB of its
 * text, at 0x60000000. UML's own place for them is behind all of its memory. Below the text there
 * is nothing.
 */
#define JIT_START 0x10000000UL
#define JIT_END	  0x50000000UL

bool pcn_jit_address(unsigned long address)
{
	return address >= JIT_START && address < JIT_END;
}

struct execmem_info __init *execmem_arch_setup(void)
{
	static struct execmem_info info = {
		.ranges =
			{
				[EXECMEM_DEFAULT] =
					{
						.start = JIT_START,
						.end = JIT_END,
						.alignment = 1,
					},
			},
	};

	info.ranges[EXECMEM_DEFAULT].pgprot = PAGE_KERNEL_EXEC;
	return &info;
}

/*
 * pcn_bpf_fault handles a fault of the kernel at ip, if that is a load of a BPF program through a
 * pointer that may be invalid. Faults of memory that only waits to be mapped are not its business.
 */
bool pcn_bpf_fault(unsigned long ip, unsigned long address, void *mcontext)
{
	const struct exception_table_entry *entry = search_bpf_extables(ip);

	if (!mcontext || !entry)
		return false;
	if (is_vmalloc_addr((void *)address) && vmalloc_to_page((void *)address))
		return false;
	return um_ex_handler_bpf(entry, mcontext);
}
