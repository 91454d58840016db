// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sim"
)

// Simulator is the engine that simulates an ideal network.
type Simulator struct {
	inProcess
	sim   *sim.Simulator
	watch func(run uint64, label string, m *result.Moment)
	runs  atomic.Uint64
	// Threads is how many cores a run may use; 0 stands for 1.
	Threads int
	// IfBusy has runs use one core in which several would have too little to do.
	IfBusy bool
	// Undivided is called if Threads is more and a run uses one core all the same: why. Several
	// goroutines call it. It may be nil.
	Undivided func(why string)
	// CheckpointEvery is how often runs with checkpoints write one, on the wall clock.
	CheckpointEvery time.Duration
	// Resumed is called if a run goes on from a checkpoint, at a time behind t = 0, and
	// NoCheckpoint if one can't be written: the run goes on all the same. Several goroutines call
	// them. They may be nil.
	Resumed      func(run string, at experiment.Duration)
	NoCheckpoint func(error)
}

// NewSimulator returns the engine.
func NewSimulator() *Simulator { return &Simulator{inProcess: newInProcess(), sim: sim.New()} }

// Watch has the function called at the end of each bin of every run, and with nil when a run has
// ended. Several goroutines call it. Runs have different numbers; labels may be equal.
func (s *Simulator) Watch(watch func(run uint64, label string, m *result.Moment)) {
	s.watch = watch
}

// Run implements [Engine].
func (s *Simulator) Run(
	ctx context.Context, j job.Job, _ int, progress func(float64),
) (*result.Run, error) {
	options := sim.Options{Threads: s.Threads, IfBusy: s.IfBusy, Undivided: s.Undivided}
	if s.watch != nil {
		run, label := s.runs.Add(1), fmt.Sprintf("%s, seed %d", j.Label(), j.Experiment.Seed)
		defer s.watch(run, label, nil)
		options.Moment = func(m result.Moment) { s.watch(run, label, &m) }
	}
	var err error
	if options.Checkpoints, err = s.checkpoints(j); err != nil {
		return nil, err
	}
	if j.PacketsIn == "" {
		return s.sim.RunWith(ctx, j.Experiment, j.Scheme, progress, options)
	}
	packets, err := newPacketTrace(j)
	if err != nil {
		return nil, err
	}
	options.Packet = packets.add
	run, err := s.sim.RunWith(ctx, j.Experiment, j.Scheme, progress, options)
	if err := errors.Join(err, packets.close()); err != nil {
		return nil, err
	}
	return run, nil
}

// checkpoints returns what a job asks for.
func (s *Simulator) checkpoints(j job.Job) (*sim.Checkpoints, error) {
	if j.Checkpoint == "" {
		return nil, nil
	}
	program, err := s.program()
	return &sim.Checkpoints{
		Path: j.Checkpoint, Every: s.CheckpointEvery, Program: program, Run: hashJob(j),
		Failed: s.NoCheckpoint,
		Resumed: func(ns int64) {
			if s.Resumed != nil {
				s.Resumed(j.Label(), experiment.Duration(ns))
			}
		},
	}, err
}
