// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/sweep"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
	"github.com/pcn-linux/pcn/netns-lab/sweeps"
)

type sweepFlags struct {
	out    string
	where  whereFlags
	engine engineFlags
	dryRun bool
	watch  bool
	asJSON bool
	yes    bool

	newEngine func(engineFlags, experiment.Engine) (launch.Engine, error)

	// A task of a Slurm job runs pcn sweep itself, with these two:
	cells string // file with the cells of all tasks
	task  int    // its number
}

func newSweep(
	newEngine func(engineFlags, experiment.Engine) (launch.Engine, error),
) *cobra.Command {
	f := sweepFlags{newEngine: newEngine}
	c := &cobra.Command{
		Use:   "sweep SWEEP",
		Short: "Run an experiment over schemes, parameters and seeds, with confidence intervals",
		Long: fmt.Sprintf(`Run a sweep, by its name or the path of its file: every scheme with
every combination of parameters and every seed, on all CPUs or as a Slurm job array. Finished runs
are kept: to continue after an interruption, or to add seeds to the file, run the same command
again.

Sweeps that come with pcn: %s.`, strings.Join(sweeps.Names(), ", ")),
		Example: `  pcn sweep hol-burst
  pcn sweep my.yaml --out runs/mine
  pcn sweep hol-burst --engine sim
  pcn sweep my.yaml --out runs/mine --on slurm --sbatch --partition=short`,
		Args: oneOf("a sweep: a name, such as hol-burst, or the path of a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := sweeps.LoadWith(args[0], experiment.Options{Compile: compileOwn})
			if err != nil {
				return err
			}
			if err := f.where.check(); err != nil {
				return err
			}
			f.out = cmp.Or(f.out, filepath.Join("runs", "sweep-"+s.Name))
			return f.run(cmd, s, args[0])
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.out, "out", "",
		"folder for the results, also to continue in (default: runs/sweep-NAME)")
	f.where.add(flags)
	f.engine.add(flags)
	flags.BoolVar(&f.watch, "watch", false, watchHelp)
	flags.BoolVar(&f.asJSON, "json", false, "print JSON: all means, bounds and invalid runs")
	flags.BoolVar(&f.yes, "yes", false, yesHelp)
	flags.BoolVar(&f.dryRun, "dry-run", false,
		"only list the runs, and which of them are finished")
	flags.StringVar(&f.cells, "cells", "", "in a Slurm task: file with the runs of all tasks")
	flags.IntVar(&f.task, "task", 0, "in a Slurm task: its number")
	for _, name := range []string{"cells", "task"} {
		_ = flags.MarkHidden(name) // fails only for flags that do not exist
	}
	return c
}

func (f sweepFlags) run(cmd *cobra.Command, s *sweep.Sweep, file string) error {
	start := time.Now()
	var bar shower // once it is known how many runs there are
	o := sweep.Options{Sweep: s, Out: f.out, Waiting: printWaiting(cmd),
		Progress: func(run string, done float64) { bar.set(run, done) }}
	var err error
	if f.cells != "" {
		if o.Only, err = sweep.TaskCells(f.cells, f.task, f.where.pack); err != nil {
			return err
		}
		o.Parallel = sweep.TaskCPUs()
	}
	if o.Engine, err = f.newEngine(f.engine, s.Engine()); err != nil {
		return err
	}
	r, err := sweep.NewRunner(o)
	if err != nil {
		return err
	}
	bar = newShower(cmd.ErrOrStderr(), s.Name, len(r.Cells()), f.watch, o.Engine)
	switch {
	case f.dryRun:
		return listCells(cmd.OutOrStdout(), s, r)
	case f.cells != "":
		return r.Run(cmd.Context())
	}
	if err := f.confirm(cmd, s, r, launch.Emulates(o.Engine)); err != nil {
		return err
	}
	lock, err := r.Lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	err = f.runUnfinished(cmd.Context(), cmd.ErrOrStderr(), r, file)
	bar.finish()
	if err != nil {
		return err
	}
	res, err := r.Collect()
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if f.asJSON {
		if err := printJSON(w, sweptOf(res)); err != nil {
			return err
		}
		return exitWith(summariseSweep(io.Discard, res))
	}
	code := summariseSweep(w, res)
	if err := printTotal(w, start, filepath.Join(f.out, sweep.ReportFile)); err != nil {
		return err
	}
	return exitWith(code)
}

// confirm says how long the unfinished runs take on this machine, and asks, if that is long.
func (f sweepFlags) confirm(
	cmd *cobra.Command, s *sweep.Sweep, r *sweep.Runner, emulated bool,
) error {
	if f.where.on == onSlurm {
		return nil
	}
	unfinished, err := r.Unfinished()
	if err != nil {
		return err
	}
	engine := cmp.Or(experiment.Engine(f.engine.name), s.Engine())
	costs := map[int]time.Duration{} // of a run, by point
	var cost time.Duration
	for _, c := range unfinished {
		if _, known := costs[c.Point]; !known {
			costs[c.Point] = experiments.Cost(s.Points[c.Point].Experiment, engine, emulated, 1)
		}
		cost += costs[c.Point]
	}
	return confirmLong(cmd, len(unfinished), cost, f.yes)
}

func (f sweepFlags) runUnfinished(
	ctx context.Context, stderr io.Writer, r *sweep.Runner, file string,
) error {
	if f.where.on == onSlurm {
		return f.runOnSlurm(ctx, stderr, r, file)
	}
	if err := r.Clean(); err != nil {
		return err
	}
	return r.Run(ctx)
}

func (f sweepFlags) runOnSlurm(
	ctx context.Context, stderr io.Writer, r *sweep.Runner, file string,
) error {
	s := f.where.slurm(stderr)
	s.File, s.Engine = file, f.engine.name
	err := r.RunOnSlurm(ctx, s)
	if err != nil && ctx.Err() != nil {
		// After an interruption main prints no error, but this one says what happens to the job.
		fmt.Fprintf(stderr, "pcn: %v\n", err)
	}
	return err
}

// listCells prints a row for each run.
func listCells(w io.Writer, s *sweep.Sweep, r *sweep.Runner) error {
	unfinished, err := r.Unfinished()
	if err != nil {
		return err
	}
	todo := map[string]bool{}
	for _, c := range unfinished {
		todo[c.ID] = true
	}
	t := newTable(w)
	fmt.Fprintln(t, "point\tscheme\tseed\tfolder\tfinished")
	for _, c := range r.Cells() {
		finished := "yes"
		if todo[c.ID] {
			finished = "no"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n",
			s.Points[c.Point].Label(), c.Scheme, c.Seed, c.ID, finished)
	}
	t.Flush()
	fmt.Fprintf(w, "%d runs, %d to do\n", len(r.Cells()), len(unfinished))
	return nil
}

// summariseSweep prints means, checked bounds and invalid runs. It returns the exit code.
func summariseSweep(w io.Writer, res *sweep.Results) int {
	printMeans(w, res)
	code := printBounds(w, res)
	fmt.Fprintln(w)
	for _, row := range res.Rows {
		for _, reason := range row.Reasons {
			fmt.Fprintf(w, "INVALID: %s: %s\n", row.ID, reason)
			code = exitInvalid
		}
	}
	return code
}

func printMeans(w io.Writer, res *sweep.Results) {
	s := res.Sweep
	t := newTable(w)
	fmt.Fprint(t, "point\tscheme\truns")
	for _, m := range s.Metrics {
		fmt.Fprintf(t, "\t%s", m.Name)
	}
	fmt.Fprintln(t)
	for _, g := range res.Groups {
		fmt.Fprintf(t, "%s\t%s\t%d", s.Points[g.Point].Label(), g.Scheme, g.Runs)
		for i := range s.Metrics {
			fmt.Fprintf(t, "\t%s", res.Format(g, i))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	fmt.Fprintln(w, "mean ± 95% confidence interval, over the seeds")
}

// printBounds prints a row for each mean that the file sets a bound for. It returns the exit code.
func printBounds(w io.Writer, res *sweep.Results) int {
	outcomes := res.Outcomes()
	if len(outcomes) == 0 {
		return 0
	}
	code := 0
	fmt.Fprintln(w)
	t := newTable(w)
	fmt.Fprintln(t, "\tmetric\tpoint\tscheme\tmean\tbound")
	for _, o := range outcomes {
		point := res.Sweep.Points[o.Group.Point]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
			formatPass(o.Pass), o.Metric, point.Label(), o.Group.Scheme, o.Mean, o.Bound)
		if !o.Pass {
			code = exitExpect
		}
	}
	t.Flush()
	return code
}
