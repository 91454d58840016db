// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/internal/vm/uml"
)

// Config describes a microVM and its program.
type Config struct {
	Kernel  Kernel
	Program []byte   // an ELF file that calls [guest.Main]; nil means this process's file
	Args    []string // of the program
	Env     []string // of the program, KEY=value
	Dir     string   // working directory; "": /
	Files   []File
	// Modules are the kernel modules that the program needs, without .ko. Those that are built into
	// the kernel may be among them.
	Modules   []string
	MemoryMiB int // 0: 2048
	CPUs      int // 0: 1. QEMU runs them in turn, on one of the host's, if it counts instructions
	// RealTime runs the guest in real time on KVM, if a kernel boots there; not reproducible.
	RealTime bool
	// Emulated, with RealTime, runs it in real time also without KVM, as fast as QEMU emulates it;
	// not reproducible.
	Emulated bool
	// Tick lets the guest's timer tick go on while it is idle, in QEMU. That is cheaper where it
	// never sleeps for more than a few ticks, of 4 ms.
	Tick    bool
	Seed    uint64    // of the guest's random numbers
	HostCPU int       // pin the machine to this CPU; -1 does not pin it
	Console io.Writer // receives the program's output line by line; may be nil
	// Started is called with the machine's process, before it says anything; may be nil.
	Started func(pid int)
}

// Result is the outcome of a microVM.
type Result struct {
	ExitCode      int           // of the guest program
	Console       string        // the program's whole output
	Boot          time.Duration // until the guest program starts
	Wall          time.Duration
	Deterministic bool // its time does not depend on the host's
	archive       []byte
}

// Files returns the files that the program left in [guest.ResultDir], by their paths below it.
func (r Result) Files() (map[string][]byte, error) { return guest.Files(r.archive) }

// ErrPanic says that the kernel panicked.
var ErrPanic = errors.New("the microVM's kernel panicked")

// errSpins says why a machine in virtual time was ended: it would never have.
var errSpins = errors.New("a program computed on and on and called nothing: computing takes no " +
	"time, so what waits for time to pass by computing waits for ever")

const defaultMemoryMiB = 2048

// Run boots a microVM, runs the program in it and powers it off. If the context ends, the machine
// is killed; on Linux it also dies with this process. A program that fails is not an error: see
// [Result.ExitCode].
func Run(ctx context.Context, c Config) (Result, error) {
	if c.Program == nil {
		var err error
		if c.Program, err = os.ReadFile("/proc/self/exe"); err != nil {
			return Result{}, fmt.Errorf("read this program's file: %w", err)
		}
	}
	c.MemoryMiB = cmp.Or(c.MemoryMiB, defaultMemoryMiB)
	if c.Kernel.uml {
		return boot(ctx, c, umlMachine{c})
	}
	if err := haveQEMU(c.Kernel.qemu()); err != nil {
		return Result{}, err
	}
	return boot(ctx, c, qemuMachine{c, accelerationOf(ctx, c)})
}

// machine is what runs a kernel: User Mode Linux, or QEMU.
type machine interface {
	// command returns a program and its arguments. It boots the kernel with the initramfs, writes
	// the console, and has the guest write its answer.
	command(p paths) (program string, args []string)
	answerAt() string    // the guest's device to which it writes the answer; "": memory
	deterministic() bool // whether its time depends on nothing outside
	standsStill() bool   // whether its time does while it computes
}

// accelerationOf returns how this machine can run the configuration.
func accelerationOf(ctx context.Context, c Config) acceleration {
	switch {
	case c.Kernel.arm64:
		return counted
	case c.RealTime && kvmBoots(ctx, c):
		return virtualised
	case c.RealTime && c.Emulated:
		return emulated
	default:
		return counted
	}
}

// kvmBoots tries a real boot: /dev/kvm may be there and still not run a stock kernel.
func kvmBoots(ctx context.Context, c Config) bool {
	if !haveKVM() {
		return false
	}
	const patience = 10 * time.Second // KVM boots in one
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.Args, c.Console = []string{guest.ProbeArg}, nil
	res, err := boot(ctx, c, qemuMachine{c, virtualised})
	return err == nil && res.ExitCode == 0
}

// boot runs one microVM.
func boot(ctx context.Context, c Config, on machine) (Result, error) {
	job := guest.Job{Args: c.Args, Env: c.Env, Dir: c.Dir, Modules: c.Modules,
		Answer: on.answerAt()}
	files, err := newSharedFiles(func(w io.Writer) error {
		return initramfs(w, c.Program, job, c.Kernel, c.Files)
	})
	if err != nil {
		return Result{}, err
	}
	defer files.close()
	said := &console{began: time.Now(), tee: c.Console}
	stderr, err := runMachine(ctx, on, c, files, said)
	res := Result{
		Console: said.text.String(), Boot: said.boot, Wall: time.Since(said.began),
		Deterministic: on.deterministic(),
	}
	if ctx.Err() != nil {
		return res, fmt.Errorf("microVM stopped: %w", ctx.Err())
	}
	if errors.Is(err, errSpins) {
		return res, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr))
	}
	if err != nil && !strings.Contains(res.Console, panicked) {
		program, _ := on.command(files.paths)
		return res, fmt.Errorf("%s failed: %w\n%s", program, err, uml.LastLines(stderr+res.Console))
	}
	res.ExitCode, res.archive, err = guest.ReadAnswer(files.answer)
	if errors.Is(err, guest.ErrNoAnswer) && strings.Contains(res.Console, panicked) {
		err = ErrPanic
	}
	if err != nil {
		return res, fmt.Errorf("%w; the last lines of its console:\n%s", err,
			uml.LastLines(res.Console))
	}
	return res, nil
}

// panicked is what a kernel says when it gives up.
const panicked = "Kernel panic"

// runMachine runs a machine to its end, on a CPU, and returns its stderr.
func runMachine(
	ctx context.Context, on machine, c Config, files *sharedFiles, said *console,
) (stderr string, err error) {
	// an error of the console ends the machine
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var complaints bytes.Buffer
	program, args := on.command(files.paths)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &complaints
	cmd.ExtraFiles = files.inherited
	done, followed := make(chan struct{}), make(chan error, 1)
	go func() {
		err := said.follow(files.console, done)
		if err != nil {
			cancel()
		}
		followed <- err
	}()
	var (
		watcher sync.WaitGroup
		spun    error
	)
	watching, ended := context.WithCancel(ctx)
	err = runWithUs(cmd, c.HostCPU, func(pid int) {
		if c.Started != nil {
			c.Started(pid)
		}
		if on.standsStill() {
			watcher.Go(func() { spun = watchSpin(watching, pid, cancel) })
		}
	})
	ended()
	watcher.Wait()
	if spun != nil {
		err = spun
	}
	close(done)
	if followErr := <-followed; followErr != nil {
		err = followErr
	}
	return complaints.String(), err
}
