// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const qemu = "qemu-system-x86_64"

// Config is a microVM and what runs in it.
type Config struct {
	Kernel     Kernel
	Executable string   // the guest program; "": this one
	Args       []string // its arguments
	Env        []string
	Dir        string // its working directory; "": /
	Files      []File
	MemoryMiB  int    // 0: 2048
	RealTime   bool   // by the clock, on KVM, where a kernel really boots so; not reproducible
	Seed       uint64 // of the guest's random numbers
	HostCPU    int    // pin QEMU to this CPU; -1: do not
	Console    io.Writer
}

// Result is what a microVM left.
type Result struct {
	ExitCode      int
	Console       string        // all of it
	Boot          time.Duration // to the guest program's first line
	Wall          time.Duration
	QEMU          string // version
	Deterministic bool
	archive       []byte
}

// machineFlags are QEMU's for every microVM.
var machineFlags = []string{
	"-M", "pc", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
	"-bios", "qboot.rom", // no option ROMs, no boot menu: saves 1 s of 2
	"-smp", "1",
}

// deterministicFlags make time a count of instructions: a run depends on nothing of the host.
var deterministicFlags = []string{
	"-accel", "tcg", "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01T00:00:00,clock=vm",
	// no entropy of the host; no erms: TCG emulates rep movsb byte by byte (TCP over veth 1.75 times slower); no smap: stac and
	// clac end a translation block (TCP on loopback 1.4 times slower); no la57: one level of page tables less
	"-cpu", "max,-rdrand,-rdseed,-erms,-smap,-smep,-la57,-pku,-avx,-avx2,-mpx,-vaes",
}

var realTimeFlags = []string{"-accel", "kvm", "-cpu", "host"}

// kernelCommandLine: the console, no entropy from the CPU, and no time spent on mitigations and checks that an
// emulated machine has no use for.
const kernelCommandLine = "console=ttyS0 rdinit=/init panic=-1 quiet random.trust_cpu=off " +
	"tsc=reliable no_timer_check mitigations=off nokaslr clearcpuid=rep_good init_on_alloc=0 randomize_kstack_offset=off " +
	"kfence.sample_interval=0 audit=0 lsm= apparmor=0 hardened_usercopy=off cgroup_disable=memory psi=0 nowatchdog " +
	"initcall_blacklist=load_system_certificate_list"

// tscCommandLine: icount's TSC counts ns, so there is nothing to calibrate.
const tscCommandLine = " tsc_early_khz=1000000 nolapic_timer"

// HaveQEMU says whether QEMU is installed.
func HaveQEMU() error {
	if _, err := exec.LookPath(qemu); err != nil {
		return fmt.Errorf("%s is not installed: run scripts/setup.sh", qemu)
	}
	return nil
}

// HaveGuest says whether this program can be a guest: its libraries, if it has any, must be found.
func HaveGuest() error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	_, err = sharedLibraries(exe)
	return err
}

// Run boots a microVM, runs the program in it and powers it off. If the context ends, QEMU is killed; it also dies
// with this process.
func Run(ctx context.Context, c Config) (Result, error) {
	if err := HaveQEMU(); err != nil {
		return Result{}, err
	}
	if c.Executable == "" {
		exe, err := os.Executable()
		if err != nil {
			return Result{}, fmt.Errorf("find this program's file: %w", err)
		}
		c.Executable = exe
	}
	version, err := qemuVersion(ctx)
	if err != nil {
		return Result{}, err
	}
	realTime := c.RealTime && kvmBoots(ctx, c.Kernel)
	res, err := boot(ctx, c, realTime)
	res.QEMU = version
	return res, err
}

func qemuVersion(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, qemu, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", qemu, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(line, "QEMU emulator version "), nil
}

// kvmBoots tries a real boot: /dev/kvm may exist and still not run a stock kernel.
func kvmBoots(ctx context.Context, kernel Kernel) bool {
	if _, err := os.Stat("/dev/kvm"); err != nil {
		return false
	}
	const patience = 20 * time.Second // KVM boots in one
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	exe, err := os.Executable()
	if err != nil {
		return false
	}
	res, err := boot(ctx, Config{Kernel: kernel, Executable: exe, Args: []string{probeArg}, HostCPU: -1}, true)
	return err == nil && res.ExitCode == 0
}

