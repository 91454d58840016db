// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pcn/netns-lab/experiment"
	"pcn/netns-lab/experiments"
	"pcn/netns-lab/launch"
	"pcn/netns-lab/result"
)

func newRun() *cobra.Command {
	var (
		algos    []string
		seed     uint64
		duration string
		dilation uint
		native   bool
		realTime bool
		out      string
	)
	c := &cobra.Command{
		Use:   "run EXPERIMENT",
		Short: "Run an experiment, by its name (pcn list) or the path of its file",
		Example: `  pcn run hol                          Fig. 2 of the PCN paper
  pcn run hol --algo pcn --seed 7      one scheme, other random choices
  pcn run my.yaml --out runs/mine`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := experiments.Load(args[0])
			if err != nil {
				return err
			}
			var o experiment.Override
			flags := cmd.Flags()
			if flags.Changed("algo") {
				o.Schemes = algos
			}
			if flags.Changed("seed") {
				o.Seed = &seed
			}
			if flags.Changed("dilation") {
				o.Dilation = &dilation
			}
			if flags.Changed("duration") {
				d, err := experiment.ParseDuration(duration)
				if err != nil {
					return usageError{fmt.Errorf("--duration: %w", err)}
				}
				o.Duration = &d
			}
			if e, err = e.Override(o); err != nil {
				return usageError{err}
			}
			if out == "" {
				out = filepath.Join("runs", e.Name+"-"+time.Now().Format("20060102-150405"))
			}
			bar := newProgress(cmd.ErrOrStderr(), e.Name, e.Schemes)
			runs, err := launch.Run(cmd.Context(), launch.Options{
				Experiment: e, Out: out, Native: native, RealTime: realTime, Progress: bar.set,
			})
			bar.finish()
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			code := summarise(w, e, runs)
			fmt.Fprintf(w, "\nReport: %s\n", filepath.Join(out, launch.ReportFile))
			if code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringSliceVar(&algos, "algo", nil, "schemes to run, of those of the experiment (pfc,pcn)")
	f.Uint64Var(&seed, "seed", 0, "start of all random choices (default: the experiment's)")
	f.StringVar(&duration, "duration", "", "time after t = 0, in the paper's time, such as 15ms (default: the experiment's)")
	f.UintVar(&dilation, "dilation", 0, "binary logarithm of how much slower than the paper's time to run (default: the experiment's)")
	f.BoolVar(&native, "native", false, "run on this kernel: needs root and CONFIG_NET_SCH_BPF (6.16+)")
	f.BoolVar(&realTime, "real-time", false, "let microVMs run by the clock (KVM) if they can: faster, not reproducible")
	f.StringVar(&out, "out", "", "folder for the results (default: runs/EXPERIMENT-TIME)")
	return c
}

// summarise prints what was expected and measured, and what it cost. Returns the exit code.
func summarise(w io.Writer, e *experiment.Experiment, runs []*result.Run) int {
	code := 0
	for _, r := range runs {
		outcomes := result.Evaluate(e, r)
		if len(outcomes) == 0 {
			continue // the file expects nothing
		}
		fmt.Fprintf(w, "\n%s\n", r.Manifest.Scheme)
		if !printOutcomes(w, outcomes) {
			code = exitExpect
		}
	}
	fmt.Fprintln(w)
	for _, r := range runs {
		m := r.Manifest
		fmt.Fprintf(w, "%s: %s, kernel %s, boot %.1f s, %.0f s in all\n", m.Scheme, m.Verdict, m.Kernel, m.Wall.BootS, m.Wall.TotalS)
		for _, reason := range m.Reasons {
			fmt.Fprintf(w, "  INVALID: %s\n", reason)
		}
		if m.Verdict == result.Invalid {
			code = exitInvalid
		}
	}
	return code
}
