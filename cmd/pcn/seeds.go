// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// chooseSeeds returns the seeds of --seeds, or those of the file; none if there is only one.
func (c changes) chooseSeeds(
	e *experiment.Experiment, given func(flag string) bool,
) (experiment.Seeds, error) {
	switch {
	case given("seeds") && given("seed"):
		return nil, errors.New("--seed and --seeds are both given: keep one of them")
	case given("seed"):
		return nil, nil
	case !given("seeds"):
		return e.Seeds, nil
	}
	seeds, err := experiment.ParseSeeds(c.seeds)
	if err != nil {
		return nil, fmt.Errorf("--seeds: %w", err)
	}
	return seeds, nil
}

// runSeeds runs the experiment with each seed.
func runSeeds(cmd *cobra.Command, o launch.Options, seeds experiment.Seeds) error {
	start := time.Now()
	bar := newProgress(cmd.ErrOrStderr(), o.Experiment.Name,
		launch.CountSeeds(o.Experiment, seeds))
	o.Progress, o.Waiting = bar.set, printWaiting(cmd)
	summary, first, err := launch.RunSeeds(cmd.Context(), o, seeds)
	bar.finish()
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	code := max(printSeeds(w, summary.Outcomes(), len(seeds)), printInvalid(w, first))
	if err := printTotal(w, start, filepath.Join(o.Out, launch.ReportFile)); err != nil {
		return err
	}
	return exitWith(code)
}

// printSeeds prints what was expected, and the medians. It returns the exit code.
func printSeeds(w io.Writer, outcomes []result.SeedsOutcome, seeds int) int {
	code, label := 0, ""
	t := newTable(w)
	for _, o := range outcomes {
		if of := result.LabelOf(o.Case, o.Scheme); of != label {
			label = of
			t.Flush()
			fmt.Fprintf(w, "\n%s\n", label)
			fmt.Fprintln(t, "\twhat\tpaper\tmedian of", seeds, "seeds [95% interval]\tbound")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n",
			formatPass(o.Pass), o.Expect.What, o.Expect.Paper, o.Value(), o.Bound())
		if !o.Pass {
			code = exitExpect
		}
	}
	t.Flush()
	fmt.Fprintln(w)
	return code
}
