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
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/report"
)

// changes are the flags that change an experiment.
type changes struct {
	algos    []string
	cases    []string
	seed     uint64
	duration string
	dilation uint
}

func newRun() *cobra.Command {
	var (
		change           changes
		o                launch.Options
		native, realTime bool
	)
	c := &cobra.Command{
		Use:   "run EXPERIMENT",
		Short: "Run an experiment, by its name (pcn list) or the path of its file",
		Long: fmt.Sprintf(`Run the schemes of an experiment, in each of its cases, and hold them against what the file expects.

Schemes: %s.
Baselines, congestion controls of Linux:
%s.`,
			strings.Join(scheme.Builtin().Names(), ", "), strings.Join(scheme.KernelControls(), ", ")),
		Example: `  pcn run hol                          Fig. 2 of the PCN paper
  pcn run hol --algo pcn --seed 7      one scheme, other random choices
  pcn run hol --algo pcn,bbr           a baseline that the file does not list
  pcn run hol --algo ./mine.c,pcn      your own control: pcn scheme new mine
  pcn run my.yaml --out runs/mine`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := loadExperiment(cmd.Context(), args[0], change.algos)
			if err != nil {
				return err
			}
			if o.Experiment, err = change.apply(e, cmd.Flags().Changed); err != nil {
				return usageError{err}
			}
			if o.Engine, err = newEngine(native, realTime); err != nil {
				return err
			}
			if o.Out == "" {
				o.Out = filepath.Join("runs", e.Name+"-"+time.Now().Format("20060102-150405"))
			}
			return runExperiment(cmd, o)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&change.algos, "algo", nil, "schemes to run, see above (default: the experiment's)")
	f.StringSliceVar(&change.cases, "case", nil, "cases to run, of those of the experiment (default: all)")
	f.Uint64Var(&change.seed, "seed", 0, "start of all random choices (default: the experiment's)")
	f.StringVar(&change.duration, "duration", "", "time after t = 0, in the paper's time, such as 15ms (default: the experiment's)")
	f.UintVar(&change.dilation, "dilation", 0, "binary logarithm of how much slower than the paper's time to run (default: the experiment's)")
	f.BoolVar(&native, "native", false, "run on this kernel: needs root and CONFIG_NET_SCH_BPF (6.16+)")
	f.BoolVar(&realTime, "real-time", false, "let microVMs run by the clock (KVM) if they can: faster, not reproducible")
	f.StringVar(&o.Out, "out", "", "folder for the results (default: runs/EXPERIMENT-TIME)")
	return c
}

// loadExperiment loads an experiment, with the schemes among the algorithms that are files of the user's own,
// which it replaces by their names.
func loadExperiment(ctx context.Context, nameOrPath string, algos []string) (*experiment.Experiment, error) {
	own := map[string]scheme.Own{}
	for i, name := range algos {
		if !isOwnFile(name) {
			continue
		}
		compiled, err := compileOwn(ctx, name)
		if err != nil {
			return nil, err
		}
		_, s, err := scheme.Builtin().With(compiled)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		own[name], algos[i] = compiled, s.Name
	}
	return experiments.LoadWith(nameOrPath, experiment.Options{Compile: compileOwn, Own: own})
}

// newEngine returns the engine that the flags ask for.
func newEngine(native, realTime bool) (launch.Engine, error) {
	if native {
		return launch.NewNative()
	}
	return launch.NewMicroVMs(realTime)
}

// apply makes the changes whose flags were given.
func (c changes) apply(e *experiment.Experiment, given func(flag string) bool) (*experiment.Experiment, error) {
	var o experiment.Override
	if given("algo") {
		o.Schemes = c.algos
	}
	if given("case") {
		o.Cases = c.cases
	}
	if given("seed") {
		o.Seed = &c.seed
	}
	if given("dilation") {
		o.Dilation = &c.dilation
	}
	if given("duration") {
		d, err := experiment.ParseDuration(c.duration)
		if err != nil {
			return nil, fmt.Errorf("--duration: %w", err)
		}
		o.Duration = &d
	}
	return e.Override(o)
}

func runExperiment(cmd *cobra.Command, o launch.Options) error {
	began := time.Now()
	bar := newProgress(cmd.ErrOrStderr(), o.Experiment.Name, launch.Count(o.Experiment))
	o.Progress, o.Waiting = bar.set, sayWaiting(cmd)
	runs, err := launch.Run(cmd.Context(), o)
	bar.finish()
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	code := summarise(w, []report.Group{{Experiment: o.Experiment, Runs: runs}})
	if err := printTotal(w, began, filepath.Join(o.Out, launch.ReportFile)); err != nil {
		return err
	}
	return exitWith(code)
}

// sayWaiting returns what says that microVMs wait for a CPU.
func sayWaiting(cmd *cobra.Command) func() {
	return func() {
		fmt.Fprintln(cmd.ErrOrStderr(), "pcn: every CPU is taken by another microVM of this machine: waiting for one")
	}
}

// printTotal prints what all runs cost, and where their report is.
func printTotal(w io.Writer, began time.Time, report string) error {
	cpu, err := cpuTime()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "total: %.0f s, %.0f s of CPU\n", time.Since(began).Seconds(), cpu.Seconds())
	fmt.Fprintf(w, "\nReport: %s\n", report)
	return nil
}

// cpuTime is what this process and the microVMs that have ended spent on all CPUs.
func cpuTime() (time.Duration, error) {
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			return 0, fmt.Errorf("get the CPU time: %w", err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total, nil
}
