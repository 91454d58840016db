// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pcn-linux/pcn/netns-lab/job"
	"github.com/pcn-linux/pcn/netns-lab/result"
	"github.com/pcn-linux/pcn/netns-lab/sim"
)

// Simulator is the engine that simulates an ideal network.
type Simulator struct {
	inProcess
	sim   *sim.Simulator
	watch func(run uint64, label string, m *result.Moment)
	runs  atomic.Uint64
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
	var watch sim.Watchers
	if s.watch != nil {
		run, label := s.runs.Add(1), fmt.Sprintf("%s, seed %d", j.Label(), j.Experiment.Seed)
		defer s.watch(run, label, nil)
		watch.Moment = func(m result.Moment) { s.watch(run, label, &m) }
	}
	if j.PacketsIn == "" {
		return s.sim.RunWatched(ctx, j.Experiment, j.Scheme, progress, watch)
	}
	packets, err := newPacketTrace(j)
	if err != nil {
		return nil, err
	}
	watch.Packet = packets.add
	run, err := s.sim.RunWatched(ctx, j.Experiment, j.Scheme, progress, watch)
	if err := errors.Join(err, packets.close()); err != nil {
		return nil, err
	}
	return run, nil
}
