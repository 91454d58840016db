// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/vm/guest"
)

// The programs of QEMU, for each machine that it emulates.
const (
	qemu      = "qemu-system-x86_64"
	qemuARM64 = "qemu-system-aarch64"
)

// qemu returns the program that runs the kernel.
func (k Kernel) qemu() string {
	if k.arm64 {
		return qemuARM64
	}
	return qemu
}

// machineFlags are QEMU's flags for every microVM.
var machineFlags = []string{
	"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
}

// pcFlags are those of a microVM of amd64.
var pcFlags = []string{
	// of pc, q35 and microvm only the first two have an HPET, see clockParameters
	"-M", "pc,hpet=on",
	"-bios", "qboot.rom", // no option ROMs, no boot menu: 0.3 s less
}

// arm64Flags are those of one of arm64. Neoverse N1 has the atomic instructions that the kernel's
// compiler of BPF prefers, and, unlike max, no pointer authentication, which is slow to emulate.
var arm64Flags = []string{"-M", "virt", "-cpu", "neoverse-n1"}

// countedFlags make time a count of instructions, so that a run does not depend on the host.
var countedFlags = []string{
	"-accel", "tcg",
	// rr=record makes QEMU's two threads take turns. Without it, the main loop may move the clock
	// on while the last instructions of a vCPU that halts are not yet counted: of 30 runs of
	// 150,000 sleeps, 25 differed.
	"-icount", "shift=0,sleep=off,rr=record,rrfile=/dev/null",
	"-rtc", "base=2026-01-01T00:00:00,clock=vm",
}

// countedCPUFlags are the processor of a microVM of amd64 whose time is counted.
var countedCPUFlags = []string{
	// rdrand stays: its numbers follow from QEMU's -seed, and with them the kernel's are random
	// enough from the start. Until then it hashes its whole pool for each: a fifth of the boot.
	// rdseed: the same, not needed. erms: TCG emulates rep movsb byte by byte, TCP over veth takes
	// 1.7 times as long. smap: stac and clac end a translation block, TCP on loopback takes 1.4
	// times as long. la57: a level of page tables more to walk at each TLB miss. The vector units:
	// more state to save at each context switch, in a helper. cx16: see below.
	"-cpu", "max,-rdseed,-erms,-smap,-smep,-la57,-pku,-avx,-avx2,-mpx,-vaes,-cx16",
}

// acceleration is how QEMU runs the guest's instructions.
type acceleration int

const (
	counted     acceleration = iota // time is a count of instructions: deterministic
	virtualised                     // KVM, by the clock
	emulated                        // by the clock, without KVM
)

// Without cx16, as QEMU 7.2's cmpxchg16b now and then leaves half of an operand in the flags: Linux
// 6.12 panics in kmalloc.
var (
	virtualisedFlags = []string{"-accel", "kvm", "-cpu", "host"}
	emulatedFlags    = []string{"-accel", "tcg", "-cpu", "max,-cx16"}
)

// kernelParameters are the kernel parameters of every microVM.
var kernelParameters = []string{
	"quiet", "rdinit=/init",
	"oops=panic", "panic=-1", // and -no-reboot: a broken guest ends at once
	// DAMON and khugepaged look at the accessed bits of page tables. Those depend on what QEMU's
	// TLB held, and QEMU sizes its TLB by the host's clock: one run in fifty differed.
	"damon_stat.enabled=0", "transparent_hugepage=never",
	// Checks and accounting that a machine with one program has no use for: a tenth of all
	// instructions.
	"mitigations=off", "init_on_alloc=0", "randomize_kstack_offset=off", "hardened_usercopy=off",
	"lsm=", "audit=0",
	"cgroup_disable=memory", "psi=0", "nowatchdog", "kfence.sample_interval=0",
	// otherwise they run for 1.4 s of the guest's time after /init has started
	"cryptomgr.notests=1",
	"initcall_blacklist=" + strings.Join(notCalled, ","),
	"8250.nr_uarts=1", // it looks for four
}

// notCalled are functions that the kernel would call at its start: 250 million instructions.
var notCalled = []string{
	// certificates, as modules need no signature here; names of values in trace events; a check of
	// all functions that ftrace can trace
	"load_system_certificate_list", "trace_eval_init", "ftrace_check_for_weak_functions",
	// /sys/module of what is built in; /dev/hpet, which the kernel's own timer is not
	"param_sysfs_builtin_init", "hpet_late_init",
	// devices that are not there, or nothing uses; each reads ports, which is slow
	"init_acpi_pm_clocksource", "serial_pci_driver_init", "i8042_init", "dmi_sysfs_init",
	// a test, and what no program here uses
	"crypto_kdf108_init", "scx_init", "fuse_init",
}

