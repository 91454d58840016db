// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// changes are the flags that change values of the experiment file.
type changes struct {
	algos    []string
	cases    []string
	seed     uint64
	seeds    string
	duration string
	dilation uint
	watch    bool
}

func newRun() *cobra.Command {
	var (
		change changes
		o      launch.Options
		engine engineFlags
		asJSON bool
		trace  string
		yes    bool
		twice  bool
	)
	c := &cobra.Command{
		Use:   "run EXPERIMENT",
		Short: "Run an experiment, by name (pcn list) or by the path of its file",
		Long: fmt.Sprintf(`Run every scheme of an experiment in each of its cases, and check the
results against the expectations in the file. Before runs that take more than 3 minutes it says how
long they take, and on a terminal it asks.

Schemes: %s.
Congestion controls of Linux, as baselines:
%s.`,
			strings.Join(scheme.Builtin().Names(), ", "),
			strings.Join(scheme.KernelControls(), ", ")),
		Example: `  pcn run hol                          Fig. 2 of the PCN paper
  pcn run hol --algo pcn --seed 7      one scheme with another random seed
  pcn run hol --algo pcn,bbr           with a baseline that the file does not list
  pcn run hol --algo ./mine.c,pcn      your own control: pcn scheme new mine
  pcn run hol --engine sim             simulate it: seconds in place of minutes
  pcn run hol --engine sim --seeds 1..100
  pcn run hol --engine sim --watch     queues, PAUSE and rates as they come
  pcn run hol --engine kernel,sim      both, and a table of what differs by how much
  pcn run my.yaml --out runs/mine
  pcn run big.yaml --engine sim --out runs/big --checkpoint 10m
                                       after an interruption, the same again goes on
  pcn run my.yaml --twice              do its programs give the same bytes again?`,
		Args: oneOf("an experiment: a name of pcn list, such as hol, or the path of a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := loadExperiment(cmd.Context(), args[0], change.algos)
			if err != nil {
				return err
			}
			printWarnings(cmd, e)
			if o.Experiment, err = change.apply(e, cmd.Flags().Changed); err != nil {
				return usageError{err}
			}
			seeds, err := change.chooseSeeds(o.Experiment, cmd.Flags().Changed)
			if err != nil {
				return usageError{err}
			}
			if twice && (asJSON || len(seeds) > 0) {
				return usageError{errors.New("--twice runs one seed, and prints no JSON: " +
					"leave out --json and --seeds, or use pcn rerun --json")}
			}
			printOffers(cmd, o.Experiment)
			engine.runs = launch.Count(o.Experiment) * max(len(seeds), 1)
			engines, err := engine.openAll(o.Experiment.Engine)
			if err != nil {
				return err
			}
			if o.Packets, err = tracesPackets(trace, engines, seeds); err != nil {
				return usageError{err}
			}
			if o.Checkpoints, err = engine.savesRuns(trace, o.Out, seeds); err != nil {
				return usageError{err}
			}
			cost := costOf(o.Experiment, engines, engine.runs)
			if err := confirmLong(cmd, len(engines)*engine.runs, cost, yes); err != nil {
				return err
			}
			o.Engine = engines[0].Engine
			if o.Out == "" {
				o.Out = filepath.Join("runs", e.Name+"-"+time.Now().Format("20060102-150405"))
			}
			if len(seeds) > 0 {
				return runSeeds(cmd, o, engines, seeds, asJSON, change.watch)
			}
			err = runExperiment(cmd, o, engines, asJSON, change.watch)
			if _, ran := errors.AsType[exitCode](err); twice && (err == nil || ran) {
				return errors.Join(runAgainAndCompare(cmd, o), err)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringSliceVar(&change.algos, "algo", nil,
		"schemes to run, see above (default: the experiment's)")
	f.StringSliceVar(&change.cases, "case", nil,
		"cases of the experiment to run (default: all)")
	f.Uint64Var(&change.seed, "seed", 0,
		"seed of all random choices (default: the experiment's)")
	f.StringVar(&change.seeds, "seeds", "",
		"run with each of these seeds, such as 1..100, and print medians with 95% intervals")
	f.StringVar(&change.duration, "duration", "",
		"end of the run, in the paper's time from t = 0, such as 15ms (default: the experiment's)")
	f.UintVar(&change.dilation, "dilation", 0,
		"run 2^N times slower than the paper's time, N = 0 to 16 (default: the experiment's)")
	f.BoolVar(&change.watch, "watch", false, watchHelp)
	engine.add(f)
	f.BoolVar(&engine.native, "native", false,
		"run on this machine's kernel: needs root and CONFIG_NET_SCH_BPF (6.16+)")
	f.BoolVar(&engine.realTime, "real-time", false,
		"run microVMs in real time (KVM) if possible: faster, but not reproducible")
	f.UintVar(&engine.threads, "threads", 0,
		"cores that one simulated run may use; results are the same bytes (default: those that "+
			"no other run needs, up to 8, in large networks)")
	f.DurationVar(&engine.checkpoint, "checkpoint", 0,
		"save simulated runs as often as this, such as 10m, in the folder --out: interrupted, the "+
			"same command goes on, to the same bytes")
	f.StringVar(&trace, "trace", "",
		"packets: write what happens to each packet at each port, as CSV and for Wireshark; "+
			"simulated runs only")
	f.BoolVar(&twice, "twice", false,
		"run again, and name the first byte of each file that differs")
	f.BoolVar(&yes, "yes", false, yesHelp)
	f.BoolVar(&asJSON, "json", false,
		"print what "+jsonout.ExpectationsFile+" in the folder of results has")
	f.StringVar(&o.Out, "out", "",
		"folder for the results (default: runs/EXPERIMENT-TIME)")
	return c
}

// tracesPackets reports whether runs are to be traced; it fails if they can't be.
func tracesPackets(
	trace string, engines []launch.Named, seeds experiment.Seeds,
) (bool, error) {
	switch {
	case trace == "":
		return false, nil
	case trace != "packets":
		return false, fmt.Errorf("invalid --trace %q: want packets", trace)
	case len(seeds) > 0:
		return false, errors.New("--trace traces one seed: give --seed N in place of several")
	}
	for _, e := range engines {
		if e.Name != experiment.EngineSim {
			return false, fmt.Errorf("engine %s traces no packets: run with --engine sim", e.Name)
		}
	}
	return true, nil
}

// savesRuns reports whether runs have checkpoints; it fails if they can't have any.
func (e engineFlags) savesRuns(trace, out string, seeds experiment.Seeds) (bool, error) {
	switch {
	case e.checkpoint == 0:
		return false, nil
	case e.checkpoint < 0:
		return false, fmt.Errorf("invalid --checkpoint %s: want a time such as 10m", e.checkpoint)
	case out == "":
		return false, errors.New("--checkpoint goes on in a folder of results: give --out DIR too")
	case trace != "":
		return false, errors.New("--checkpoint and --trace: a trace has no checkpoints, " +
			"choose one")
	case len(seeds) > 0:
		return false, errors.New("--checkpoint is for one seed: give --seed N in place of " +
			"several, or write a sweep, which keeps the runs that have ended (pcn sweep)")
	}
	return true, nil
}

// costOf returns how long one CPU is expected to take for so many runs on each of the engines.
func costOf(e *experiment.Experiment, engines []launch.Named, runs int) (cost time.Duration) {
	for _, engine := range engines {
		cost += experiments.Cost(e, engine.Name, launch.Emulates(engine.Engine), runs)
	}
	return cost
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

// apply changes the values whose flags were given.
func (c changes) apply(
	e *experiment.Experiment, given func(flag string) bool,
) (*experiment.Experiment, error) {
	var with experiment.Changes
	if given("algo") {
		with.Schemes = c.algos
	}
	if given("case") {
		with.Cases = c.cases
	}
	if given("seed") {
		with.Seed = &c.seed
	}
	if given("dilation") {
		with.Dilation = &c.dilation
	}
	if given("duration") {
		d, err := config.ParseDuration(c.duration)
		if err != nil {
			return nil, fmt.Errorf("--duration: %w", err)
		}
		with.Duration = &d
	}
	return e.With(with)
}

func runExperiment(
	cmd *cobra.Command, o launch.Options, engines []launch.Named, asJSON, watch bool,
) error {
	start := time.Now()
	bar := newShower(cmd.ErrOrStderr(), o.Experiment.Name,
		len(engines)*launch.Count(o.Experiment), watch, enginesOf(engines)...)
	o.Progress, o.Waiting = bar.set, printWaiting(cmd)
	runs, err := launch.RunEngines(cmd.Context(), o, engines)
	bar.finish()
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	group := report.Group{Experiment: o.Experiment, Runs: runs}
	if asJSON {
		if err := printJSON(w, launch.OutcomesOf(group)); err != nil {
			return err
		}
		return exitWith(summarise(io.Discard, []report.Group{group}))
	}
	code := summarise(w, []report.Group{group})
	if err := printTotal(w, start, filepath.Join(o.Out, launch.ReportFile)); err != nil {
		return err
	}
	return exitWith(code)
}

// runAgainAndCompare repeats the runs of a folder, and says where programs may differ from.
func runAgainAndCompare(cmd *cobra.Command, o launch.Options) error {
	fmt.Fprintln(cmd.OutOrStdout(), "\nAgain:")
	err := rerun(cmd, o.Out, "", false)
	if _, differ := errors.AsType[exitCode](err); differ && len(o.Experiment.Programs) > 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "pcn: what makes programs differ: the CPU's counter "+
			"(rdtsc) and CPUID, files of this machine that changed, and threads that race without "+
			"the kernel: docs/programs.md")
	}
	return err
}

// printWarnings prints what the files of an experiment have that may not be meant.
func printWarnings(cmd *cobra.Command, e *experiment.Experiment) {
	for _, warning := range e.Warnings() {
		fmt.Fprintf(cmd.ErrOrStderr(), "pcn: warning: %s\n", warning)
	}
}

// printOffers says what the workloads of an experiment offer.
func printOffers(cmd *cobra.Command, e *experiment.Experiment) {
	for _, offer := range e.Offers() {
		fmt.Fprintf(cmd.ErrOrStderr(), "pcn: %s\n", offer)
	}
}

// printWaiting returns a function to call when microVMs have to wait for a CPU.
func printWaiting(cmd *cobra.Command) func() {
	return func() {
		fmt.Fprintln(cmd.ErrOrStderr(),
			"pcn: other microVMs of this machine use every CPU: waiting for one")
	}
}

// printTotal prints the time since start, the CPU time, and the path of the report.
func printTotal(w io.Writer, start time.Time, report string) error {
	cpu, err := cpuTime()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "total: %.0f s, %.0f s of CPU\n", time.Since(start).Seconds(), cpu.Seconds())
	fmt.Fprintf(w, "\nReport: %s\n", report)
	return nil
}

// cpuTime returns the CPU time of this process and of the microVMs that have ended.
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
