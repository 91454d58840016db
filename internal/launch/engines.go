// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
)

// Named is an engine with its name.
type Named struct {
	Name   experiment.Engine
	Engine Engine
}

// RunEngines runs the experiment on each engine. With one, it does what [Run] does. With several,
// the files of each are in Out/ENGINE, and one report has all, the runs of the same scheme and case
// next to each other, in the order of the engines given.
func RunEngines(ctx context.Context, o Options, engines []Named) ([]*result.Run, error) {
	if len(engines) == 1 {
		o.Engine = engines[0].Engine
		return Run(ctx, o)
	}
	todo, err := Jobs(o.Experiment)
	if err != nil {
		return nil, err
	}
	if err := checkEngines(todo, engines); err != nil {
		return nil, err
	}
	release, err := claim(o.Out, false)
	if err != nil {
		return nil, err
	}
	defer release()
	runs := make([]*result.Run, len(todo)*len(engines))
	for _, i := range quickFirst(engines) {
		of, err := runAll(ctx, o.on(engines[i]), todo, nil)
		if err != nil {
			return nil, fmt.Errorf("engine %s: %w", engines[i].Name, err)
		}
		for n, r := range of {
			runs[n*len(engines)+i] = r
		}
	}
	return runs, writeOutcomes(o.Out, report.Group{Experiment: o.Experiment, Runs: runs})
}

// checkEngines fails if an engine can't run one of the jobs.
func checkEngines(todo []job.Job, engines []Named) error {
	for _, j := range todo {
		for _, e := range engines {
			if err := j.Experiment.CheckEngine(e.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// RunSeedsOn does on each engine what [RunSeeds] does. With several, the files of each are in
// Out/ENGINE, with a report.
func RunSeedsOn(
	ctx context.Context, o Options, engines []Named, seeds experiment.Seeds,
) ([]report.Group, error) {
	all := make([]report.Group, len(engines))
	for _, i := range quickFirst(engines) {
		here := o
		here.Engine = engines[i].Engine
		if len(engines) > 1 {
			here = o.on(engines[i])
		}
		var err error
		if all[i], err = RunSeeds(ctx, here, seeds); err != nil {
			return nil, fmt.Errorf("engine %s: %w", engines[i].Name, err)
		}
	}
	return all, nil
}

// on returns the options for one of several engines.
func (o Options) on(engine Named) Options {
	progress := o.Progress
	o.Engine, o.Out = engine.Engine, filepath.Join(o.Out, string(engine.Name))
	o.Progress = func(run string, done float64) {
		if progress != nil {
			progress(string(engine.Name)+"/"+run, done)
		}
	}
	return o
}

// quickFirst returns the indexes of the engines, the kernel's last: it takes minutes, and what
// another engine refuses is to be known before.
func quickFirst(engines []Named) []int {
	var first, last []int
	for i, e := range engines {
		if e.Name == experiment.EngineKernel {
			last = append(last, i)
			continue
		}
		first = append(first, i)
	}
	return slices.Concat(first, last)
}
