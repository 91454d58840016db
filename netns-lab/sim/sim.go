// SPDX-License-Identifier: Apache-2.0

// Package sim runs experiments in an ideal network: hosts that send when they may, links, and
// switch ports, with no kernel. Its algorithms are the C files of bpf/algo and bpf/cc, compiled for
// wasm: see bpf/include/simulator.h. Ports, links, hosts and transport are written here, from the
// papers and not from the kernel's engine, so that each of the two is a check of the other.
//
// A run is one goroutine. It has integers only and no order that differs from run to run, so its
// result is the same bytes on every machine. An event is a value in a calendar, a packet a number
// in a slab, and nothing is allocated for one.
package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// Simulator runs experiments, several at a time. It keeps the machine code of their algorithms.
type Simulator struct {
	cache wazero.CompilationCache
}

// New returns a simulator.
func New() *Simulator { return &Simulator{wazero.NewCompilationCache()} }

// Run simulates one scheme of the experiment. progress receives how far the run is, 0 to 1. The
// caller fills in Tool and Wall of the manifest.
func (s *Simulator) Run(
	ctx context.Context, e *experiment.Experiment, scheme string, progress func(done float64),
) (run *result.Run, err error) {
	return s.RunWatched(ctx, e, scheme, progress, Watchers{})
}

// Watchers look at a run. Each may be nil.
type Watchers struct {
	// Moment is called at the end of each bin of the series. It must not keep the moment's slices.
	Moment func(result.Moment)
	// Packet is called for each event of a packet. It must not keep the event.
	Packet func(*PacketEvent)
}

// RunWatched is [Simulator.Run] with watchers.
func (s *Simulator) RunWatched(
	ctx context.Context, e *experiment.Experiment, scheme string, progress func(done float64),
	watch Watchers,
) (run *result.Run, err error) {
	runtime := wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfig().WithCompilationCache(s.cache))
	defer func() { err = errors.Join(err, runtime.Close(ctx)) }()
	w, err := newWorld(ctx, runtime, e, scheme)
	if err != nil {
		return nil, fmt.Errorf("lay out experiment %s: %w", e.Name, err)
	}
	w.record.watch, w.trace = watch.Moment, watch.Packet
	if err := w.run(ctx, progress); err != nil {
		return nil, fmt.Errorf("simulate scheme %s of experiment %s: %w", scheme, e.Name, err)
	}
	return w.result()
}
