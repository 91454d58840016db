// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

const (
	// prepareNs is from the end of preparing to the start of the warm-up.
	prepareNs = 200_000
	// stepNs is the interval of reading events and reporting progress, in the papers' time.
	stepNs = 1_000_000
)

// Progress receives how far a run is, in ns of the papers' time.
type Progress func(doneNs, totalNs int64)

// Run runs one scheme of the experiment on this kernel, and always cleans up. The result's manifest
// says whether the run is valid. The caller fills in Tool, SchemeSHA256, QEMU,
// Deterministic and Wall of the manifest.
func Run(
	ctx context.Context, e *experiment.Experiment, scheme string, progress Progress,
) (run *result.Run, err error) {
	run, f, err := runOn(ctx, e, scheme, progress)
	if f != nil {
		err = errors.Join(err, f.close())
	}
	if err != nil {
		return nil, err
	}
	return run, nil
}

// RunAndLeave is [Run], but leaves the lab in the kernel, for a machine that is powered off next.
func RunAndLeave(
	ctx context.Context, e *experiment.Experiment, scheme string, progress Progress,
) (*result.Run, error) {
	run, _, err := runOn(ctx, e, scheme, progress)
	return run, err
}

// runOn builds a fabric and runs the scheme on it. The caller closes the fabric, unless it is nil.
func runOn(
	ctx context.Context, e *experiment.Experiment, scheme string, progress Progress,
) (*result.Run, *fabric, error) {
	p, err := newPlan(e)
	if err != nil {
		return nil, nil, fmt.Errorf("lay out experiment %s: %w", e.Name, err)
	}
	f, err := newFabric(p, scheme)
	if err != nil {
		return nil, nil, fmt.Errorf("build the fabric of experiment %s: %w", e.Name, err)
	}
	run, err := measure(ctx, f, progress)
	if err != nil {
		return nil, f, fmt.Errorf("run scheme %s of experiment %s: %w", scheme, e.Name, err)
	}
	return run, f, nil
}

// measurement is a run of the traffic over a fabric.
type measurement struct {
	fabric    *fabric
	traffic   *traffic
	collector *collector
	processes *processes
	captures  *captures
	cpuBusy   float64 // share of all CPUs' time from the start of the flows to the snapshot
}

// measure sends the traffic and collects what happens.
func measure(ctx context.Context, f *fabric, progress Progress) (*result.Run, error) {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	t, err := newTraffic(sending, f)
	if err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		stop()
		if !closed {
			_ = t.close() // the first error says more
		}
	}()
	m := &measurement{fabric: f, traffic: t}
	if m.processes, err = newProcesses(f); err != nil {
		return nil, err
	}
	if m.captures, err = newCaptures(f); err != nil {
		return nil, err
	}
	defer m.captures.close()
	if err := m.prepare(); err != nil {
		return nil, err
	}
	defer m.collector.close()
	if err := m.run(ctx, sending, progress); err != nil {
		return nil, err
	}
	closed = true
	stop()
	m.processes.close()
	if err := t.close(); err != nil {
		return nil, err
	}
	if err := m.settle(ctx); err != nil {
		return nil, err
	}
	return m.read()
}

// prepare chooses t = 0, and hands over the bursts and rate changes before it.
func (m *measurement) prepare() (err error) {
	f := m.fabric
	t0Ns := startOf(f, m.traffic)
	if err := f.changeRates(f.plan, t0Ns); err != nil {
		return err
	}
	if err := f.qdisc.BeginTraces(t0Ns); err != nil {
		return err
	}
	if err := f.beginStorms(t0Ns); err != nil {
		return err
	}
	if err := m.traffic.bursts.load(t0Ns); err != nil {
		return err
	}
	w := newWindow(f.plan.exp, t0Ns)
	if f.clock.nowNs() > w.beginNs() {
		return fmt.Errorf("the machine is too slow to prepare %d burst packets in time: "+
			"raise `dilation`", m.traffic.bursts.frames())
	}
	if m.collector, err = newCollector(f, m.traffic, w); err != nil {
		return err
	}
	if f.plan.exp.OnlyPrograms() {
		return nil // they send when they like: see lateInExactTime
	}
	return f.qdisc.WatchHosts(w.beginNs())
}

