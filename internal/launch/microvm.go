// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/guest"
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
	*onKernel
	named    bool // the kernel was asked for: experiments cannot choose another
	realTime bool

	mu     sync.Mutex
	chosen map[string]*onKernel // kernels that experiments choose, by name
}

// onKernel is the guest program on a kernel.
type onKernel struct {
	kernel  vm.Kernel
	program []byte
	machine func() (vm.Machine, error) // what all microVMs share, hashed once
}

// NewMicroVMs returns the engine on a kernel, as [vm.OpenKernel] takes it: empty is the one that
// the experiment chooses, or that was tested, or else the newest of the cache. With realTime,
// microVMs run in real time on KVM where that works: faster, but not reproducible.
func NewMicroVMs(kernel string, realTime bool) (*MicroVMs, error) {
	program, err := guestProgram(guestFolder)
	if err != nil {
		return nil, err
	}
	k, err := newOnKernel(kernel, program)
	if err != nil {
		return nil, err
	}
	return &MicroVMs{
		onKernel: k, named: kernel != "", realTime: realTime, chosen: map[string]*onKernel{},
	}, nil
}

func newOnKernel(kernel string, program []byte) (*onKernel, error) {
	image, err := vm.OpenKernel(kernel)
	if err != nil {
		return nil, err
	}
	machine := sync.OnceValues(func() (vm.Machine, error) {
		return vm.NewMachine(context.Background(), image, program)
	})
	go func() { _, _ = machine() }() // while the first boots; who asks gets the error
	return &onKernel{image, program, machine}, nil
}

// Emulates reports whether an engine emulates a CPU, unless an experiment chooses its own kernel.
func Emulates(e Engine) bool {
	m, ok := e.(*MicroVMs)
	return ok && !m.kernel.IsUML()
}

// on returns the kernel of an experiment.
func (e *MicroVMs) on(x *experiment.Experiment) (*onKernel, error) {
	if x.Kernel == "" {
		return e.onKernel, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if k := e.chosen[x.Kernel]; k != nil {
		return k, nil
	}
	k, err := newOnKernel(x.Kernel, e.program)
	if err != nil {
		return nil, fmt.Errorf("kernel: %s of experiment %s: %w", x.Kernel, x.Name, err)
	}
	if e.named && k.kernel.Image != e.kernel.Image {
		return nil, fmt.Errorf("--kernel and kernel: %s of experiment %s: choose one", x.Kernel,
			x.Name)
	}
	e.chosen[x.Kernel] = k
	return k, nil
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
	k, err := e.on(j.Experiment)
	if err != nil {
		return "", err
	}
	machine, err := k.machine()
	if err != nil {
		return "", err
	}
	j = k.inTime(j)
	return machine.Fingerprint(guestConfig(j, job.Run))
}

// Run implements [Engine]: it runs the job in a microVM of its own and reads the result.
func (e *MicroVMs) Run(
	ctx context.Context, j job.Job, cpu int, progress func(float64),
) (*result.Run, error) {
	if err := j.Experiment.CheckEngine(experiment.EngineKernel); err != nil {
		return nil, err
	}
	if err := checkImages(j.Experiment); err != nil {
		return nil, err
	}
	k, err := e.on(j.Experiment)
	if err != nil {
		return nil, err
	}
	j = k.inTime(j)
	c := guestConfig(j, job.Run)
	c.RealTime, c.HostCPU = e.realTime, cpu
	c.Console = &lineWriter{hear: func(line string) { hearProgress(line, progress) }}
	res, err := k.boot(ctx, c, "the experiment failed")
	if err != nil {
		return nil, err
	}
	run, err := unpack(res)
	if err != nil {
		return nil, err
	}
	machine, err := k.machine()
	if err != nil {
		return nil, err
	}
	m := &run.Manifest
	m.GuestSHA256, m.KernelSHA256 = machine.GuestSHA256, machine.KernelSHA256
	m.QEMU, m.Deterministic, m.Wall.BootS = machine.QEMU, res.Deterministic, res.Boot.Seconds()
	m.Machine = result.QEMU
	if k.kernel.IsUML() {
		m.Machine = result.UML
	}
	return run, nil
}

// inTime returns the job in the papers' own time where CPUs take none.
func (k *onKernel) inTime(j job.Job) job.Job {
	if k.kernel.IsUML() {
		j.Experiment = j.Experiment.Undilated()
	}
	return j
}

// checkImages fails if an image was unpacked elsewhere, or is gone.
func checkImages(e *experiment.Experiment) error {
	for _, p := range e.Programs {
		if i := e.ImageOf(p); i != nil {
			if _, err := os.Stat(i.Root); err != nil {
				return fmt.Errorf("image %s of program %s is not unpacked here: run the "+
					"experiment's own file, beside which it is: %w", p.Image, p.Name, err)
			}
		}
	}
	return nil
}

// Boot boots a microVM that runs nothing, and returns how long that took.
func (e *MicroVMs) Boot(ctx context.Context) (time.Duration, error) {
	res, err := e.boot(ctx, vm.Config{Args: []string{guest.ProbeArg}, HostCPU: noCPU},
		"the microVM's program failed")
	return res.Boot, err
}

// UpAndDown implements [Builder], in a microVM in real time.
func (e *MicroVMs) UpAndDown(ctx context.Context, j job.Job, cpu int) (s job.Scale, err error) {
	k, err := e.on(j.Experiment)
	if err != nil {
		return s, err
	}
	c := guestConfig(k.inTime(j), job.UpAndDown)
	c.HostCPU, c.RealTime, c.Emulated = cpu, true, true
	var watch job.Stopwatch
	c.Console = &lineWriter{hear: func(line string) { watch.Tell(job.Step(line)) }}
	res, err := k.boot(ctx, c, "the network could not be built")
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
func (k *onKernel) boot(ctx context.Context, c vm.Config, wrong string) (vm.Result, error) {
	c.Kernel, c.Program = k.kernel, k.program
	res, err := vm.Run(ctx, c)
	if err == nil && res.ExitCode != 0 {
		err = fmt.Errorf("%s in the microVM:\n%s", wrong, strings.TrimSpace(res.Console))
	}
	return res, err
}

// unpack reads the result that the guest sent.
func unpack(res vm.Result) (*result.Run, error) {
	files, err := res.Files()
	if err != nil {
		return nil, err
	}
	return result.Decode(guest.ResultDir, result.Files{
		Read: func(name string) ([]byte, error) {
			data, found := files[name]
			if !found {
				return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			return data, nil
		},
		Below: func(folder string) (map[string][]byte, error) {
			below := map[string][]byte{}
			for name, data := range files {
				if name, found := strings.CutPrefix(name, folder+"/"); found {
					below[name] = data
				}
			}
			return below, nil
		},
	})
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
		Modules:   modules(j),
		MemoryMiB: memoryFor(nodes),
		Tick:      j.Experiment.Dilation.Shift <= tickDilation,
		Seed:      j.Experiment.Seed,
	}
}

func memoryFor(nodes int) int {
	return memoryMiB + nodeMiB*max(0, nodes-nodesInMemory)
}

// modules returns the kernel modules that a job needs, unless they are built in: those of Linux's
// congestion controls.
func modules(j job.Job) (names []string) {
	controls := []string{j.Scheme}
	for _, g := range j.Experiment.FlowGroups {
		controls = append(controls, g.Control)
	}
	for _, c := range slices.Compact(slices.Sorted(slices.Values(controls))) {
		if scheme.IsKernelControl(c) {
			names = append(names, "tcp_"+c)
		}
	}
	return names
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
