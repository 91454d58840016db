// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/sweep"
)

// Options configure what is run, and where.
type Options struct {
	Figures []*Figure
	Engines []launch.Named
	Quick   bool
	Seeds   experiment.Seeds // in place of the catalogue's, if there are any
	Out     string           // folder of the results; finished runs in it are kept
	// Finished runs nothing: it takes what is there, and of figures of which nothing is, what there
	// is of the runs of Quick.
	Finished bool
	// Slurm runs everything as job arrays, if it is not nil. Its file and engine are each sweep's.
	Slurm *sweep.Slurm
	// Started is called when an engine begins with a figure; seconds is the CPU time that it and
	// all that follow are expected to take, 0 if that is not known. Progress is that of
	// [sweep.Options].
	Started  func(p *Plan, runs int, seconds float64)
	Progress func(run string, done float64)
	Waiting  func()
}

// work is a plan with its runner.
type work struct {
	*Plan
	runner *sweep.Runner
}

// Run runs what the figures need and is not finished, and judges every claim.
func Run(ctx context.Context, o Options) (*Reproduction, error) {
	var all []work
	for _, engine := range o.Engines {
		for _, f := range o.Figures {
			w, err := o.prepare(f, engine)
			if err == nil && w == nil && o.Finished && !o.Quick {
				quick := o
				quick.Quick = true
				w, err = quick.prepare(f, engine)
			}
			if err != nil {
				return nil, fmt.Errorf("figure %s: %w", f.ID(), err)
			}
			if w != nil {
				all = append(all, *w)
			}
		}
	}
	if err := o.runAll(ctx, all); err != nil {
		return nil, err
	}
	return collect(o, all)
}

// prepare returns the work of an engine for a figure; nil if there is none.
func (o Options) prepare(f *Figure, engine launch.Named) (*work, error) {
	p, err := NewPlan(f, engine.Name, o)
	if p == nil || err != nil {
		return nil, err
	}
	r, err := o.runner(p, engine.Engine)
	if r == nil || err != nil {
		return nil, err
	}
	return &work{p, r}, nil
}

// runner returns the runner of a plan; nil if nothing of it is finished, and only that is wanted.
func (o Options) runner(p *Plan, engine launch.Engine) (*sweep.Runner, error) {
	so := sweep.Options{Sweep: p.Sweep, Engine: engine, Out: p.Dir, Waiting: o.Waiting,
		Progress: o.Progress}
	r, err := sweep.NewRunner(so)
	if err != nil || !o.Finished {
		return r, err
	}
	if so.Only, err = r.Finished(); err != nil || len(so.Only) == 0 {
		return nil, err
	}
	return sweep.NewRunner(so)
}

// runAll runs the work one by one or, on a cluster, all at once.
func (o Options) runAll(ctx context.Context, all []work) error {
	if o.Finished {
		return nil
	}
	if o.Slurm != nil {
		g, ctx := errgroup.WithContext(ctx)
		for _, w := range all {
			g.Go(func() error { return o.runOne(ctx, w) })
		}
		return g.Wait()
	}
	var left float64
	for _, w := range all {
		left += w.Seconds()
	}
	for _, w := range all {
		o.Started(w.Plan, len(w.runner.Cells()), left)
		left -= w.Seconds()
		if err := o.runOne(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) runOne(ctx context.Context, w work) error {
	lock, err := w.runner.Lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	if o.Slurm != nil {
		s := *o.Slurm
		s.File, s.Engine = w.File, string(w.Engine)
		return w.runner.RunOnSlurm(ctx, s)
	}
	if err := w.runner.Clean(); err != nil {
		return err
	}
	if err := w.runner.Run(ctx); err != nil {
		return fmt.Errorf("figure %s: %w", w.Figure.ID(), err)
	}
	return nil
}

// Reproduction is what came out.
type Reproduction struct {
	Quick   bool
	Figures []*Figure
	Rows    []Row

	plans   map[string]map[experiment.Engine]*Plan // by the figure's ID
	results map[string]map[experiment.Engine]*sweep.Results
}

func collect(o Options, all []work) (*Reproduction, error) {
	r := &Reproduction{Quick: o.Quick, Figures: o.Figures,
		plans:   map[string]map[experiment.Engine]*Plan{},
		results: map[string]map[experiment.Engine]*sweep.Results{}}
	for _, f := range o.Figures {
		r.plans[f.ID()] = map[experiment.Engine]*Plan{}
		r.results[f.ID()] = map[experiment.Engine]*sweep.Results{}
	}
	for _, w := range all {
		res, err := w.runner.Collect()
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", w.Figure.ID(), err)
		}
		r.plans[w.Figure.ID()][w.Engine] = w.Plan
		r.results[w.Figure.ID()][w.Engine] = res
	}
	for _, f := range o.Figures {
		r.Rows = append(r.Rows, Judge(f, r.plans[f.ID()], r.results[f.ID()])...)
	}
	return r, nil
}

// Count returns how many claims have a verdict.
func (r *Reproduction) Count(v Verdict) int {
	n := 0
	for _, row := range r.Rows {
		if row.Verdict == v {
			n++
		}
	}
	return n
}
