// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"sync"

	"github.com/pcn-linux/pcn/netns-lab/fluid"
	"github.com/pcn-linux/pcn/netns-lab/job"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// Fluid is the engine that computes the algorithms' theory.
type Fluid struct {
	program func() (string, error) // hash of this program, computed once
}

// NewFluid returns the engine.
func NewFluid() *Fluid { return &Fluid{sync.OnceValues(hashProgram)} }

// Exclusive implements [Engine]: runs share nothing.
func (*Fluid) Exclusive() bool { return false }

// sharesCPUs says that a run's time on the wall clock changes nothing.
func (*Fluid) sharesCPUs() {}

// Fingerprint implements [Engine]. The models are part of this program.
func (f *Fluid) Fingerprint(j job.Job) (string, error) { return ownFingerprint(f.program, j) }

// Run implements [Engine].
func (*Fluid) Run(
	ctx context.Context, j job.Job, _ int, progress func(float64),
) (*result.Run, error) {
	return fluid.Run(ctx, j.Experiment, j.Scheme, progress)
}
