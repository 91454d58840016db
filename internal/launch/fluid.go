// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"

	"github.com/pcn-linux/pcn/internal/fluid"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// Fluid is the engine that computes the algorithms' theory.
type Fluid struct{ inProcess }

// NewFluid returns the engine.
func NewFluid() *Fluid { return &Fluid{newInProcess()} }

// Run implements [Engine].
func (*Fluid) Run(
	ctx context.Context, j job.Job, _ int, progress func(float64),
) (*result.Run, error) {
	return fluid.Run(ctx, j.Experiment, j.Scheme, progress)
}
