// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"time"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// Scale is what the network of a run costs.
type Scale struct {
	Nodes, Links int
	Up, Down     time.Duration
	MemoryBytes  int64 // of the whole machine, not of this process alone
	WithoutQdisc bool  // this kernel lacks CONFIG_NET_SCH_BPF
}

// UpAndDown builds the network of a scheme's run and removes it. On a kernel without
// CONFIG_NET_SCH_BPF it builds all but the ports' qdisc.
func UpAndDown(e *experiment.Experiment, scheme string) (Scale, error) {
	p, err := newPlan(e)
	if err != nil {
		return Scale{}, fmt.Errorf("lay out experiment %s: %w", e.Name, err)
	}
	a, err := algorithmOf(e, scheme)
	if err != nil {
		return Scale{}, err
	}
	f := describeFabric(p, a)
	steps := f.steps()
	s := Scale{Nodes: len(p.nodes), Links: len(p.ports) / 2}
	if err := loader.HaveQdisc(); errors.Is(err, loader.ErrNotSupported) {
		s.WithoutQdisc = true
		steps = f.stepsWithoutQdisc()
	}
	before, err := availableBytes()
	if err != nil {
		return Scale{}, err
	}
	began := time.Now()
	if err := f.build(steps...); err != nil {
		return Scale{}, fmt.Errorf("build the fabric of experiment %s: %w", e.Name, err)
	}
	s.Up = time.Since(began)
	after, err := availableBytes()
	began = time.Now()
	if err := errors.Join(err, f.close()); err != nil {
		return Scale{}, err
	}
	s.Down, s.MemoryBytes = time.Since(began), before-after
	return s, nil
}
