// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

// Options are how a suite is run.
type Options struct {
	Suite  Suite
	Kernel string // its name, for people
	Engine launch.Engine
	Out    string // folder of the results; it must not exist, or be empty
	Seeds  experiment.Seeds
	Only   []string // the suite's experiments to run; none stands for all
	Algo   []string // the schemes to run; none stands for all
	// Against is a record of a reference kernel; nil if there is none. Runs that give its bytes
	// with the first seed are not run with the others.
	Against *Record
	// FailFast ends the suite at the first run that has changed: others that differ from the
	// reference are then left with one seed.
	FailFast bool
	// Progress is told how many of the runs have ended. Several goroutines call it.
	Progress func(ended, of int)
}

// task is one run of a suite.
type task struct {
	job  job.Job
	name string
	seed uint64
	done SeedRun
}

// Execute runs a suite on a kernel, and leaves its record, and the files of the runs with the first
// seed, in a folder.
func Execute(ctx context.Context, o Options) (*Record, error) {
	var err error
	if o.Suite, err = o.Suite.only(o.Only); err != nil {
		return nil, err
	}
	if err := o.Suite.checkSchemes(o.Algo); err != nil {
		return nil, err
	}
	pool, err := launch.NewPool(o.Engine, nil)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of results: %w", err)
	}
	x := &execution{o: o, pool: pool, record: &Record{Suite: o.Suite.Name, Tool: launch.Tool(),
		Kernel: o.Kernel, Only: o.Only, Algo: o.Algo}}
	first, err := x.tasks(o.Seeds[:1], nil)
	if err != nil {
		return nil, err
	}
	others, err := x.tasks(o.Seeds[1:], nil)
	if err != nil {
		return nil, err
	}
	x.of = len(first) + len(others)
	if err := x.run(ctx, first); err != nil {
		return nil, err
	}
	if o.Against != nil {
		others, err = x.tasks(o.Seeds[1:], x.differs)
		if err != nil {
			return nil, err
		}
		x.of = len(first) + len(others)
	}
	if o.Against != nil && o.FailFast {
		err = x.runToChange(ctx, others)
	} else {
		err = x.run(ctx, others)
	}
	if err != nil {
		return nil, err
	}
	return x.record, x.record.Write(o.Out)
}

// runToChange runs tasks, those of one run after those of another, until a run has changed.
func (x *execution) runToChange(ctx context.Context, tasks []*task) error {
	for i := range x.record.Runs {
		of := x.o.Against.find(x.record.Runs[i].Name())
		if of == nil {
			continue
		}
		var all []*task
		for _, t := range tasks {
			if t.name == of.Name() {
				all = append(all, t)
			}
		}
		if err := x.run(ctx, all); err != nil {
			return err
		}
		if hasChanged(*of, x.record.Runs[i]) {
			return nil
		}
	}
	return nil
}

type execution struct {
	o    Options
	pool *launch.Pool

	mu        sync.Mutex
	record    *Record
	ended, of int
}

// tasks returns the runs of some seeds, of all runs or those that are wanted.
func (x *execution) tasks(seeds experiment.Seeds, wanted func(name string) bool) ([]*task, error) {
	var all []*task
	for _, of := range x.o.Suite.Experiments {
		for _, seed := range seeds {
			e, err := of.With(experiment.Changes{Seed: &seed})
			if err != nil {
				return nil, err
			}
			jobs, err := launch.Jobs(e)
			if err != nil {
				return nil, err
			}
			for _, j := range jobs {
				name := filepath.Join(of.Name, j.Label())
				if x.record.hasScheme(j.Scheme) && (wanted == nil || wanted(name)) {
					all = append(all, &task{job: j, name: name, seed: seed})
				}
			}
		}
	}
	return all, nil
}

// differs reports whether a run's bytes with the first seed are other than the reference's.
func (x *execution) differs(name string) bool {
	ours, theirs := x.record.find(name), x.o.Against.find(name)
	if theirs == nil {
		return true
	}
	reference := theirs.seed(ours.Seeds[0].Seed)
	return reference == nil || !reference.sameAs(ours.Seeds[0])
}

// run runs tasks on all CPUs, and adds what they come to to the record, in their order.
func (x *execution) run(ctx context.Context, tasks []*task) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(x.pool.Size())
	for _, t := range tasks {
		g.Go(func() error { return x.one(ctx, t) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, t := range tasks {
		r := x.record.find(t.name)
		if r == nil {
			e := t.job.Experiment
			x.record.Runs = append(x.record.Runs,
				Run{Experiment: e.Name, Case: e.CaseName, Scheme: t.job.Scheme})
			r = &x.record.Runs[len(x.record.Runs)-1]
		}
		r.Seeds = append(r.Seeds, t.done)
	}
	return nil
}

// one runs a task. A kernel on which it fails has that for a result.
func (x *execution) one(ctx context.Context, t *task) error {
	run, err := x.pool.Run(ctx, t.job, func(float64) {})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	defer x.tell()
	if err != nil {
		t.done = SeedRun{Seed: t.seed, Failed: err.Error()}
		return nil
	}
	if t.done, err = recordOf(t.job.Experiment, run); err != nil {
		return err
	}
	x.describe(run)
	if t.seed != x.o.Seeds[0] {
		return nil
	}
	return launch.SaveIn(filepath.Join(x.o.Out, t.name), run)
}

// describe notes what ran.
func (x *execution) describe(run *result.Run) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := run.Manifest
	x.record.Release, x.record.KernelSHA256, x.record.GuestSHA256 =
		m.Kernel, m.KernelSHA256, m.GuestSHA256
	x.record.Kernel = cmp.Or(x.record.Kernel, m.Kernel)
}

func (x *execution) tell() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended++
	if x.o.Progress != nil {
		x.o.Progress(x.ended, x.of)
	}
}