// startOf chooses t = 0: on a bin of the series, and far enough ahead to send all bursts to their
// ports.
func startOf(f *fabric, t *traffic) uint64 {
	const sendNs = 100_000 // of the kernel's time, for one packet on a slow machine
	sampleNs := uint64(f.plan.exp.Sample)
	loadNs := uint64(t.bursts.frames()) * sendNs >> f.clock.shift
	start := f.clock.nowNs() + prepareNs + loadNs + uint64(f.plan.exp.Warmup)
	return (start + sampleNs - 1) / sampleNs * sampleNs
}

// run starts the flows, follows them to the end of the measured time, and reads the counters.
func (m *measurement) run(ctx, sending context.Context, progress Progress) (err error) {
	before, err := readCPUTimes()
	if err != nil {
		return err
	}
	cutting, err := m.fabric.startCutting(ctx, m.collector.window.t0Ns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cutting.close()) }()
	m.traffic.senders.start(sending, m.traffic.streams, m.collector.window.t0Ns)
	m.processes.start(sending, m.collector.window.t0Ns)
	if err := m.follow(ctx, progress); err != nil {
		return err
	}
	if err := m.fabric.clock.sleepUntil(ctx, m.collector.window.endNs+decidedNs); err != nil {
		return err
	}
	if err := m.collector.snapshot(); err != nil {
		return err
	}
	after, err := readCPUTimes()
	m.cpuBusy = after.busySince(before)
	return err
}

// follow waits until the end of the measured time, and samples the senders at the end of every bin.
func (m *measurement) follow(ctx context.Context, progress Progress) error {
	w, c := m.collector.window, m.collector
	begin := w.beginNs()
	total := int64(w.endNs - begin)
	told := begin
	for at := begin; at < w.endNs; {
		at += w.sampleNs // the measured time is whole bins
		if m.fabric.plan.exp.OnlyPrograms() && m.processes.ended() {
			at = w.endNs // nothing is to come
		}
		if err := m.fabric.clock.sleepUntil(ctx, at); err != nil {
			return err
		}
		if err := errors.Join(c.senders.sample(at/w.sampleNs-1),
			c.qdiscs.sample(w.since(at))); err != nil {
			return err
		}
		if at-told < stepNs && at < w.endNs {
			continue
		}
		told = at
		if err := errors.Join(c.events.drain(), c.deadlock.watch()); err != nil {
			return err
		}
		if progress != nil {
			progress(int64(at-begin), total)
		}
		if err := m.traffic.senders.err(); err != nil {
			return err
		}
	}
	return nil
}

// read makes the result, and judges it.
func (m *measurement) read() (*result.Run, error) {
	run, err := m.collector.result()
	if err != nil {
		return nil, err
	}
	run.Manifest.GuestCPUBusy = m.cpuBusy
	for _, undefined := range []func() ([]string, error){
		m.fabric.control.Undefined, m.fabric.np.Undefined, m.fabric.qdisc.Undefined,
	} {
		more, err := undefined()
		if err != nil {
			return nil, err
		}
		run.Manifest.Warnings = append(run.Manifest.Warnings, more...)
	}
	if err := m.collector.verdict().judge(run); err != nil {
		return nil, err
	}
	if run.Programs, err = m.processes.results(); err != nil {
		return nil, err
	}
	if run.Captures, err = m.captures.read(m.fabric.clock, m.collector.window.t0Ns); err != nil {
		return nil, err
	}
	if run.Counters, err = m.fabric.readLinux(); err != nil {
		return nil, err
	}
	run.Manifest.Kernel, err = kernelRelease()
	return run, err
}