// clockParameters spare the guest the calibration of clocks: its TSC counts the ns of the virtual
// clock. Its timer is the HPET, since calibrating the local APIC's takes QEMU 2 s, see
// withLocalTimer. rep_good: see erms above.
var clockParameters = []string{"tsc=reliable", "tsc_early_khz=1000000", noLocalTimer,
	"no_timer_check", "clearcpuid=rep_good"}

const noLocalTimer = "nolapic_timer"

// withLocalTimer returns the clock's parameters of a guest whose timer is that of the local APIC.
// To set that one takes one access to a device, the HPET two; and the HPET is the timer of one CPU.
func withLocalTimer(clock []string) []string {
	return slices.DeleteFunc(slices.Clone(clock), func(p string) bool { return p == noLocalTimer })
}

// qemuMachine runs a configuration in QEMU.
type qemuMachine struct {
	Config
	how acceleration
}

func (m qemuMachine) command(p paths) (program string, args []string) {
	return m.Kernel.qemu(), arguments(m.Config, m.how, p)
}

func (qemuMachine) answerAt() string { return "" }

func (m qemuMachine) deterministic() bool { return m.how == counted }

func (qemuMachine) standsStill() bool { return false }

// arguments returns QEMU's arguments for a microVM that boots and runs its job.
func arguments(c Config, how acceleration, p paths) []string {
	flags, terminal, clock := machineFor(c.Kernel.arm64, how)
	if c.CPUs > 1 && how == counted && !c.Kernel.arm64 {
		flags, clock = severalCPUs(flags, clock)
	}
	// the kernel mixes its command line into its random numbers
	seed := fmt.Sprintf("pcn.seed=%d", c.Seed)
	return slices.Concat(machineArguments(c, flags, p),
		kernelArguments(c, p, terminal, clock, seed), seedArguments(c.Seed))
}

// machineArguments are those of each microVM. The console is a file, because a full pipe would
// delay the guest's UART.
func machineArguments(c Config, flags []string, p paths) []string {
	return slices.Concat(machineFlags, []string{"-smp", strconv.Itoa(max(1, c.CPUs))}, flags,
		[]string{
			"-m", strconv.Itoa(c.MemoryMiB),
			"-chardev", "file,id=console,path=" + p.console, "-serial", "chardev:console",
			"-object", fmt.Sprintf("memory-backend-file,id=answer,share=on,mem-path=%s,size=%d",
				p.answer, guest.AnswerBytes),
			"-device", "ivshmem-plain,memdev=answer",
		})
}

// kernelArguments are those of a microVM that boots.
func kernelArguments(c Config, p paths, terminal string, clock []string, more ...string) []string {
	parameters := slices.Concat([]string{"console=" + terminal}, kernelParameters, clock)
	if c.Tick {
		parameters = append(parameters, "nohz=off")
	}
	return []string{
		"-kernel", c.Kernel.Image, "-initrd", p.initramfs,
		"-append", strings.Join(append(parameters, more...), " "),
	}
}

// seedArguments seed QEMU's own random numbers, with 32 bits.
func seedArguments(seed uint64) []string {
	return []string{"-seed", strconv.FormatUint(seed&0xffffffff, 10)}
}

// machineFor returns QEMU's flags of a machine and of how it runs, the name of its serial port, and
// the kernel parameters of its clock.
func machineFor(arm64 bool, how acceleration) (flags []string, terminal string, clock []string) {
	if arm64 { // it is always counted
		return slices.Concat(arm64Flags, countedFlags), "ttyAMA0", nil
	}
	const serial = "ttyS0"
	switch how {
	case virtualised:
		return slices.Concat(pcFlags, virtualisedFlags), serial, nil
	case emulated:
		return slices.Concat(pcFlags, emulatedFlags), serial, nil
	default:
		return slices.Concat(pcFlags, countedFlags, countedCPUFlags), serial, clockParameters
	}
}

// severalCPUs changes what holds for a machine of amd64 with one CPU only. QEMU can't record more.
// It takes mwait for a pause if there are more, so that idle CPUs would never halt. Such a machine
// tests hosts and need not repeat, so it has cx16: without it the kernel makes no timers of BPF
// programs.
func severalCPUs(flags, clock []string) (changedFlags, changedClock []string) {
	changedFlags = slices.Clone(flags)
	cpu := slices.Index(changedFlags, "-cpu") + 1
	changedFlags[cpu] = strings.ReplaceAll(changedFlags[cpu], ",-cx16", "") + ",-monitor"
	changedFlags[slices.Index(changedFlags, "-icount")+1] = "shift=0,sleep=off"
	return changedFlags, withLocalTimer(clock)
}

func qemuVersion(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", program, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(line, "QEMU emulator version "), nil
}

// haveKVM reports whether this user may use KVM.
func haveKVM() bool {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
