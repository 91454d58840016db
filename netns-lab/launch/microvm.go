// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/job"
	"github.com/pcn-linux/pcn/netns-lab/result"
	"github.com/pcn-linux/pcn/netns-lab/vm"
	"github.com/pcn-linux/pcn/netns-lab/vm/guest"
)

// Memory of a microVM: memoryMiB, plus nodeMiB for each node beyond nodesInMemory. What is not used
// costs little: the kernel's table of pages, which is 1/64.
const (
	memoryMiB     = 1024
	nodesInMemory = 128
	nodeMiB       = 4
)

// MicroVMs is the engine that runs each job in a microVM of its own.
type MicroVMs struct {
	kernel   vm.Kernel
	program  []byte
	machine  func() (vm.Machine, error) // what all microVMs share, hashed once
	realTime bool
}

// NewMicroVMs returns the engine on a kernel, as [vm.OpenKernel] takes it: empty is the one
// that was tested, or else the newest of the cache. With realTime, microVMs run in real time on KVM
// where that works: faster, but not reproducible.
func NewMicroVMs(kernel string, realTime bool) (*MicroVMs, error) {
	image, err := vm.OpenKernel(kernel)
	if err != nil {
		return nil, err
	}
	program, err := guestProgram(guestFolder)
	if err != nil {
		return nil, err
	}
	machine := sync.OnceValues(func() (vm.Machine, error) {
		return vm.NewMachine(context.Background(), image, program)
	})
	return &MicroVMs{image, program, machine, realTime}, nil
}

// Missing returns what of a run's machine this engine does not have: its guest program, kernel and
// QEMU, each with what it has instead.
func (e *MicroVMs) Missing(m result.Manifest) ([]string, error) {
	here, err := e.machine()
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, part := range []struct{ what, want, have string }{
		{"guest program", m.GuestSHA256, here.GuestSHA256},
		{"kernel image", m.KernelSHA256, here.KernelSHA256},
		{"QEMU", cmp.Or(m.QEMU, "none"), cmp.Or(here.QEMU, "none")},
	} {
		if part.want != part.have {
			missing = append(missing,
				fmt.Sprintf("%s %s: here it is %s", part.what, part.want, part.have))
		}
	}
	return missing, nil
}

// Exclusive implements [Engine]: microVMs share nothing.
func (e *MicroVMs) Exclusive() bool { return false }

// Fingerprint implements [Engine].
func (e *MicroVMs) Fingerprint(j job.Job) (string, error) {
	j = e.inTime(j)
	machine, err := e.machine()
	if err != nil {
		return "", err
	}
	return machine.Fingerprint(guestConfig(j, job.Run))
}

// Run implements [Engine]: it runs the job in a microVM of its own and reads the result.
func (e *MicroVMs) Run(
	ctx context.Context, j job.Job, cpu int, progress func(float64),
) (*result.Run, error) {
	if err := j.Experiment.CheckEngine(experiment.EngineKernel); err != nil {
		return nil, err
	}
	j = e.inTime(j)
	machine, err := e.machine()
	if err != nil {
		return nil, err
	}
	c := guestConfig(j, job.Run)
	c.RealTime, c.HostCPU = e.realTime, cpu
	c.Console = &lineWriter{hear: func(line string) { hearProgress(line, progress) }}
	res, err := e.boot(ctx, c, "the experiment failed")
	if err != nil {
		return nil, err
	}
	run, err := unpack(res)
	if err != nil {
		return nil, err
	}
	m := &run.Manifest
	m.GuestSHA256, m.KernelSHA256 = machine.GuestSHA256, machine.KernelSHA256
	m.QEMU, m.Deterministic, m.Wall.BootS = machine.QEMU, res.Deterministic, res.Boot.Seconds()
	m.Machine = result.QEMU
	if e.kernel.IsUML() {
		m.Machine = result.UML
	}
	return run, nil
}

// inTime returns the job in the papers' own time where CPUs take none.
func (e *MicroVMs) inTime(j job.Job) job.Job {
	if e.kernel.IsUML() {
		j.Experiment = j.Experiment.Undilated()
	}
	return j
}

// Boot boots a microVM that runs nothing, and returns how long that took.
func (e *MicroVMs) Boot(ctx context.Context) (time.Duration, error) {
	const noCPU = -1
	res, err := e.boot(ctx, vm.Config{Args: []string{guest.ProbeArg}, HostCPU: noCPU},
		"the microVM's program failed")
	return res.Boot, err
}

// upAndDown builds and removes the network in a microVM in real time.
func (e *MicroVMs) upAndDown(ctx context.Context, j job.Job, cpu int) (s job.Scale, err error) {
	c := guestConfig(e.inTime(j), job.UpAndDown)
	c.HostCPU, c.RealTime, c.Emulated = cpu, true, true
	var watch job.Stopwatch
	c.Console = &lineWriter{hear: func(line string) { watch.Tell(job.Step(line)) }}
	res, err := e.boot(ctx, c, "the network could not be built")
	if err != nil {
		return s, err
	}
	files, err := res.Files()
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(files[job.ScaleFile], &s); err != nil {
		return s, fmt.Errorf("read what the microVM measured: %w", err)
	}
	watch.Fill(&s)
	return s, nil
}

// boot runs a microVM to its end. If the program fails, the error starts with the text wrong.
func (e *MicroVMs) boot(ctx context.Context, c vm.Config, wrong string) (vm.Result, error) {
	c.Kernel, c.Program = e.kernel, e.program
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
	files, err := res.Files()
	if err != nil {
		return nil, err
	}
	for name, data := range files {
		path := filepath.Join(dir, name) // Files guarantees that name stays below dir
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("unpack the guest's results: %w", err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return nil, fmt.Errorf("unpack the guest's results: %w", err)
		}
	}
	return result.Read(dir)
}

// tickDilation is the highest dilation at which the guest's tick goes on while it is idle: with
// packets every 0.2 us it then sleeps for 0.4 ms at most, a tenth of a tick. Stopping the tick for
// that takes 400 instructions.
const tickDilation = 11

// guestConfig returns the part of the microVM's configuration that depends on the job.
func guestConfig(j job.Job, task job.Task) vm.Config {
	nodes := len(j.Experiment.Topology.Network().Nodes())
	return vm.Config{
		Args:      j.Args(task),
		Files:     []vm.File{{Path: job.ExperimentFile, Mode: 0o644, Data: j.Experiment.Source()}},
		Modules:   modules(j.Scheme),
		MemoryMiB: memoryFor(nodes),
		Tick:      j.Experiment.Dilation.Shift <= tickDilation,
		Seed:      j.Experiment.Seed,
	}
}

func memoryFor(nodes int) int {
	return memoryMiB + nodeMiB*max(0, nodes-nodesInMemory)
}

// modules returns the kernel modules that a scheme needs, unless they are built in.
func modules(name string) []string {
	if !scheme.IsKernelControl(name) {
		return nil
	}
	return []string{"tcp_" + name}
}

// lineWriter passes on what is written to it, line by line.
type lineWriter struct {
	mu   sync.Mutex
	line []byte
	hear func(line string)
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(w.line, b...)
	for {
		line, rest, ok := bytes.Cut(w.line, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		w.line = rest
		w.hear(strings.TrimSpace(string(line)))
	}
}

// hearProgress reads a line of the guest's console for progress.
func hearProgress(line string, report func(float64)) {
	var done, total float64
	text, found := strings.CutPrefix(line, job.ProgressPrefix)
	if n, err := fmt.Sscan(text, &done, &total); found && err == nil && n == 2 && total > 0 {
		report(done / total)
	}
}
