// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"

	"github.com/pcn-linux/pcn/netns-lab/job"
	"github.com/pcn-linux/pcn/netns-lab/result"
	"github.com/pcn-linux/pcn/netns-lab/sim"
)

// Simulator is the engine that simulates an ideal network.
type Simulator struct {
	inProcess
	sim *sim.Simulator
}

// NewSimulator returns the engine.
func NewSimulator() *Simulator { return &Simulator{newInProcess(), sim.New()} }

// Run implements [Engine].
func (s *Simulator) Run(
	ctx context.Context, j job.Job, _ int, progress func(float64),
) (*result.Run, error) {
	return s.sim.Run(ctx, j.Experiment, j.Scheme, progress)
}
