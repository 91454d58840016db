// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/loader"
)

// UpAndDown builds the network of a scheme's run and removes it. It tells where it is, so that
// somebody else measures the time: where CPUs take no time it can't. On a kernel without
// CONFIG_NET_SCH_BPF it builds all but the ports' qdisc.
func UpAndDown(
	e *experiment.Experiment, scheme string, tell func(job.Step),
) (job.Scale, error) {
	p, err := newPlan(e)
	if err != nil {
		return job.Scale{}, fmt.Errorf("lay out experiment %s: %w", e.Name, err)
	}
	a, err := algorithmOf(e, scheme)
	if err != nil {
		return job.Scale{}, err
	}
	f := describeFabric(p, a)
	steps := f.steps()
	s := job.Scale{Nodes: len(p.nodes), Links: len(p.ports) / 2}
	if err := loader.HaveQdisc(); errors.Is(err, loader.ErrNotSupported) {
		s.WithoutQdisc = true
		steps = f.stepsWithoutQdisc()
	}
	before, err := availableBytes()
	if err != nil {
		return job.Scale{}, err
	}
	tell(job.Building)
	if err := f.build(steps...); err != nil {
		return job.Scale{}, fmt.Errorf("build the fabric of experiment %s: %w", e.Name, err)
	}
	tell(job.Built)
	after, err := availableBytes()
	if err := errors.Join(err, f.close()); err != nil {
		return job.Scale{}, err
	}
	tell(job.Removed)
	s.MemoryBytes = before - after
	return s, nil
}
