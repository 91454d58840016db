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
	"github.com/pcn-linux/pcn/internal/reproduce"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

type reproduceFlags struct {
	out, seeds                      string
	where                           whereFlags
	engine                          engineFlags
	quick, markdown, finished, list bool
	declared, asJSON                bool
	algo                            []string
	set                             map[string]string
}

func newReproduce() *cobra.Command {
	var f reproduceFlags
	c := &cobra.Command{
		Use:   "reproduce [PAPER|FIGURE|FILE...]",
		Short: "Run what the papers' figures show, and judge every claim",
		Long: `Run what figures of the papers need, many times, in the simulation and on Linux, and
print one table: what the paper claims, what came out, and whether the claim is met. Without names
it runs every figure of every paper. Finished runs are kept: to go on after an interruption, run the
same command again.

A claim is met if the whole 95% interval of the value is within the paper's band, and no run is
INVALID or without a value.`,
		Example: `  pcn reproduce --quick
  pcn reproduce pcn-fig2
  pcn reproduce tcd --engine sim
  pcn reproduce --list`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			figures, err := reproduce.Choose(args)
			if err != nil {
				return usageError{err}
			}
			if f.list {
				return f.listFigures(cmd.OutOrStdout(), figures)
			}
			return f.run(cmd, figures)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.out, "out", filepath.Join("runs", "reproduce"),
		"folder for the results, also to continue in")
	f.where.add(flags)
	f.engine.add(flags)
	flags.Lookup("engine").Usage = "what runs it: sim, kernel, or sim,kernel " +
		"(default: sim,kernel; with --quick sim)"
	flags.BoolVar(&f.quick, "quick", false, "few seeds, and smaller networks: minutes, not hours")
	flags.StringVar(&f.seeds, "seeds", "",
		"seeds of all runs, such as 1..5, in place of the catalogue's")
	flags.BoolVar(&f.declared, "declared", false, "simulate with the parameters that the papers' "+
		"texts state, the same in all figures of a paper")
	flags.StringSliceVar(&f.algo, "algo", nil,
		"run these schemes only; claims of others, and ratios to them, are not judged")
	flags.StringToStringVar(&f.set, "set", nil, "a parameter of a scheme for all figures that run "+
		"it, such as pcn.window=periodic; with a folder of its own: --out")
	flags.BoolVar(&f.markdown, "markdown", false, "print the table as Markdown")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON: every claim, and what came out")
	flags.BoolVar(&f.finished, "finished", false, "run nothing: judge the runs that are finished")
	flags.BoolVar(&f.list, "list", false, "only list the figures")
	return c
}

func (f reproduceFlags) run(cmd *cobra.Command, figures []*reproduce.Figure) error {
	if err := f.where.check(); err != nil {
		return err
	}
	if len(f.set) > 0 && !cmd.Flags().Changed("out") {
		return usageError{errors.New("--set: the results are not the figures' own: want --out too")}
	}
	var seeds experiment.Seeds
	if f.seeds != "" {
		var err error
		if seeds, err = experiment.ParseSeeds(f.seeds); err != nil {
			return usageError{fmt.Errorf("--seeds: %w", err)}
		}
	}
	if f.engine.name == "" {
		f.engine.name = "sim,kernel"
		if f.quick {
			f.engine.name = "sim"
		}
	}
	engines, err := f.engine.openAll(experiment.EngineSim)
	if err != nil {
		return err
	}
	start := time.Now()
	stderr := cmd.ErrOrStderr()
	bar := newProgress(stderr, "reproduce", 0)
	o := reproduce.Options{
		Figures: figures, Load: experiments.Load, Engines: engines, Quick: f.quick, Seeds: seeds,
		Out: f.out, Finished: f.finished, Declared: f.declared, Set: f.set, Schemes: f.algo,
		Progress: bar.set, Waiting: printWaiting(cmd),
		Started: func(p *reproduce.Plan, runs int, seconds float64) {
			bar.next(p.Figure.ID()+" "+string(p.Engine), runs)
			fmt.Fprintf(stderr, "pcn: %s on %s: %d runs%s\n", p.Figure.ID(), p.Engine, runs,
				formatLeft(seconds))
			if smaller := p.Smaller(); smaller != "" {
				fmt.Fprintf(stderr, "pcn: %s is smaller with --quick: %s\n", p.Figure.ID(), smaller)
			}
		},
	}
	if f.where.on == onSlurm {
		o.Slurm = new(f.where.slurm(stderr))
	}
	r, err := reproduce.Run(cmd.Context(), o)
	bar.finish()
	if err != nil {
		return err
	}
	page, err := r.Write(f.out)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	switch {
	case f.markdown:
		return r.WriteMarkdown(w)
	case f.asJSON:
		err = printJSON(w, claimsOf(r))
	default:
		printReproduction(w, r)
		err = printTotal(w, start, page)
	}
	if err != nil {
		return err
	}
	if r.Count(reproduce.NotMet) > 0 {
		return exitWith(exitExpect)
	}
	return nil
}

// formatLeft says how long the rest takes one CPU.
func formatLeft(left float64) string {
	if left == 0 {
		return ""
	}
	return "; this and the rest take one CPU about " + formatAbout(seconds(left))
}

func (f reproduceFlags) listFigures(w io.Writer, figures []*reproduce.Figure) error {
	if f.asJSON {
		all := []figureJSON{}
		for _, f := range figures {
			all = append(all, figureJSON{f.ID(), f.Title, f.Experiment, len(f.Claims)})
		}
		return printJSON(w, all)
	}
	t := newTable(w)
	fmt.Fprintln(t, "FIGURE\tCLAIMS\tEXPERIMENT\tTITLE")
	for _, f := range figures {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", f.ID(), len(f.Claims), f.Experiment, f.Title)
	}
	return t.Flush()
}

func printReproduction(w io.Writer, r *reproduce.Reproduction) {
	t := newTable(w)
	for _, cells := range r.Table() {
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	t.Flush()
	fmt.Fprintf(w, "\n%s\n", r.Summary())
}
