// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/sweep"
	"github.com/pcn-linux/pcn/netns-lab/sweeps"
)

// Engines of a sweep.
const (
	engineLocal = "local"
	engineSlurm = "slurm"
)

// sweepFlags are those of pcn sweep.
type sweepFlags struct {
	out, engine string
	dryRun      bool
	sbatch      []string
	pack        int
	cells       string // of a task: the list of all tasks' cells
	task        int    // of a task: its number

	newEngine func() (launch.Engine, error)
}

// newMicroVMs returns the engine of sweeps: its results can be reproduced.
func newMicroVMs() (launch.Engine, error) { return newEngine(false, false) }

func newSweep(newEngine func() (launch.Engine, error)) *cobra.Command {
	f := sweepFlags{newEngine: newEngine}
	c := &cobra.Command{
		Use:   "sweep SWEEP",
		Short: "Run an experiment over schemes, parameters and seeds, with confidence intervals",
		Long: fmt.Sprintf(`Run a sweep, by its name or the path of its file: every scheme with every combination of parameters and every seed, on
all CPUs or as a Slurm job array. A run that is finished is never run again: call it again after it was stopped, or
with more seeds in the file.

Sweeps that come along: %s.`, strings.Join(sweeps.Names(), ", ")),
		Example: `  pcn sweep hol-burst
  pcn sweep my.yaml --out runs/mine
  pcn sweep my.yaml --out runs/mine --engine slurm --sbatch --partition=short`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := sweeps.Load(args[0])
			if err != nil {
				return err
			}
			if f.engine != engineLocal && f.engine != engineSlurm {
				return usageError{fmt.Errorf("--engine %q is neither %s nor %s", f.engine, engineLocal, engineSlurm)}
			}
			if f.pack < 0 {
				return usageError{fmt.Errorf("--pack %d is less than 0", f.pack)}
			}
			if f.out == "" {
				f.out = filepath.Join("runs", "sweep-"+s.Name)
			}
			return f.run(cmd, s, args[0])
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.out, "out", "", "folder for the results, and to go on in (default: runs/sweep-NAME)")
	flags.StringVar(&f.engine, "engine", engineLocal, "where to run: local, or slurm, as a job array")
	flags.BoolVar(&f.dryRun, "dry-run", false, "list the runs, and which are finished, and do nothing")
	flags.StringArrayVar(&f.sbatch, "sbatch", nil, "argument for Slurm's sbatch, such as --partition=short; once for each")
	flags.IntVar(&f.pack, "pack", 0, "runs a task of the job array, 0: up to 8")
	flags.StringVar(&f.cells, "cells", "", "of a task: list of the runs of all tasks")
	flags.IntVar(&f.task, "task", 0, "of a task: its number")
	for _, name := range []string{"cells", "task"} {
		// the flag is there: hiding it can't fail
		_ = flags.MarkHidden(name)
	}
	return c
}

func (f sweepFlags) run(cmd *cobra.Command, s *sweep.Sweep, file string) error {
	began := time.Now()
	bar := newProgress(cmd.ErrOrStderr(), s.Name, 0)
	o := sweep.Options{Sweep: s, Out: f.out, Progress: bar.set, Waiting: sayWaiting(cmd)}
	var err error
	if f.cells != "" {
		if o.Only, err = sweep.TaskCells(f.cells, f.task, f.pack); err != nil {
			return err
		}
		o.Parallel = sweep.TaskCPUs()
	}
	if o.Engine, err = f.newEngine(); err != nil {
		return err
	}
	r, err := sweep.NewRunner(o)
	if err != nil {
		return err
	}
	bar.of = len(r.Cells())
	switch {
	case f.dryRun:
		return listCells(cmd.OutOrStdout(), s, r)
	case f.cells != "":
		return r.Run(cmd.Context())
	}
	lock, err := r.Lock()
	if err != nil {
		return err
	}
	defer lock.Release() // nothing was written to it
	err = f.runAll(cmd.Context(), cmd.ErrOrStderr(), r, file)
	bar.finish()
	if err != nil {
		return err
	}
	res, err := r.Collect()
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	code := summariseSweep(w, res)
	if err := printTotal(w, began, filepath.Join(f.out, sweep.ReportFile)); err != nil {
		return err
	}
	return exitWith(code)
}

// runAll runs what is not finished.
func (f sweepFlags) runAll(ctx context.Context, stderr io.Writer, r *sweep.Runner, file string) error {
	if f.engine == engineSlurm {
		err := r.RunOnSlurm(ctx, sweep.Slurm{File: file, Pack: f.pack, Args: f.sbatch, Submitted: func(job string, tasks int) {
			if tasks == 0 {
				fmt.Fprintf(stderr, "pcn: waiting for job %s, which is in the queue already\n", job)
				return
			}
			fmt.Fprintf(stderr, "pcn: submitted job %s of %d tasks\n", job, tasks)
		}})
		if err != nil && ctx.Err() != nil {
			fmt.Fprintf(stderr, "pcn: %v\n", err) // what becomes of the job
		}
		return err
	}
	if err := r.Clean(); err != nil {
		return err
	}
	return r.Run(ctx)
}

// listCells prints a row for each run.
func listCells(w io.Writer, s *sweep.Sweep, r *sweep.Runner) error {
	left, err := r.Unfinished()
	if err != nil {
		return err
	}
	todo := map[string]bool{}
	for _, c := range left {
		todo[c.ID] = true
	}
	t := newTable(w)
	fmt.Fprintln(t, "point\tscheme\tseed\tfolder\tfinished")
	for _, c := range r.Cells() {
		finished := "yes"
		if todo[c.ID] {
			finished = "no"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", s.Points[c.Point].Label(), c.Scheme, c.Seed, c.ID, finished)
	}
	t.Flush()
	fmt.Fprintf(w, "%d runs, %d to do\n", len(r.Cells()), len(left))
	return nil
}

// summariseSweep prints the means of all metrics, what is held against bounds, and what is invalid. Returns the exit code.
func summariseSweep(w io.Writer, res *sweep.Results) int {
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
			fmt.Fprintf(t, "\t%s", res.InWords(g, i))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	fmt.Fprintln(w, "mean ± 95% confidence interval, over the seeds")
	code := 0
	if outcomes := res.Outcomes(); len(outcomes) > 0 {
		fmt.Fprintln(w)
		t := newTable(w)
		fmt.Fprintln(t, "\tmetric\tpoint\tscheme\tmean\tbound")
		for _, o := range outcomes {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", markOf(o.Pass), o.Metric, s.Points[o.Group.Point].Label(), o.Group.Scheme, o.Mean, o.Bound)
			if !o.Pass {
				code = exitExpect
			}
		}
		t.Flush()
	}
	fmt.Fprintln(w)
	for _, row := range res.Rows {
		for _, reason := range row.Reasons {
			fmt.Fprintf(w, "INVALID: %s: %s\n", row.ID, reason)
			code = exitInvalid
		}
	}
	return code
}
