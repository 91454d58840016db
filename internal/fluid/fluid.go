// SPDX-License-Identifier: Apache-2.0

// Package fluid runs experiments as their theory: traffic is a fluid, and senders follow the
// differential or difference equations that papers analyse the algorithms with. Each model is in a
// file of its own and cites its source; its parameters are those of the experiment's scheme.
//
// A run has a fixed step. In each, fluid moves along its path: a port is a first-in-first-out queue
// that serves what arrived, in the order of its arrival and marked by the port's rule, and a link
// is a delay. What arrives tells its sender, one reverse path later, how much arrived, which share
// was marked, and how long it took. PAUSE stops a port as it does in a switch.
//
// There are no packets, so there is no burstiness and no noise: where a packet's run differs, that
// is what it differs by. Flows from one host to another that start together are one fluid.
package fluid

import (
	"context"
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Run computes one scheme of the experiment. progress receives how far the run is, 0 to 1. The
// caller fills in Tool and Wall of the manifest.
func Run(
	ctx context.Context, e *experiment.Experiment, scheme string, progress func(done float64),
) (*result.Run, error) {
	m, err := newModel(e, scheme)
	if err != nil {
		return nil, fmt.Errorf("model scheme %s of experiment %s: %w", scheme, e.Name, err)
	}
	if err := m.run(ctx, progress); err != nil {
		return nil, fmt.Errorf("model scheme %s: %w", scheme, err)
	}
	return m.result(), nil
}

// run computes all steps.
func (m *model) run(ctx context.Context, progress func(done float64)) error {
	const every = 4096 // steps between two looks at the context
	for m.step = 0; m.step < m.steps; m.step++ {
		if m.step%every == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			progress(float64(m.step) / float64(m.steps))
		}
		m.advance()
	}
	return nil
}

// model is a run.
type model struct {
	exp    *experiment.Experiment
	setup  setup
	h      float64 // length of a step, in s
	stepNs float64
	step   int // that is being computed
	steps  int // of the run
	start  int // the step of t = 0
	perBin int // steps in a bin of the series

	alike    []int      // of each node, the first one that is like it
	physical []physical // the ports, by number, as in package network
	ports    []*port    // their models
	order    []*port    // those with flows: each behind the ports that feed it
	nodes    []node
	sources  []*source
	changes  []rateChange
	lossy    bool // no PAUSE
	reasons  []string

	record recorder
}

// advance computes a step: switches and hosts send, receivers report, senders adjust.
func (m *model) advance() {
	m.changeRates()
	for _, p := range m.order {
		p.serve(m)
	}
	for _, s := range m.sources {
		s.advance(m)
	}
	if (m.step+1)%m.perBin == 0 {
		m.record.endBin(m)
	}
}

func (m *model) changeRates() {
	for len(m.changes) > 0 && m.changes[0].step <= m.step {
		m.changes[0].port.rate = m.changes[0].rate
		m.changes = m.changes[1:]
	}
}

// rateChange is one of a port.
type rateChange struct {
	step int
	port *port
	rate float64
}