// boot runs one microVM.
func boot(ctx context.Context, c Config, realTime bool) (Result, error) {
	archive, err := memoryFile("initramfs", func(w io.Writer) error {
		return initramfs(w, c.Executable, job{Args: c.Args, Env: c.Env, Dir: c.Dir}, c.Kernel, c.Files)
	})
	if err != nil {
		return Result{}, err
	}
	defer archive.Close()
	answer, err := memoryFile("answer", func(io.Writer) error { return nil })
	if err != nil {
		return Result{}, err
	}
	defer answer.Close()

	console := &consoleWriter{began: time.Now(), tee: c.Console}
	cmd := exec.Command(qemu, arguments(c, realTime)...)
	cmd.Stdout, cmd.Stderr = console, console
	cmd.ExtraFiles = []*os.File{archive, answer} // 3 and 4 in the child
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = runPinned(ctx, cmd, c.HostCPU)
	res := Result{
		Console: console.text.String(), Boot: console.boot, Wall: time.Since(console.began), Deterministic: !realTime,
	}
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	if err != nil {
		return res, fmt.Errorf("%s failed: %w\n%s", qemu, err, lastLines(res.Console))
	}
	if _, err := answer.Seek(0, io.SeekStart); err != nil {
		return res, fmt.Errorf("read the guest's answer: %w", err)
	}
	res.ExitCode, res.archive, err = readAnswer(answer)
	if err != nil {
		return res, fmt.Errorf("%w; the guest's last lines were:\n%s", err, lastLines(res.Console))
	}
	return res, nil
}

func arguments(c Config, realTime bool) []string {
	mode, commandLine := deterministicFlags, kernelCommandLine+tscCommandLine
	if realTime {
		mode, commandLine = realTimeFlags, kernelCommandLine
	}
	memory := c.MemoryMiB
	if memory == 0 {
		memory = 2048
	}
	args := append([]string{}, machineFlags...)
	args = append(args, mode...)
	return append(args,
		"-m", strconv.Itoa(memory),
		"-seed", strconv.FormatUint(c.Seed&0xffffffff, 10),
		"-kernel", c.Kernel.Image, "-initrd", "/proc/self/fd/3", "-append", commandLine,
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", "file,id=answer,path=/proc/self/fd/4", "-serial", "chardev:answer")
}

// runPinned runs the command on one CPU. Pdeathsig follows the thread that started the child, so that thread lives
// as long as the child does.
func runPinned(ctx context.Context, cmd *exec.Cmd, cpu int) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread's CPUs are changed
		if cpu >= 0 {
			var set unix.CPUSet
			set.Set(cpu)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				done <- fmt.Errorf("pin to CPU %d: %w", cpu, err)
				return
			}
		}
		if err := cmd.Start(); err != nil {
			done <- err
			return
		}
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() }) // it may have ended already
		defer stop()
		done <- cmd.Wait()
	}()
	return <-done
}

// memoryFile is a file without a name, so that nothing can be left behind.
func memoryFile(name string, fill func(io.Writer) error) (*os.File, error) {
	fd, err := unix.MemfdCreate("pcn-"+name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a memory file for the %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill the %s: %w", name, err)
	}
	return f, nil
}

// consoleWriter keeps the console, passes it on, and notices the guest program's first line.
type consoleWriter struct {
	mu    sync.Mutex
	began time.Time
	boot  time.Duration
	text  strings.Builder
	tee   io.Writer
}

func (w *consoleWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clean := bytes.ReplaceAll(b, []byte("\r"), nil)
	w.text.Write(clean)
	if w.boot == 0 {
		head, rest, ok := strings.Cut(w.text.String(), readyLine+"\n")
		if !ok {
			return len(b), nil
		}
		// what the firmware and the kernel said stays out of the program's output
		w.boot = time.Since(w.began)
		w.text.Reset()
		if s := strings.TrimSpace(head); s != "" {
			w.text.WriteString(s + "\n")
		}
		clean = []byte(rest)
		w.text.Write(clean)
	}
	if w.tee != nil {
		if _, err := w.tee.Write(clean); err != nil {
			return 0, fmt.Errorf("pass on the guest's console: %w", err)
		}
	}
	return len(b), nil
}

func lastLines(s string) string {
	const n = 20
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

var errNoAnswer = errors.New("the microVM ended without an answer")
