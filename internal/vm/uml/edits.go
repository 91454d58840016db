// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// edit changes one place of a file of Linux.
type edit struct {
	file string
	at   string // regular expression that matches once
	with string // as [regexp.Regexp.ReplaceAll] takes it
}

// edits are all that is changed in Linux. What is added stands in the folder linux.
var edits = []edit{
	// x86's JIT
	{"arch/x86/um/Makefile", `subarch\.o os-Linux/`, `subarch.o os-Linux/ pcn/`},
	{"arch/um/Kconfig", `(?m)^\tselect HAVE_ARCH_AUDITSYSCALL$`,
		"$0\n\tselect HAVE_EBPF_JIT if X86_64"},
	// faults of BPF programs, and of their text, which is in an area of its own
	{"arch/um/kernel/trap.c", `(?m)^#include <skas\.h>$`,
		"$0\n#include \"../../x86/um/pcn/pcn.h\""},
	{"arch/um/kernel/trap.c",
		`(?m)^\tif \(!is_user && address >= start_vm && address < end_vm\) \{$`,
		"\tif (!is_user && pcn_bpf_fault(ip, address, mc))\n\t\tgoto out;\n" +
			"\tif (!is_user && ((address >= start_vm && address < end_vm) ||\n" +
			"\t\t\t pcn_jit_address(address))) {"},

	// A clock of single ns, and timers that are not 1 ns late
	{"arch/um/include/linux/time-internal.h", `(?m)^(#define TIMER_MULTIPLIER) .*$`, "$1 1"},
	{"arch/um/include/linux/time-internal.h", `(?m)^(#define TIMER_MIN_DELTA) .*$`, "$1 1"},
	{"arch/um/kernel/time.c", `(?m)^\tdelta \+= 1;$`,
		"\tif (time_travel_mode == TT_MODE_OFF)\n\t\tdelta += 1;"},
	// To read the clock takes no time, nor does a system call that fails, but for a program that
	// tries again and again: see pcn.h
	{"arch/um/kernel/time.c", `(?m)^#include <linux/time-internal\.h>$`,
		"$0\n#include \"../../x86/um/pcn/pcn.h\""},
	{"arch/um/kernel/time.c", `if \(!irqs_disabled\(\) && !in_interrupt\(\) && ` +
		`!in_softirq\(\) &&\s+!time_travel_ext_waiting\)\s+` +
		`time_travel_update_time_rel\(TIMER_MULTIPLIER\);`,
		`if (!irqs_disabled() && !in_interrupt() && !in_softirq()) {
			static struct pcn_tries reads;
			unsigned long step_ns = pcn_step(&reads, time_travel_time);

			if (step_ns)
				time_travel_update_time_rel(step_ns);
		}`},

	{"arch/um/kernel/time.c", `(?m)^EXPORT_SYMBOL\(time_travel_ndelay\);$`, `$0

void pcn_call_failed(void)
{
	static struct pcn_tries failures;
	unsigned long step_ns = pcn_step(&failures, time_travel_time);

	if (step_ns)
		time_travel_ndelay(step_ns);
}`},
	{"arch/um/kernel/skas/syscall.c", `um_udelay\(1\);`, "pcn_call_failed();"},
	{"arch/um/kernel/skas/syscall.c", `(?m)^\t\t\tschedule\(\);\n\t\t\}$`,
		"\t\t\tschedule();\n\t\t} else {\n\t\t\tpcn_called();\n\t\t}"},
	{"arch/um/os-Linux/main.c", `(?m)^static void last_ditch_exit\(int sig\)\n\{$`,
		"void pcn_say_current(void);\n\n$0\n\tif (sig == SIGTERM)\n\t\tpcn_say_current();"},
	{"arch/um/kernel/skas/syscall.c", `(?m)^#include <linux/time-internal\.h>$`,
		"$0\n#include \"../../../x86/um/pcn/pcn.h\""},

	// The vDSO reads the time from a page: see clock.h
	{"arch/x86/um/vdso/um_vdso.c", `(?m)^#include <asm/unistd\.h>$`,
		"$0\n#include \"../pcn/vdso.h\""},
	{"arch/x86/um/vdso/um_vdso.c", `(?m)^(int __vdso_clock_gettime\([^{]*\{\n\tlong ret;\n)`,
		"$1\n\tif (pcn_clock(clock, ts))\n\t\treturn 0;\n"},
	{"arch/x86/um/vdso/vma.c", `(?m)^#include <linux/init\.h>$`, "$0\n#include \"../pcn/pcn.h\""},
	{"arch/x86/um/vdso/vma.c", `(?m)^\t\t&vdso_mapping\);$`,
		"$0\n\tif (!IS_ERR(vma))\n\t\tvma = pcn_map_clock(mm, um_vdso_addr - PAGE_SIZE);"},
	{"arch/um/os-Linux/skas/process.c", `(?m)^#include <skas\.h>$`,
		"$0\n#include \"../../../x86/um/pcn/clock.h\""},
	{"arch/um/os-Linux/skas/process.c", `(?m)^\t\tcurrent_mm_sync\(\);$`,
		"$0\n\t\tpcn_publish_time();"},

	// A fault gives several pages, and the host maps them at once
	{"arch/um/kernel/trap.c", `(?m)^\t\} while \(!pte_present\(\*pte\)\);$`,
		"$0\n\tpcn_fault_around(vma, address);"},
	{"mm/memory.c", `65536 >> PAGE_SHIFT`, "PMD_SIZE >> PAGE_SHIFT"}, // of files
	{"arch/um/kernel/skas/stub.c", `MAP_SHARED \| MAP_FIXED`, "$0 | MAP_POPULATE"},

	// Fresh memory is zero already: see fresh.c
	{"mm/page_alloc.c", `(?m)^\tarch_alloc_page\(page, order\);$`,
		"$0\n\tinit = pcn_must_clear(page, order, init);"},
	{"mm/page_alloc.c", `(?m)^#include <linux/highmem\.h>$`,
		"$0\n#include \"../arch/x86/um/pcn/pcn.h\""},
	{"mm/mm_init.c", `map = memmap_alloc\([^;]*;`, "$0\n\tpcn_populate(map, size);"},
	{"mm/mm_init.c", `(?m)^#include "internal\.h"$`,
		"$0\n#include \"../arch/x86/um/pcn/pcn.h\""},
	{"mm/memory.c", `(?m)^#include "internal\.h"$`,
		"$0\n#define vma_alloc_zeroed_movable_folio(vma, vaddr) \\\n" +
			"\tvma_alloc_folio(GFP_HIGHUSER_MOVABLE | __GFP_ZERO, 0, vma, vaddr)"},

	// Only these drivers have anything to build: to look into each of the others takes a make
	{"drivers/Makefile", `(?s)^.+$`, "obj-y := base/ char/ net/ tty/\n"},

	// What most files include is compiled once, where PCN_HEADERS is set: see common.h. Not so for
	// the files of pcn-apart: each defines a macro that its headers ask for, or names something as
	// another header names a macro.
	{"scripts/Makefile.lib", `(?m)^(c_flags +=.*\$\(NOSTDINC_FLAGS\)) (\$\(LINUXINCLUDE\)[^$]*` +
		`\$\(srctree\).*\n.*\$\(_c_flags\)) (\$\(modkern_cflags\)[ \t]*\\\n` +
		`[ \t]*\$\(basename_flags\) \$\(modname_flags\))$`,
		"pcn-apart = init/main kernel/sched/core kernel/softirq lib/sort " + addedDir + "/jit\n" +
			"pcn-first = $$(if $$(filter $$(pcn-apart),$$(obj)/$$(basetarget)),," +
			"-include $$(srctree)/" + addedDir + "/first.h)" +
			" -include $$(srctree)/" + addedDir + "/names.h\n" +
			"pcn-names = $$(subst -DKBUILD_,-DPCN_,$$(subst -D__KBUILD_,-DPCN__,$$(1)))\n" +
			"$1 $$(pcn-first) $2 $$(call pcn-names,$3)"},
	{"Makefile", `(?m)^prepare: prepare0$`, "$0\nifdef PCN_HEADERS\n" +
		"\t$$(Q)$$(MAKE) $$(build)=" + addedDir + " " + addedDir + "/first.h.gch\nendif"},

	// TCP's timers count ticks: of 1 ms, not 10
	{"arch/um/Kconfig", `(?m)^(config HZ\n\tint\n\tdefault) 100$`, "$1 1000"},

	// How much data a flow may have in its own host's queue is a parameter of the machine
	{"net/core/sock.c", `(?m)(WRITE_ONCE\(sk->sk_pacing_shift), 10\);`, "$1, pcn_pacing_shift);"},
	{"net/core/sock.c", `(?m)^#include <linux/ethtool\.h>$`,
		"$0\n#include \"../../arch/x86/um/pcn/pcn.h\""},

	// Random numbers follow from the command line, not from the host
	{"arch/um/kernel/um_arch.c",
		`if \(os_getrandom\(rng_seed, sizeof\(rng_seed\), 0\) == sizeof\(rng_seed\)\)`,
		"if (false)"},
	{"arch/um/include/asm/archrandom.h", `ret = os_getrandom\([^;]*;`, "ret = 0;"},
	// and not from the kernel's build, nor from addresses in it
	{"drivers/char/random.c", `(?m)^\tblake2s_update\(&input_pool\.hash, buf, len\);$`, ""},
	{"drivers/char/random.c", `_mix_pool_bytes\(command_line, strlen\(command_line\)\);`,
		"blake2s_update(&input_pool.hash, command_line, strlen(command_line));"},
	{"net/ipv4/tcp_bbr.c", `get_random_u32_below\(`, "pcn_random_below("},
	{"net/ipv4/tcp_bbr.c", `(?m)^#include <linux/random\.h>$`,
		"$0\n#include \"../../arch/x86/um/pcn/pcn.h\""},

	// nor are any drawn for tables of fragments of IPv6, which netfilter gives each namespace: what
	// programs draw is the same with netfilter and without
	{"lib/rhashtable.c", `tbl->hash_rnd = get_random_u32\(\);`,
		"tbl->hash_rnd = pcn_draw_hashes ? get_random_u32() : 0;"},
	{"lib/rhashtable.c", `(?m)^#include <linux/rhashtable\.h>$`,
		"$0\n#include \"../arch/x86/um/pcn/pcn.h\""},
	{"net/ipv6/netfilter/nf_conntrack_reasm.c", `res = fqdir_init\([^;]*;`,
		"pcn_draw_hashes = false;\n\t$0\n\tpcn_draw_hashes = true;"},
	{"net/ipv6/netfilter/nf_conntrack_reasm.c",
		`(?m)^#include <net/netfilter/ipv6/nf_defrag_ipv6\.h>$`,
		"$0\n#include \"../../../arch/x86/um/pcn/pcn.h\""},

	// /sys/kernel/btf/vmlinux is read, not mapped: it is not in the file of UML's memory
	{"kernel/bpf/sysfs_btf.c", `(?m)^\t\.mmap = btf_sysfs_vmlinux_mmap,$`, ""},
	{"kernel/bpf/sysfs_btf.c", `static int btf_sysfs_vmlinux_mmap`,
		"static int __maybe_unused btf_sysfs_vmlinux_mmap"},
	// and not a page a call, of which it has 446
	{"fs/kernfs/file.c", `min_t\(size_t, iov_iter_count\(iter\), PAGE_SIZE\);`,
		"min_t(size_t, iov_iter_count(iter),\n" +
			"\t\t\t    of->prealloc_buf ? PAGE_SIZE : SZ_2M);"},
	{"fs/kernfs/file.c", `buf = kmalloc\(len, GFP_KERNEL\);\n\tif \(!buf\)\n\t\treturn`,
		"buf = kvmalloc(len, GFP_KERNEL);\n\tif (!buf)\n\t\treturn"},
	{"fs/kernfs/file.c", `kfree\(buf\);\n\treturn len;\n\}\n\nstatic ssize_t kernfs_fop_read_iter`,
		"kvfree(buf);\n\treturn len;\n}\n\nstatic ssize_t kernfs_fop_read_iter"},

	// The archive is read into memory that the host gives at once, and that nothing cleared before
	{"arch/um/kernel/load_file.c", `area = memblock_alloc_or_panic\(\*size, SMP_CACHE_BYTES\);`,
		"area = memblock_alloc_raw(*size, SMP_CACHE_BYTES);\n" +
			"\tif (!area)\n\t\tpanic(\"no memory for %s\", filename);\n" +
			"\tpcn_populate(area, *size);"},
	{"arch/um/kernel/load_file.c", `(?m)^#include <os\.h>$`,
		"$0\n#include \"../../x86/um/pcn/pcn.h\""},

	// The kernel ends below 2 GiB, so addresses of 32 bits do: calls are direct
	{"arch/um/Makefile", `-mcmodel=large`, "-mcmodel=small"},

	// and the compiler knows what memcpy and memset do, as it does on x86: it copies few bytes
	// itself. More it would copy by rep movs, which takes longer to start than a call.
	{"arch/x86/Makefile.um", `-fno-builtin -m64`,
		"-m64 -mmemcpy-strategy=unrolled_loop:256:noalign,libcall:-1:noalign " +
			"-mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign"},

	// To switch interrupts off and on is to write a variable: see irqflags.h
	{"arch/um/include/asm/irqflags.h",
		`(?s)#define arch_local_save_flags.*\n\n(#define ARCH_IRQ_DISABLED)`,
		"#include \"../../../x86/um/pcn/irqflags.h\"\n\n$1"},
	{"arch/um/os-Linux/internal.h", `__thread (int signals_enabled;)`, "$1"},
	{"arch/um/os-Linux/signal.c", `(?m)^__thread (int signals_enabled;)$`, "$1"},
	{"arch/um/os-Linux/signal.c", `static __thread (unsigned int signals_pending;)`, "$1"},
	{"arch/um/kernel/time.c", `(?m)^\t\tlist_add_tail\(&e->list, &time_travel_irqs\);$`,
		"$0\n\t\tsignals_pending |= PCN_EVENT_PENDING;"},

	// A timer's interrupt calls the timer, and not what looks it up, counts it and watches it. What
	// interrupts add to random numbers is nothing, see above, but it counts how many there were.
	{"arch/um/kernel/time.c", `(?m)^(void timer_handler\([^{]*)\{$`,
		"static irqreturn_t um_timer(int irq, void *dev);\n\n$1{\n\tstruct pt_regs *before;"},
	{"arch/um/kernel/time.c", `(?m)^\tdo_IRQ\(TIMER_IRQ, regs\);$`,
		`	before = set_irq_regs((struct pt_regs *)regs);
	irq_enter();
	um_timer(TIMER_IRQ, NULL);
	add_interrupt_randomness(TIMER_IRQ);
	irq_exit();
	set_irq_regs(before);`},
	{"arch/um/kernel/time.c", `(?m)^#include <linux/interrupt\.h>$`,
		"$0\n#include <linux/random.h>\n#include <asm/irq_regs.h>"},
	{"arch/um/os-Linux/signal.c", `memset\(&regs, 0, sizeof\(regs\)\);\n(\ttimer_handler)`,
		"regs.is_user = 0; /* nothing else is read */\n$1"},
	// The next event of an idle machine is due: nothing stands before it
	{"arch/um/kernel/time.c", `(?m)^\t/\* add it without a handler - we deal`,
		`	e = time_travel_first_event();
	if (idle && time_travel_mode == TT_MODE_INFCPU && e && !e->onstack) {
		time_travel_set_time(e->time);
		time_travel_del_event(e);
		time_travel_deliver_event(e);
		return;
	}

$0`},
	{"arch/um/kernel/time.c", `static (void time_travel_deliver_event\()`,
		"static __always_inline $1"},
	{"drivers/char/random.c", `fast_mix\(fast_pool->pool, entropy,[^;]*;`, ""},
	{"drivers/char/random.c", `unsigned long entropy = random_get_entropy\(\);\n` +
		`(\tstruct fast_pool \*fast_pool = .*)\n.*get_irq_regs.*\n`, "$1\n"},

	// The host maps neighbours of the kernel's memory in one call
	{"arch/um/kernel/tlb.c",
		`ret = ops->mmap\(ops->mm_idp, addr, PAGE_SIZE,(\s+prot, fd, offset\);)`,
		`bytes = PAGE_SIZE;
			while (addr + bytes < end && pte_needsync(pte[1]) &&
			       pte_val(pte[1]) == pte_val(pte[0]) + PAGE_SIZE) {
				*pte = pte_mkuptodate(*pte);
				pte++;
				bytes += PAGE_SIZE;
			}
			ret = ops->mmap(ops->mm_idp, addr, bytes,$1
			addr += bytes - PAGE_SIZE;`},
	{"arch/um/kernel/tlb.c", `int r, w, x, prot;`, "$0\n\t\t\tunsigned long bytes;"},

	// Nothing of the host is touched: memory is a file without a name, there is no folder ~/.uml,
	// and a machine that restarts ends
	{"arch/um/os-Linux/mem.c", `fd = make_tempfile\(TEMPNAME_TEMPLATE\);`,
		`fd = memfd_create("pcn-vm", 0);`},
	{"arch/um/os-Linux/umid.c", `(?m)^(static int __init make_umid_init\(void\)\n\{)$`,
		"$1\n\treturn 0;"},
	{"arch/um/os-Linux/main.c", `execvp\(new_argv\[0\], new_argv\);\s*perror\([^;]*;`, ""},
}

// apply makes the edits in a tree of Linux.
func apply(tree string) error {
	for _, e := range edits {
		if err := e.apply(tree); err != nil {
			return fmt.Errorf("change Linux for user mode: %s: %w", e.file, err)
		}
	}
	return nil
}

func (e edit) apply(tree string) error {
	path := filepath.Join(tree, e.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if text, err = e.change(text); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// change returns a file's text with the change.
func (e edit) change(text []byte) ([]byte, error) {
	at := regexp.MustCompile(e.at)
	if n := len(at.FindAllIndex(text, -1)); n != 1 {
		return nil, fmt.Errorf("%q matches %d times: want once. This version of Linux is not "+
			"supported", e.at, n)
	}
	return at.ReplaceAll(text, []byte(e.with)), nil
}
