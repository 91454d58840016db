// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/sweep"
)

// Options configure what is run, and where.
type Options struct {
	Figures []*Figure
	Load    sweep.Loader // reads their experiments
	Engines []launch.Named
	Quick   bool
	Seeds   experiment.Seeds // in place of the catalogue's, if there are any
	Out     string           // folder of the results; finished runs in it are kept
	// Finished runs nothing: it takes what is there, and of figures of which nothing is, what there
	// is of the runs of Quick.
	Finished bool
	// Declared runs the simulation with the declared parameters, and takes of the others what is
	// finished. Otherwise it is the other way round.
	Declared bool
	// Schemes are the only ones to run, if there are any.
	Schemes []string
	// Set has parameters of schemes, by path, that replace those of the figures that run them.
	Set map[string]string
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
	other := o
	other.Finished, other.Declared = true, !o.Declared
	all, err := o.works()
	if err != nil {
		return nil, err
	}
	if err := o.runAll(ctx, all); err != nil {
		return nil, err
	}
	finished, err := other.works()
	if err != nil {
		return nil, err
	}
	return collect(o, append(all, finished...))
}

// works returns what the options ask for.
func (o Options) works() ([]work, error) {
	var all []work
	for _, engine := range o.Engines {
		if o.Declared && engine.Name != experiment.EngineSim {
			continue
		}
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
	return all, nil
}

// prepare returns the work of an engine for a figure; nil if there is none.
func (o Options) prepare(f *Figure, engine launch.Named) (*work, error) {
	p, err := newPlan(f, engine.Name, o)
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
	Figures []*Figure
	Rows    []Row

	plans    map[string]map[experiment.Engine]*Plan // by the figure's ID
	results  map[string]map[experiment.Engine]*sweep.Results
	declared map[string]outcome // by the figure's ID
}

// outcome is a plan that ran.
type outcome struct {
	plan    *Plan
	results *sweep.Results
}

func collect(o Options, all []work) (*Reproduction, error) {
	r := &Reproduction{Figures: o.Figures,
		plans:    map[string]map[experiment.Engine]*Plan{},
		results:  map[string]map[experiment.Engine]*sweep.Results{},
		declared: map[string]outcome{}}
	for _, f := range o.Figures {
		r.plans[f.ID()] = map[experiment.Engine]*Plan{}
		r.results[f.ID()] = map[experiment.Engine]*sweep.Results{}
	}
	for _, w := range all {
		res, err := w.runner.Collect()
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", w.Figure.ID(), err)
		}
		if w.Declared {
			r.declared[w.Figure.ID()] = outcome{w.Plan, res}
			continue
		}
		r.plans[w.Figure.ID()][w.Engine] = w.Plan
		r.results[w.Figure.ID()][w.Engine] = res
	}
	for _, f := range o.Figures {
		rows := judge(f, r.plans[f.ID()], r.results[f.ID()])
		if err := r.declaredOf(f).judge(rows, o); err != nil {
			return nil, fmt.Errorf("figure %s: %w", f.ID(), err)
		}
		r.Rows = append(r.Rows, rows...)
	}
	return r, nil
}

// declaredOf returns what ran with the declared parameters, or else what did with the figure's own.
func (r *Reproduction) declaredOf(f *Figure) outcome {
	if d := r.declared[f.ID()]; d.plan != nil {
		return d
	}
	return outcome{r.plans[f.ID()][experiment.EngineSim], r.results[f.ID()][experiment.EngineSim]}
}

// judge adds to a figure's rows what came out with the declared parameters. Rows whose parameters
// are the declared ones need no other run.
func (d outcome) judge(rows []Row, o Options) error {
	if d.plan == nil || d.plan.Figure.CauseOf != "" {
		return nil
	}
	var plans [2]*Plan
	for i := range plans {
		var err error
		o.Declared, o.Quick = i == 1, d.plan.Quick
		if plans[i], err = newPlan(d.plan.Figure, d.plan.Engine, o); err != nil {
			return err
		}
	}
	for i := range rows {
		row := &rows[i]
		if err := row.findFitted(plans[0], plans[1]); err != nil {
			return err
		}
		if !d.plan.Declared && len(row.Fitted) > 0 {
			continue
		}
		if e := d.plan.estimate(i, d.results); e != nil {
			row.Declared, row.DeclaredVerdict = e, e.verdict(row.Claim)
		}
	}
	return nil
}

// findFitted sets the row's parameters that differ from the declared ones.
func (row *Row) findFitted(own, declared *Plan) error {
	schemes, ofCase := []string{row.Claim.Scheme}, row.Claim.Case
	if base := row.Claim.RelativeTo; base != nil {
		schemes = append(schemes, base.Schemes...)
		if base.Case != ofCase {
			ofCase = "" // both count
		}
	}
	slices.Sort(schemes)
	for _, s := range slices.Compact(schemes) {
		names, err := fitted(own, declared, s, ofCase)
		if err != nil {
			return err
		}
		row.Fitted = append(row.Fitted, names...)
	}
	return nil
}

// Count returns how many claims have a verdict. Those that only look for a cause are not counted.
func (r *Reproduction) Count(v Verdict) int {
	n := 0
	for _, row := range r.Rows {
		if row.Verdict == v && row.Figure.CauseOf == "" {
			n++
		}
	}
	return n
}
