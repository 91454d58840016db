// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/kernel"
)

// Native is the engine that runs jobs on this machine's own kernel.
type Native struct{}

// NewNative returns the engine; it fails if this machine lacks something to run jobs.
func NewNative() (Native, error) {
	for _, have := range []func() error{
		loader.HaveBTF, loader.HaveQdisc, loader.HaveTCPStructOps, loader.HaveTCX,
		loader.HavePermission,
	} {
		if err := have(); err != nil {
			return Native{}, err
		}
	}
	return Native{}, nil
}

// Exclusive implements [Engine]: jobs share the kernel's settings and each other's CPUs.
func (Native) Exclusive() bool { return true }

// Fingerprint implements [Engine]: it fails.
func (Native) Fingerprint(job.Job) (string, error) {
	return "", errors.New("runs on this machine's own kernel can't be reproduced: run in microVMs")
}

// Run implements [Engine].
func (Native) Run(
	ctx context.Context, j job.Job, _ int, progress func(float64),
) (*result.Run, error) {
	if err := j.Experiment.CheckEngine(experiment.EngineKernel); err != nil {
		return nil, err
	}
	return kernel.Run(ctx, j.Experiment, j.Scheme, func(done, total int64) {
		progress(float64(done) / float64(total))
	})
}

// upAndDown builds and removes the network. A kernel without CONFIG_NET_SCH_BPF builds it without
// the ports' qdisc.
func (Native) upAndDown(_ context.Context, j job.Job, _ int) (job.Scale, error) {
	var watch job.Stopwatch
	s, err := kernel.UpAndDown(j.Experiment, j.Scheme, watch.Tell)
	if err == nil {
		watch.Fill(&s)
	}
	return s, err
}
