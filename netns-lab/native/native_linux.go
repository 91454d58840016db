// SPDX-License-Identifier: Apache-2.0

// Package native is the engine that runs jobs on this machine's own kernel.
package native

import (
	"context"
	"errors"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/kernel"
)

// Engine is a [launch.Engine].
type Engine struct{}

// New returns the engine; it fails if this machine lacks something to run jobs.
func New() (Engine, error) {
	for _, have := range []func() error{
		loader.HaveBTF, loader.HaveQdisc, loader.HaveTCPStructOps, loader.HaveTCX,
		loader.HavePermission,
	} {
		if err := have(); err != nil {
			return Engine{}, err
		}
	}
	return Engine{}, nil
}

// Exclusive implements [launch.Engine]: jobs share the kernel's settings and each other's CPUs.
func (Engine) Exclusive() bool { return true }

// Fingerprint implements [launch.Engine]: it fails.
func (Engine) Fingerprint(job.Job) (string, error) {
	return "", errors.New("runs on this machine's own kernel can't be reproduced: run in microVMs")
}

// Run implements [launch.Engine].
func (Engine) Run(
	ctx context.Context, j job.Job, _ int, progress func(float64),
) (*result.Run, error) {
	if err := j.Experiment.CheckEngine(experiment.EngineKernel); err != nil {
		return nil, err
	}
	return kernel.Run(ctx, j.Experiment, j.Scheme, func(done, total int64) {
		progress(float64(done) / float64(total))
	})
}

// UpAndDown implements [launch.Builder]. On a kernel without CONFIG_NET_SCH_BPF it builds the
// network without the ports' qdisc.
func (Engine) UpAndDown(_ context.Context, j job.Job, _ int) (job.Scale, error) {
	var watch job.Stopwatch
	s, err := kernel.UpAndDown(j.Experiment, j.Scheme, watch.Tell)
	if err == nil {
		watch.Fill(&s)
	}
	return s, err
}
