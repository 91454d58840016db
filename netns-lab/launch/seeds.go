// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/report"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// CountSeeds returns the number of runs of an experiment with several seeds.
func CountSeeds(e *experiment.Experiment, seeds experiment.Seeds) int {
	return len(seeds) * Count(e)
}

// seedRun is a run with its experiment.
type seedRun struct {
	experiment *experiment.Experiment // of its case
	run        *result.Run
}

// RunSeeds runs the experiment once with each seed, and sums up what it expects. Out gets the files
// and the report of the first seed only: each run is summed up, and forgotten.
func RunSeeds(
	ctx context.Context, o Options, seeds experiment.Seeds,
) (*result.SeedsSummary, []*result.Run, error) {
	release, err := claim(o.Out)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	pool, err := NewPool(o.Engine, o.Waiting)
	if err != nil {
		return nil, nil, err
	}
	summary := result.NewSeedsSummary()
	var first []*result.Run
	done := make([]chan []seedRun, len(seeds))
	g, ctx := errgroup.WithContext(ctx)
	limit := make(chan struct{}, pool.Size()) // seeds under way, or waiting to be summed up
	for i := range seeds {
		done[i] = make(chan []seedRun, 1)
	}
	g.Go(func() error {
		for i, seed := range seeds {
			select {
			case limit <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			g.Go(func() error {
				runs, err := runSeed(ctx, pool, o, seed)
				done[i] <- runs
				return err
			})
		}
		return nil
	})
	g.Go(func() error { // in the order of seeds, so that the summary is always the same
		for i := range seeds {
			select {
			case runs := <-done[i]:
				<-limit
				all := sumUp(summary, o.Experiment, runs)
				if i == 0 {
					first = all
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	return summary, first, saveFirst(o, seeds[0], first)
}

// sumUp adds the runs of a seed to the summary, and returns them.
func sumUp(
	summary *result.SeedsSummary, e *experiment.Experiment, of []seedRun,
) []*result.Run {
	var runs []*result.Run
	for _, r := range of {
		summary.Add(r.experiment, r.run)
		runs = append(runs, r.run)
	}
	summary.Compare(e, runs)
	return runs
}

// runSeed runs all cases and schemes with a seed, one after the other.
func runSeed(
	ctx context.Context, pool *Pool, o Options, seed uint64,
) ([]seedRun, error) {
	e, err := o.Experiment.With(experiment.Changes{Seed: &seed})
	if err != nil {
		return nil, err
	}
	todo, err := jobs(e)
	if err != nil {
		return nil, err
	}
	var runs []seedRun
	for _, j := range todo {
		label := fmt.Sprintf("seed %d/%s", seed, j.Label())
		run, err := pool.Run(ctx, j, func(done float64) { o.Progress(label, done) })
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", label, err)
		}
		o.Progress(label, 1)
		runs = append(runs, seedRun{j.Experiment, run})
	}
	return runs, nil
}

// saveFirst writes the runs of the first seed, and their report.
func saveFirst(o Options, seed uint64, runs []*result.Run) error {
	for _, r := range runs {
		if err := save(r, o.Out); err != nil {
			return err
		}
	}
	e, err := o.Experiment.With(experiment.Changes{Seed: &seed})
	if err != nil {
		return err
	}
	groups := []report.Group{{Experiment: e, Runs: runs}}
	return WriteReport(filepath.Join(o.Out, ReportFile), groups)
}
