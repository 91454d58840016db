// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
)

// CountSeeds returns the number of runs of an experiment with several seeds.
func CountSeeds(e *experiment.Experiment, seeds experiment.Seeds) int {
	return len(seeds) * Count(e)
}

// RunSeeds runs the experiment once with each seed, and sums up what it measures. Out gets every
// seed's values ([table.File], expectations.json), the report of all, and the other files of one
// seed only: the first whose programs fail, else the [result.SeedsSummary.Typical] one. Each run is
// summed up, and most are forgotten.
func RunSeeds(
	ctx context.Context, o Options, seeds experiment.Seeds,
) (report.Group, error) {
	release, err := claim(o.Out, false)
	if err != nil {
		return report.Group{}, err
	}
	defer release()
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	pool, err := NewPool(o.Engine, o.Waiting)
	if err != nil {
		return report.Group{}, err
	}
	summary := &result.SeedsSummary{}
	var kept [][]*result.Run // of the first seeds
	var shown []*result.Run  // of the first whose programs fail
	done := make([]chan []*result.Run, len(seeds))
	g, ctx := errgroup.WithContext(ctx)
	limit := make(chan struct{}, pool.Size()) // seeds under way, or waiting to be summed up
	for i := range seeds {
		done[i] = make(chan []*result.Run, 1)
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
				if len(runs) == 0 {
					continue // its error ends the group
				}
				judged := result.Judge(o.Experiment, runs)
				summary.Seeds = append(summary.Seeds, judged)
				if shown == nil && judged.Fails() {
					shown = runs
				}
				if len(kept) < result.KeptSeeds {
					kept = append(kept, runs)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		return report.Group{}, err
	}
	if shown == nil {
		shown = kept[summary.Typical()]
	}
	return saveSeeds(o, shown, summary)
}

// runSeed runs all cases and schemes with a seed, one after the other.
func runSeed(
	ctx context.Context, pool *Pool, o Options, seed uint64,
) ([]*result.Run, error) {
	e, err := o.Experiment.With(experiment.Changes{Seed: &seed})
	if err != nil {
		return nil, err
	}
	todo, err := Jobs(e)
	if err != nil {
		return nil, err
	}
	var runs []*result.Run
	for _, j := range todo {
		label := fmt.Sprintf("seed %d/%s", seed, j.Label())
		run, err := pool.Run(ctx, j, func(done float64) { o.Progress(label, done) })
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", label, err)
		}
		o.Progress(label, 1)
		runs = append(runs, run)
	}
	return runs, nil
}

// saveSeeds writes the runs of one seed, and what all seeds came to.
func saveSeeds(
	o Options, shown []*result.Run, summary *result.SeedsSummary,
) (g report.Group, err error) {
	for _, r := range shown {
		if err := save(r, o.Out); err != nil {
			return g, err
		}
	}
	g.Runs, g.Seeds = shown, []*result.SeedsSummary{summary}
	g.Experiment, err = o.Experiment.With(experiment.Changes{Seed: &shown[0].Manifest.Seed})
	if err != nil {
		return g, err
	}
	return g, writeOutcomes(o.Out, g)
}
