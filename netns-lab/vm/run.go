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
	"slices"
	"strings"
	"time"

	"github.com/pcn-linux/pcn/netns-lab/vm/guest"
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
	// Tick lets the guest's timer tick go on while it is idle. That is cheaper where it never
	// sleeps for more than a few ticks, of 4 ms.
	Tick bool
	// States, if not nil, has the run resume a microVM that has booted, if time is counted, on one
	// CPU of amd64. The program must then call [guest.MainPrepared].
	States  *States
	Seed    uint64    // of the guest's random numbers
	HostCPU int       // pin QEMU to this CPU; -1 does not pin it
	Console io.Writer // receives the program's output line by line; may be nil
}

// Result is the outcome of a microVM.
type Result struct {
	ExitCode      int           // of the guest program
	Console       string        // the program's whole output
	Boot          time.Duration // until the guest program starts
	Wall          time.Duration
	QEMU          string // version
	Deterministic bool   // time was a count of instructions
	Resumed       bool   // from a state, in place of booting
	archive       []byte
}

// Files returns the files that the program left in [guest.ResultDir], by their paths below it.
func (r Result) Files() (map[string][]byte, error) { return guest.Files(r.archive) }

// ErrPanic says that the kernel panicked.
var ErrPanic = errors.New("the microVM's kernel panicked")

const defaultMemoryMiB = 2048

// Run boots a microVM, runs the program in it and powers it off. If the context ends, QEMU is
// killed; on Linux it also dies with this process. A program that fails is not an error: see
// [Result.ExitCode].
func Run(ctx context.Context, c Config) (Result, error) {
	if err := haveQEMU(c.Kernel.qemu()); err != nil {
		return Result{}, err
	}
	if c.Program == nil {
		var err error
		if c.Program, err = os.ReadFile("/proc/self/exe"); err != nil {
			return Result{}, fmt.Errorf("read this program's file: %w", err)
		}
	}
	if c.MemoryMiB == 0 {
		c.MemoryMiB = defaultMemoryMiB
	}
	how := accelerationOf(ctx, c)
	if c.resumes(how) {
		res, err := resume(ctx, c)
		res.QEMU, res.Resumed = c.States.Machine.QEMU, true
		if !errors.Is(err, errCannotPause) && !errors.Is(err, errNotLoaded) {
			return res, err
		}
		// this QEMU can't, so all of its runs boot
	}
	version, err := qemuVersion(ctx, c.Kernel.qemu())
	if err != nil {
		return Result{}, err
	}
	res, err := boot(ctx, c, how)
	res.QEMU = version
	return res, err
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
	res, err := boot(ctx, c, virtualised)
	return err == nil && res.ExitCode == 0
}

// boot runs one microVM.
func boot(ctx context.Context, c Config, how acceleration) (Result, error) {
	var archive bytes.Buffer
	job := guest.Job{Args: c.Args, Env: c.Env, Dir: c.Dir, Modules: c.Modules}
	if err := initramfs(&archive, c.Program, job, c.Kernel, c.Files); err != nil {
		return Result{}, err
	}
	files, err := newSharedFiles(archive.Bytes())
	if err != nil {
		return Result{}, err
	}
	defer files.close()
	said := &console{began: time.Now(), tee: c.Console}
	return finish(ctx, c, arguments(c, how, files.paths), how, files, said)
}

// finish runs a microVM to its end and reads its answer.
func finish(ctx context.Context, c Config, args []string, how acceleration, files *sharedFiles,
	said *console) (Result, error) {
	stderr, err := runQEMU(ctx, c, args, files, said, nil)
	res := Result{
		Console: said.text.String(), Boot: said.boot, Wall: time.Since(said.began),
		Deterministic: how == counted,
	}
	if ctx.Err() != nil {
		return res, fmt.Errorf("microVM stopped: %w", ctx.Err())
	}
	if err != nil && strings.Contains(stderr, "load of migration failed") {
		err = fmt.Errorf("%w: %w", errNotLoaded, err)
	}
	if err != nil {
		return res, fmt.Errorf("%s failed: %w\n%s", c.Kernel.qemu(), err,
			lastLines(stderr+res.Console))
	}
	res.ExitCode, res.archive, err = guest.ReadAnswer(files.answer)
	if errors.Is(err, guest.ErrNoAnswer) && strings.Contains(res.Console, "Kernel panic") {
		err = ErrPanic
	}
	if err != nil {
		return res, fmt.Errorf("%w; the last lines of its console:\n%s", err,
			lastLines(res.Console))
	}
	return res, nil
}

// runQEMU runs QEMU to its end and returns its stderr.
func runQEMU(ctx context.Context, c Config, args []string, files *sharedFiles,
	said *console, streams *standardStreams) (stderr string, err error) {
	// an error of the console ends QEMU
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Kernel.qemu(), args...)
	cmd.Stderr = &complaints
	cmd.ExtraFiles = slices.Concat(files.inherited, files.borrowed)
	if streams != nil {
		cmd.Stdin, cmd.Stdout = streams.in, streams.out
	}
	done, followed := make(chan struct{}), make(chan error, 1)
	go func() {
		err := said.follow(files.console, done)
		if err != nil {
			cancel()
		}
		followed <- err
	}()
	err = runWithUs(cmd, c.HostCPU)
	close(done)
	if followErr := <-followed; followErr != nil {
		err = followErr
	}
	return complaints.String(), err
}

// standardStreams are QEMU's, if it has any.
type standardStreams struct {
	in  *os.File
	out io.Writer
}
