// SPDX-License-Identifier: Apache-2.0

// Package fig2 simulates Fig. 2 of the PCN paper for a page of the documentation: when the site is
// made, and in the reader's browser.
package fig2

import (
	"context"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sim"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// length of a run: as in the README.
const length = 19 * experiment.Millisecond

// baseline is the scheme that the reader's choice is compared with.
const baseline = "pfc"

// Choice is what readers choose. The zero Choice is of no run.
type Choice struct {
	Scheme  string
	BurstKB int // the size of each flow of the burst
	Seed    uint64
}

// First is the choice that the page opens with.
func First() Choice { return Choice{Scheme: "pcn", BurstKB: 64, Seed: 1} }

// Picture is a figure of the runs.
type Picture struct {
	Heading string `json:"heading"` // what it shows
	SVG     string `json:"svg"`
}

// Simulator runs the baseline and the scheme of a choice. It keeps the baseline's last run, which
// does not depend on the scheme.
type Simulator struct {
	kept   *result.Run
	keptOf Choice
}

// drawn is how many of a report's figures the page has: of PAUSE and of throughput, which are first
// there.
const drawn = 2

// Pictures returns the figures of the baseline and of the chosen scheme, as a report has them:
// throughput, and why it is lost.
func (s *Simulator) Pictures(ctx context.Context, c Choice) ([]Picture, error) {
	e, err := c.experiment()
	if err != nil {
		return nil, err
	}
	simulator := sim.New()
	of := c
	of.Scheme = baseline
	if s.keptOf != of {
		if s.kept, err = simulator.Run(ctx, e, baseline, func(float64) {}); err != nil {
			return nil, err
		}
		s.keptOf = of
	}
	run, err := simulator.Run(ctx, e, c.Scheme, func(float64) {})
	if err != nil {
		return nil, err
	}
	figures, err := report.FiguresOverTime(e, []*result.Run{s.kept, run})
	if err != nil {
		return nil, err
	}
	var pictures []Picture
	for _, f := range slices.Backward(figures[:drawn]) {
		svg, err := f.SVG()
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, Picture{f.Heading(), string(svg)})
	}
	return pictures, nil
}

// experiment returns hol with the choice.
func (c Choice) experiment() (*experiment.Experiment, error) {
	e, err := experiments.Load("hol")
	if err != nil {
		return nil, err
	}
	var set yaml.Node
	if err := yaml.Unmarshal(fmt.Appendf(nil, "{bursts.burst.size: %dKB}", c.BurstKB),
		&set); err != nil {
		return nil, fmt.Errorf("set the burst: %w", err)
	}
	return e.With(experiment.Changes{Schemes: []string{baseline, c.Scheme}, Seed: &c.Seed,
		Duration: new(experiment.Duration(length)), Set: []*yaml.Node{set.Content[0]}})
}
