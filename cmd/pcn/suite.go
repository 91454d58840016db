// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/suite"
	"github.com/pcn-linux/pcn/netns-lab/suites"
)

func newSuite() *cobra.Command {
	c := &cobra.Command{
		Use:   "suite",
		Short: "Say whether a kernel's TCP does what a reference kernel's does",
		Long: `Run a suite of experiments on kernels of your own (pcn kernel build), and say whether
TCP does the same on both: the same bytes, or metrics within what the reference's seeds come to.`,
	}
	c.AddCommand(newSuiteRun(), newSuiteCompare(), newSuitePage())
	return c
}

// suiteRun is a call of pcn suite run.
type suiteRun struct {
	kernel, against, out, seeds string
	only, algo                  []string
	failFast                    bool
	newEngine                   func(kernel string) (launch.Engine, error)
	w, progress                 io.Writer
}

func newSuiteRun() *cobra.Command {
	r := suiteRun{newEngine: func(kernel string) (launch.Engine, error) {
		return launch.NewMicroVMs(kernel, false)
	}}
	c := &cobra.Command{
		Use:   "run SUITE",
		Short: "Run a suite on a kernel, and compare it with a reference",
		Long: fmt.Sprintf(`Run a suite, by name or as a folder of experiments, on a kernel.

Without --against all seeds are run: this is what a reference needs. With it, each run is first made
with one seed. Where the bytes are the reference's, TCP does the same, and the other seeds are left
out. Where they are not, each metric is judged, as pcn suite compare says. With --fail-fast that
ends at the first run that has changed.

Suites that come with pcn: %s.`, strings.Join(suites.Names(), ", ")),
		Example: `  pcn suite run tcp --kernel 7.3.4 --out runs/reference
  pcn suite run tcp --kernel mine --against runs/reference
  pcn suite run tcp --kernel mine --against runs/reference --algo cubic --fail-fast`,
		Args: oneOf("a suite: a name, such as tcp, or a folder, such as ./mine"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.w, r.progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return r.run(cmd.Context(), args[0])
		},
	}
	f := c.Flags()
	f.StringVar(&r.kernel, "kernel", "", "name of the kernel (default: the one of pcn setup)")
	f.StringVar(&r.against, "against", "", "folder with the results of the reference kernel")
	f.StringVar(&r.out, "out", "", "folder for the results (default: runs/SUITE-KERNEL)")
	f.StringSliceVar(&r.only, "only", nil, "experiments to run, by their names (default: all)")
	f.StringSliceVar(&r.algo, "algo", nil, "schemes to run (default: all)")
	f.BoolVar(&r.failFast, "fail-fast", false,
		"with --against: end at the first run that has changed")
	f.StringVar(&r.seeds, "seeds", "1..8", "seeds; with --against those of the reference")
	return c
}

func (r suiteRun) run(ctx context.Context, name string) error {
	s, err := suites.Load(name)
	if err != nil {
		return usageError{err}
	}
	o := suite.Options{Suite: s, Kernel: r.kernel, Out: r.out, Only: r.only, Algo: r.algo,
		FailFast: r.failFast}
	if o.Seeds, err = experiment.ParseSeeds(r.seeds); err != nil {
		return usageError{fmt.Errorf("--seeds: %w", err)}
	}
	if r.failFast && r.against == "" {
		return usageError{errors.New("--fail-fast: want --against, a reference to differ from")}
	}
	if r.against != "" {
		if o.Against, err = suite.Read(r.against); err != nil {
			return err
		}
		o.Seeds = o.Against.Seeds()
	}
	o.Out = cmp.Or(o.Out, filepath.Join("runs", strings.TrimRight(s.Name+"-"+r.kernel, "-")))
	if entries, err := os.ReadDir(o.Out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another folder with --out", o.Out)
	}
	if o.Engine, err = r.newEngine(r.kernel); err != nil {
		return err
	}
	bar := newProgress(r.progress, s.Name, 1)
	o.Progress = func(ended, of int) { bar.set(s.Name, float64(ended)/float64(of)) }
	record, err := suite.Execute(ctx, o)
	bar.finish()
	if err != nil {
		return err
	}
	if o.Against == nil {
		return r.printLearnt(record, o.Out)
	}
	return printVerdict(r.w, r.against, o.Against, o.Out, record)
}

