// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
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

// runSeeds runs the experiment with each seed, on each engine.
func runSeeds(
	cmd *cobra.Command, o launch.Options, engines []launch.Named, seeds experiment.Seeds,
	asJSON, watch bool,
) error {
	start := time.Now()
	bar := newShower(cmd.ErrOrStderr(), o.Experiment.Name,
		len(engines)*launch.CountSeeds(o.Experiment, seeds), watch, enginesOf(engines)...)
	o.Progress, o.Waiting = bar.set, printWaiting(cmd)
	all, err := launch.RunSeedsOn(cmd.Context(), o, engines, seeds)
	bar.finish()
	if err != nil {
		return err
	}
	var summaries []*result.SeedsSummary
	for _, g := range all {
		summaries = append(summaries, g.Seeds...)
	}
	w := cmd.OutOrStdout()
	if asJSON {
		out := jsonout.OutcomesOfSeeds(o.Experiment.Name, summaries)
		if err := printJSON(w, out); err != nil {
			return err
		}
		return exitWith(summariseSeeds(io.Discard, summaries))
	}
	code := summariseSeeds(w, summaries)
	path := filepath.Join(o.Out, launch.ReportFile)
	if len(all) > 1 {
		path = filepath.Join(o.Out, "ENGINE", launch.ReportFile)
	}
	if err := printTotal(w, start, path); err != nil {
		return err
	}
	return exitWith(code)
}

// summariseSeeds prints the medians of several seeds, on each engine. It returns the exit code.
func summariseSeeds(w io.Writer, engines []*result.SeedsSummary) int {
	code := 0
	for _, s := range engines {
		if len(engines) > 1 {
			fmt.Fprintf(w, "\nengine %s", s.Engine())
		}
		code = worse(code, printSeeds(w, s.Outcomes(), len(s.Seeds)))
		printSeedsMetrics(w, s.Metrics(), len(s.Seeds))
		code = worse(code, printComparisons(w, s.Comparisons()))
		fmt.Fprintln(w)
		code = worse(code, printInvalidSeeds(w, s))
	}
	printSeedsOn(w, engines)
	return code
}

// printInvalidSeeds prints warnings and the invalid runs of all seeds. It returns the exit code.
func printInvalidSeeds(w io.Writer, s *result.SeedsSummary) int {
	code := 0
	for _, j := range s.Seeds {
		for _, r := range j.Runs {
			m := r.Manifest
			for _, warning := range m.Warnings {
				fmt.Fprintf(w, "warning: seed %d, %s: %s\n", j.Seed, m.Label(), warning)
			}
			if m.Verdict != result.Invalid {
				continue
			}
			fmt.Fprintf(w, "INVALID: seed %d, %s: %s\n", j.Seed, m.Label(),
				strings.Join(m.Reasons, "; "))
			code = exitInvalid
		}
	}
	return code
}

// printSeedsOn prints the medians of several engines side by side, and whether the intervals of
// each overlap those of the first.
func printSeedsOn(w io.Writer, all []*result.SeedsSummary) {
	if len(all) < 2 {
		return
	}
	t := newLabelledTable(w)
	for _, o := range all[0].Outcomes() {
		if t.begins(result.LabelOf(o.Case, o.Scheme), onEachEngine) {
			fmt.Fprintf(t, "what\t%s", all[0].Engine())
			for _, on := range all[1:] {
				fmt.Fprintf(t, "\t%s\tintervals", on.Engine())
			}
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "%s\t%s", o.Expect.What, o.Value())
		for _, on := range all[1:] {
			other := on.Outcome(o)
			fmt.Fprintf(t, "\t%s\t%s", other.Value(), o.Overlap(other))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	fmt.Fprintln(w)
}

// printSeedsMetrics prints the medians of what is only measured.
func printSeedsMetrics(w io.Writer, metrics []result.SeedsMetric, seeds int) {
	t := newLabelledTable(w)
	for _, m := range metrics {
		if t.begins(result.LabelOf(m.Case, m.Scheme), "") {
			fmt.Fprintln(t, "metric\tmedian of", seeds, "seeds [95% interval]")
		}
		fmt.Fprintf(t, "%s\t%s\n", m.Name, m.Value())
	}
	t.Flush()
}

// printSeeds prints what was expected, and the medians. It returns the exit code.
func printSeeds(w io.Writer, outcomes []result.SeedsOutcome, seeds int) int {
	code, t := 0, newLabelledTable(w)
	for _, o := range outcomes {
		if t.begins(result.LabelOf(o.Case, o.Scheme), "") {
			fmt.Fprintln(t, "\twhat\tpaper\tmedian of", seeds, "seeds [95% interval]\tbound")
		}
		word, c := verdictOf(o.Pass, o.Needs)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", word, o.Expect.What, o.Expect.Paper,
			withNeeds(o.Value(), o.Needs), o.Bound())
		code = worse(code, c)
	}
	t.Flush()
	return code
}
