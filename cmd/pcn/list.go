// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/vm/uml"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// listed is an experiment in the output of pcn list --json.
type listed struct {
	Name    string   `json:"name"`    // for pcn run
	Title   string   `json:"title"`   // what it shows, in a line
	Cases   []string `json:"cases"`   // names of its cases; one empty name if it has none
	Schemes []string `json:"schemes"` // that it runs
	// KernelS is how long one CPU is expected to take for all runs on Linux, in s; nil if only the
	// simulator runs the experiment.
	KernelS *float64 `json:"kernel_s"`
	// SimS is the same in the simulation, in s.
	SimS float64 `json:"sim_s"`
}

func newList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the experiments that come with pcn",
		Long: `List the experiments that come with pcn, and about how long one CPU takes for all of
their runs: on Linux, in microVMs, and in the simulation.

--json prints a list of objects with the keys name, title, cases, schemes, kernel_s and sim_s.
kernel_s is null for experiments that only the simulator runs.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := listAll()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			t := newTable(cmd.OutOrStdout())
			fmt.Fprintln(t, "NAME\tCASES\tLINUX\tSIMULATION\tSCHEMES\tTITLE")
			for _, e := range all {
				kernel := "-"
				if e.KernelS != nil {
					kernel = formatAbout(seconds(*e.KernelS))
				}
				fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", e.Name, len(e.Cases), kernel,
					formatAbout(seconds(e.SimS)), strings.Join(e.Schemes, ","), e.Title)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func listAll() ([]listed, error) {
	var all []listed
	for _, name := range experiments.Names() {
		e, err := experiments.Load(name)
		if err != nil {
			return nil, err
		}
		cost := func(engine experiment.Engine) float64 {
			takes := experiments.Cost(e, engine, !uml.Runs(), launch.Count(e))
			return math.Round(takes.Seconds()*10) / 10
		}
		l := listed{Name: name, Title: e.Title, Cases: e.CaseNames(), Schemes: e.Schemes,
			SimS: cost(experiment.EngineSim)}
		if e.CheckEngine(experiment.EngineKernel) == nil {
			l.KernelS = new(cost(experiment.EngineKernel))
		}
		all = append(all, l)
	}
	return all, nil
}