// printLearnt says what a reference is made of. One with a run that failed is none.
func (r suiteRun) printLearnt(record *suite.Record, out string) error {
	failed := 0
	for _, run := range record.Runs {
		if why := run.Failure(); why != "" {
			failed++
			fmt.Fprintf(r.w, "FAILED: %s: %s\n", run.Name(), why)
		}
	}
	fmt.Fprintf(r.w, "%d runs with %d seeds on Linux %s: pcn suite run %s --kernel NAME --against "+
		"%s\n", len(record.Runs), len(record.Seeds()), record.Release, record.Suite, out)
	if failed > 0 {
		return exitWith(exitInvalid)
	}
	return nil
}

func newSuiteCompare() *cobra.Command {
	return &cobra.Command{
		Use:   "compare REFERENCE RESULTS",
		Short: "Compare what a suite came to on two kernels",
		Long: fmt.Sprintf(`Compare two folders of pcn suite run: a reference kernel's and another's.

A metric's interval is the range of its values with the reference's seeds, widened at both ends by
%g%% of their median. A metric has changed if its values with all seeds, at least %d, are on one
side of the interval. It is within if their median is in the interval. Else it can't be told.

Exits with %d if a metric has changed or a run fails, with %d if only bytes differ.`,
			100*suite.Margin, suite.LeastSeeds, exitExpect, exitDiffer),
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			reference, err := suite.Read(dirs[0])
			if err != nil {
				return err
			}
			record, err := suite.Read(dirs[1])
			if err != nil {
				return err
			}
			return printVerdict(cmd.OutOrStdout(), dirs[0], reference, dirs[1], record)
		},
	}
}

// printVerdict says what a kernel came to, and with which exit code that ends.
func printVerdict(
	w io.Writer, of string, reference *suite.Record, dir string, record *suite.Record,
) error {
	v, err := suite.Compare(reference, record)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Linux %s (%.12s) beside %s (%.12s)\n", record.Kernel, record.KernelSHA256,
		reference.Kernel, reference.KernelSHA256)
	fmt.Fprintf(w, "the same bytes: %d of %d runs, %d of %d flows\n", v.Same, v.Runs, v.SameFlows,
		v.Flows)
	for _, run := range v.Differ {
		printRun(w, run, firstDifference(filepath.Join(of, run.Name()),
			filepath.Join(dir, run.Name())))
	}
	switch {
	case v.Failed > 0:
		fmt.Fprintf(w, "CHANGED: %d runs fail\n", v.Failed)
		return exitWith(exitExpect)
	case v.Changed > 0:
		fmt.Fprintf(w, "CHANGED: %d metrics, %d can't be told\n", v.Changed, v.CantTell)
		return exitWith(exitExpect)
	case v.CantTell > 0:
		fmt.Fprintf(w, "CAN'T TELL: no metric has changed, %d can't be told\n", v.CantTell)
		return exitWith(exitDiffer)
	case len(v.Differ) > 0:
		fmt.Fprintln(w, "WITHIN: bytes differ, but no metric leaves its interval")
		return exitWith(exitDiffer)
	}
	fmt.Fprintln(w, "SAME")
	return nil
}

func printRun(w io.Writer, run suite.RunVerdict, first string) {
	fmt.Fprintf(w, "%s: %d of %d flows the same, %d seeds\n", run.Name(), len(run.SameFlows),
		run.Flows, len(run.Seeds))
	if run.Failed != "" {
		fmt.Fprintf(w, "  FAILED: %s\n", run.Failed)
	}
	if first != "" {
		fmt.Fprintf(w, "  first: %s\n", first)
	}
	t := newTable(w)
	for _, m := range run.Metrics {
		outcome := string(m.Outcome)
		if m.Outcome != suite.Within {
			outcome = strings.ToUpper(outcome)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", m.Metric, outcome, m.Text())
	}
	_ = t.Flush() // the writer of a command's output
}

// firstDifference returns the first difference in time of two runs; "" if a folder lacks the run.
func firstDifference(a, b string) string {
	runA, err1 := result.Read(a)
	runB, err2 := result.Read(b)
	if errors.Join(err1, err2) != nil {
		return ""
	}
	all := result.Diff(runA, runB)
	i := slices.IndexFunc(all, func(d result.Difference) bool { return d.AtNs != nil })
	if i < 0 {
		return ""
	}
	return all[i].String()
}

func newSuitePage() *cobra.Command {
	return &cobra.Command{
		Use:   "page REFERENCE RESULTS...",
		Short: "Write what a suite came to on kernels as a page, in Markdown",
		Long: `Write kernels by controls by metrics as a page, in Markdown, from folders of
pcn suite run. The first is the reference.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			var records []*suite.Record
			for _, dir := range dirs {
				r, err := suite.Read(dir)
				if err != nil {
					return err
				}
				records = append(records, r)
			}
			return suite.WritePage(cmd.OutOrStdout(), records[0], records[1:])
		},
	}
}
