// SPDX-License-Identifier: Apache-2.0

// Package sim runs experiments in an ideal network: hosts that send when they may, links, and
// switch ports, with no kernel. Its algorithms are the C files of bpf/algo and bpf/cc, compiled for
// wasm: see bpf/include/simulator.h. Ports, links, hosts and transport are written here, from the
// papers and not from the kernel's engine, so that each of the two is a check of the other.
//
// A run is one goroutine, or one for each part of its network (windows.go). It has integers only
// and no order that differs from run to run, so its result is the same bytes on every machine. An
// event is a value in a calendar, a packet a number in a slab, and nothing is allocated for one.
package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Simulator runs experiments, several at a time. It keeps the machine code of their algorithms.
type Simulator struct {
	cache cache
}

// New returns a simulator.
func New() *Simulator { return &Simulator{newCache()} }

// Run simulates one scheme of the experiment. progress receives how far the run is, 0 to 1. The
// caller fills in Tool and Wall of the manifest.
func (s *Simulator) Run(
	ctx context.Context, e *experiment.Experiment, scheme string, progress func(done float64),
) (run *result.Run, err error) {
	return s.RunWith(ctx, e, scheme, progress, Options{})
}

// Options are what a caller may ask for.
type Options struct {
	// Threads is how many parts of the network run side by side at most; 0: one. The result is the
	// same bytes with any number.
	Threads int
	// IfBusy leaves networks whole in which so many threads would have too little to do.
	IfBusy bool
	// Undivided is called if more threads were asked for, and the network stays whole: why.
	Undivided func(why string)

	// Moment is called at the end of each bin of the series. It must not keep the moment's slices.
	Moment func(result.Moment)
	// Packet is called for each event of a packet. It must not keep the event.
	Packet func(*PacketEvent)

	// Checkpoints are written and gone on from; nil: none are. A trace of packets has none.
	Checkpoints *Checkpoints
}

// RunWith is [Simulator.Run] with options.
func (s *Simulator) RunWith(
	ctx context.Context, e *experiment.Experiment, scheme string, progress func(done float64),
	o Options,
) (run *result.Run, err error) {
	var runtimes []runtime
	defer func() {
		for _, r := range runtimes {
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	more := func() runtime {
		r := newRuntime(ctx, s.cache)
		runtimes = append(runtimes, r)
		return r
	}
	if o.Packet != nil {
		o.Threads = 1 // packets are told of in the order of all parts
	}
	w, err := newWorlds(ctx, more, e, scheme, o)
	if err != nil {
		return nil, fmt.Errorf("lay out experiment %s: %w", e.Name, err)
	}
	defer w.forget()
	if w.undivided != "" && o.Undivided != nil {
		o.Undivided(w.undivided)
	}
	w.record.watch, w.trace = o.Moment, o.Packet
	if err := w.resume(o.Checkpoints); err != nil {
		return nil, err
	}
	if err := w.run(ctx, progress); err != nil {
		return nil, fmt.Errorf("simulate scheme %s of experiment %s: %w", scheme, e.Name, err)
	}
	return w.result()
}
