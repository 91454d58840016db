// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/kernel"
	"github.com/pcn-linux/pcn/netns-lab/result"
	"github.com/pcn-linux/pcn/netns-lab/vm"
)

const (
	guestExperiment = "/experiment.yaml"
	guestProgress   = "progress "
	guestRun        = "guest"
	guestUpAndDown  = "up-and-down"
	memoryMiB       = 2048
	// of networks with more nodes than nodesInMemory, each has nodeMiB more
	nodesInMemory, nodeMiB = 128, 4
)

// Engine does jobs in microVMs, each on a CPU of its own.
type Engine struct {
	kernel   vm.Kernel
	realTime bool
	cpus     *cpus
}

// NewEngine returns the engine of microVMs that the options ask for: [Options.RealTime] and [Options.Waiting].
func NewEngine(o Options) (*Engine, error) {
	kernel, err := vm.FindKernel("")
	if err != nil {
		return nil, err
	}
	cpus, err := newCPUs(o.Waiting)
	return &Engine{kernel: kernel, realTime: o.RealTime, cpus: cpus}, err
}

// CPUs is how many jobs can be done at a time.
func (e *Engine) CPUs() int { return len(e.cpus.ids) }

// Fingerprints returns a function that takes the fingerprint of a job: two jobs with the same one give the same bytes.
func (e *Engine) Fingerprints(ctx context.Context) (func(Job) (string, error), error) {
	machine, err := vm.NewMachine(ctx, e.kernel)
	if err != nil {
		return nil, err
	}
	return func(j Job) (string, error) { return machine.Fingerprint(guestConfig(j)) }, nil
}

// Run boots a microVM, does the job in it, and reads what it left.
func (e *Engine) Run(ctx context.Context, j Job, progress func(float64)) (*result.Run, error) {
	cpu, lock, err := e.cpus.take(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Release() // nothing was written to it
	began := time.Now()
	c := guestConfig(j)
	c.RealTime, c.HostCPU = e.realTime, cpu
	c.Console = &progressWriter{report: progress}
	res, err := e.boot(ctx, c, "the experiment failed")
	if err != nil {
		return nil, err
	}
	run, err := unpack(res)
	if err != nil {
		return nil, err
	}
	m := &run.Manifest
	m.Tool, m.QEMU, m.Deterministic = Tool, res.QEMU, res.Deterministic
	m.Wall = wall(began, time.Since(began), res.Boot)
	return run, nil
}

// boot runs a microVM to its end. What is wrong is what its error says when the guest program failed.
func (e *Engine) boot(ctx context.Context, c vm.Config, wrong string) (vm.Result, error) {
	c.Kernel = e.kernel
	res, err := vm.Run(ctx, c)
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("%s in the microVM:\n%s", wrong, strings.TrimSpace(res.Console))
	}
	return res, err
}

// unpack reads the result folder that the guest sent.
func unpack(res vm.Result) (*result.Run, error) {
	dir, err := os.MkdirTemp("", "pcn-result-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the guest's results: %w", err)
	}
	defer os.RemoveAll(dir)
	files, err := res.FS()
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(dir, "r"), files); err != nil {
		return nil, fmt.Errorf("unpack the guest's results: %w", err)
	}
	return result.Read(filepath.Join(dir, "r"))
}

// guestConfig is what a job decides of its microVM.
func guestConfig(j Job) vm.Config {
	return vm.Config{
		Args:      guestArgs(j),
		Files:     []vm.File{{Path: guestExperiment, Mode: 0o644, Data: j.Experiment.Source()}},
		Modules:   modules(j.Scheme),
		MemoryMiB: memoryMiB + nodeMiB*max(0, len(j.Experiment.Topology.Network().Nodes())-nodesInMemory),
		Seed:      j.Experiment.Seed,
	}
}

// modules are those of the kernel that a scheme needs, unless they are built in.
func modules(name string) []string {
	if !scheme.IsKernelControl(name) {
		return nil
	}
	return []string{"tcp_" + name}
}

// guestArgs are the guest program's, after what the command line changed.
func guestArgs(j Job) []string {
	e := j.Experiment
	return []string{guestRun, e.CaseName, j.Scheme,
		strconv.FormatUint(e.Seed, 10), strconv.FormatInt(int64(e.Duration), 10), strconv.FormatUint(uint64(e.Dilation), 10)}
}

// Guest is the program inside the microVM: it runs one scheme and leaves the result in /result.
func Guest(args []string) int {
	if err := guest(args); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func guest(args []string) error {
	if len(args) > 0 && args[0] == guestUpAndDown {
		return upAndDownInGuest(args)
	}
	j, err := jobOf(guestExperiment, args)
	if err != nil {
		return err
	}
	run, err := kernel.Run(context.Background(), j.Experiment, j.Scheme, func(done, total int64) {
		fmt.Printf("%s%d %d\n", guestProgress, done, total)
	})
	if err != nil {
		return err
	}
	return run.Write(vm.ResultDir)
}

// jobOf is the job that guestArgs tell of, on the experiment file that came along.
func jobOf(file string, args []string) (Job, error) {
	if len(args) != 6 || args[0] != guestRun && args[0] != guestUpAndDown {
		return Job{}, fmt.Errorf("guest called with %q", args)
	}
	seed, err1 := strconv.ParseUint(args[3], 10, 64)
	duration, err2 := strconv.ParseInt(args[4], 10, 64)
	dilation, err3 := strconv.ParseUint(args[5], 10, 32)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Job{}, fmt.Errorf("guest called with %q: %w", args, err)
	}
	e, err := experiment.Load(file)
	if err != nil {
		return Job{}, err
	}
	if e, err = e.Case(args[1]); err != nil {
		return Job{}, err
	}
	d, shift := experiment.Duration(duration), uint(dilation)
	e, err = e.Override(experiment.Override{Seed: &seed, Duration: &d, Dilation: &shift, Schemes: []string{args[2]}})
	return Job{e, args[2]}, err
}

// progressWriter reads the guest's console for progress.
type progressWriter struct {
	mu     sync.Mutex
	line   []byte
	report func(float64)
}

func (w *progressWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(w.line, b...)
	for {
		line, rest, ok := bytes.Cut(w.line, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		w.line = rest
		var done, total float64
		text, found := strings.CutPrefix(strings.TrimSpace(string(line)), guestProgress)
		if n, err := fmt.Sscan(text, &done, &total); found && err == nil && n == 2 && total > 0 {
			w.report(done / total)
		}
	}
}
