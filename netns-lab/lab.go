// SPDX-License-Identifier: Apache-2.0

// Package lab runs experiments with congestion controls from Go: those that come with the program,
// and files of one's own, as docs/experiments.md describes them.
//
// An [Experiment] says what the network and its traffic are. [Experiment.Run] runs each of its
// schemes on Linux in microVMs, or simulates an ideal network, and returns a [Run] for each. The
// folder of results has all else: CSV files, and a report in HTML.
package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/config/scheme/compile"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sim"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// Engine is what runs an experiment.
type Engine string

// The engines.
const (
	Linux     = Engine(experiment.EngineKernel) // in microVMs: pcn setup fetches what they need
	Simulator = Engine(experiment.EngineSim)    // an ideal network, packet by packet
	Fluid     = Engine(experiment.EngineFluid)  // the algorithms' theory, without packets
)

// Experiment is a network, its traffic and the schemes to run. It does not change.
type Experiment struct{ e *experiment.Experiment }

// Names returns the experiments that come with the program, in alphabetical order.
func Names() []string { return experiments.Names() }

// Load reads an experiment that comes with the program, by its name, or a file, by a path that has
// a separator or ends in .yaml. Controls of one's own that it names are compiled, with clang. The
// error names each mistake with its file and line.
func Load(nameOrPath string) (*Experiment, error) {
	e, err := experiments.LoadWith(nameOrPath, experiment.Options{Compile: compileOwn})
	if err != nil {
		return nil, err
	}
	return &Experiment{e}, nil
}

func compileOwn(ctx context.Context, path string) (scheme.Own, error) {
	return compile.Scheme(ctx, path,
		compile.Sources{Kernel: npecn.Source(), Simulator: sim.Source(), Counted: true})
}

// Name returns the experiment's name.
func (x *Experiment) Name() string { return x.e.Name }

// Schemes returns the schemes that it runs.
func (x *Experiment) Schemes() []string { return slices.Clone(x.e.Schemes) }

// Duration returns how long its network runs, from t = 0.
func (x *Experiment) Duration() time.Duration { return time.Duration(x.e.Duration) }

// Changes are what an experiment is to have in place of what its file says. What is zero stays.
type Changes struct {
	// Schemes may be any that a file can list, such as a baseline.
	Schemes  []string
	Duration time.Duration
	Seed     *uint64
}

// With returns the experiment with changes. It fails where a file with them would be refused.
func (x *Experiment) With(c Changes) (*Experiment, error) {
	changes := experiment.Changes{Schemes: c.Schemes, Seed: c.Seed}
	if c.Duration != 0 {
		changes.Duration = new(experiment.Duration(c.Duration))
	}
	e, err := x.e.With(changes)
	if err != nil {
		return nil, err
	}
	return &Experiment{e}, nil
}

// Run runs every case and scheme, several at a time, and writes the results into a folder, which
// must be empty or not exist. An empty engine is the experiment's own.
func (x *Experiment) Run(ctx context.Context, engine Engine, folder string) ([]Run, error) {
	engine = cmp.Or(engine, Engine(x.e.Engine))
	on, err := open(engine)
	if err != nil {
		return nil, err
	}
	results, err := launch.Run(ctx,
		launch.Options{Experiment: x.e, Engine: on, Out: folder})
	if err != nil {
		return nil, err
	}
	runs := make([]Run, 0, len(results))
	for _, r := range results {
		runs = append(runs, runOf(x.e, r))
	}
	return runs, nil
}

func open(engine Engine) (launch.Engine, error) {
	switch engine {
	case Simulator:
		return launch.NewSimulator(), nil
	case Fluid:
		return launch.NewFluid(), nil
	case Linux:
		return launch.NewMicroVMs("", false)
	}
	return nil, fmt.Errorf("unknown engine %q: want %s, %s or %s", engine, Linux, Simulator, Fluid)
}

// Run is what came of one scheme, in one case.
type Run struct {
	Case   string // empty if the experiment has no cases
	Scheme string
	Seed   uint64
	// Invalid has the reasons why the numbers are not to be used, such as a computer that was too
	// slow. None: they are valid.
	Invalid []string
	Flows   []Flow
	// Expectations are those of the file, and what came of them.
	Expectations []Expectation
}

// Flow is what one flow did.
type Flow struct {
	Name, Src, Dst string
	Start          time.Duration // since t = 0
	// Completion is the time from the start until the last byte was received; 0 if it was not.
	Completion                     time.Duration
	SentBytes, ReceivedBytes       uint64
	ReceivedPackets, MarkedPackets uint64
}

// Expectation is what a file expects of a run.
type Expectation struct {
	What string
	// Measured has a value, with its unit, for each flow, port or link that it is about.
	Measured []string
	// Err says why it could not be measured. Then it is not met.
	Err error
	Met bool
}

func runOf(e *experiment.Experiment, r *result.Run) Run {
	out := Run{Case: r.Manifest.Case, Scheme: r.Manifest.Scheme, Seed: r.Manifest.Seed,
		Invalid: slices.Clone(r.Manifest.Reasons)}
	for _, f := range r.Flows {
		out.Flows = append(out.Flows, Flow{
			Name: f.Name, Src: f.Src, Dst: f.Dst,
			Start: time.Duration(f.StartNs), Completion: time.Duration(f.CompletionNs),
			SentBytes: f.SentBytes, ReceivedBytes: f.ReceivedBytes,
			ReceivedPackets: f.Packets, MarkedPackets: f.MarkedPackets,
		})
	}
	for _, o := range result.Evaluate(e, r) {
		one := Expectation{What: o.Expect.What, Err: o.Err, Met: o.Pass}
		for _, m := range o.Measured {
			one.Measured = append(one.Measured, m.String())
		}
		out.Expectations = append(out.Expectations, one)
	}
	return out
}
