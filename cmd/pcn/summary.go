// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
)

// summarise prints the expectations, comparisons and costs of all runs. It returns the exit code.
func summarise(w io.Writer, groups []report.Group) int {
	code := 0
	for _, g := range groups {
		if len(groups) > 1 {
			fmt.Fprintf(w, "\n== %s: %s\n", g.Experiment.Name, g.Experiment.Title)
		}
		code = worse(code, summariseGroup(w, g))
	}
	return code
}

func summariseGroup(w io.Writer, g report.Group) int {
	if len(g.Seeds) > 0 {
		return summariseSeeds(w, g.Seeds)
	}
	code := 0
	several := len(result.EnginesOf(g.Runs)) > 1
	judged := result.Judge(g.Experiment, g.Runs)
	for _, r := range judged.Runs {
		if len(r.Outcomes)+len(r.Metrics) == 0 {
			continue // the file asks for nothing
		}
		fmt.Fprintf(w, "\n%s", r.Manifest.Label())
		if several {
			fmt.Fprintf(w, ", %s", r.Manifest.RanOn())
		}
		fmt.Fprintln(w)
		if len(r.Outcomes) > 0 {
			code = worse(code, printOutcomes(w, r.Outcomes))
		}
		if len(r.Metrics) > 0 {
			printMetrics(w, r.Metrics)
		}
	}
	code = worse(code, printComparisons(w, judged.Compared))
	printEngines(w, result.EngineRows(g.Experiment, g.Runs))
	fmt.Fprintln(w)
	for _, r := range g.Runs {
		m := r.Manifest
		fmt.Fprintf(w, "%s: %s, %s, %.0f s in all\n",
			m.Label(), m.Verdict, ranOn(m), m.Wall.TotalS)
		if len(m.DilationsTried) > 0 {
			fmt.Fprintf(w, "%s: run again with dilation %d: %d was too low\n",
				m.Label(), m.DilationShift, m.DilationsTried)
		}
		if m.Deadlock != nil {
			fmt.Fprintf(w, "%s: DEADLOCK %s\n", m.Label(), m.Deadlock)
		}
	}
	printWarningsOf(w, g.Runs)
	return worse(code, printInvalid(w, g.Runs))
}

// printWarningsOf prints what may not be meant in runs.
func printWarningsOf(w io.Writer, runs []*result.Run) {
	for _, r := range runs {
		for _, warning := range r.Manifest.Warnings {
			fmt.Fprintf(w, "warning: %s: %s\n", r.Manifest.Label(), warning)
		}
	}
}

// onEachEngine is behind the label of a table that compares engines.
const onEachEngine = " on each engine"

// printEngines prints what engines measured of the same runs, if several did.
func printEngines(w io.Writer, rows []result.EngineRow) {
	t := newLabelledTable(w)
	for _, row := range rows {
		if t.begins(result.LabelOf(row.Case, row.Scheme), onEachEngine) {
			fmt.Fprint(t, "what")
			for i, v := range row.Values {
				fmt.Fprintf(t, "\t%s", v.Engine)
				if i > 0 {
					fmt.Fprint(t, "\tdifference")
				}
			}
			fmt.Fprintln(t)
		}
		fmt.Fprint(t, row.What)
		for i, v := range row.Values {
			fmt.Fprintf(t, "\t%s", v.Text())
			if i > 0 {
				fmt.Fprintf(t, "\t%s", row.Difference(i))
			}
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// ranOn says what ran it.
func ranOn(m result.Manifest) string {
	switch m.RanOn() {
	case experiment.EngineSim:
		return "simulated"
	case experiment.EngineFluid:
		return "fluid"
	}
	return fmt.Sprintf("kernel %s, boot %.1f s", m.Kernel, m.Wall.BootS)
}

// printInvalid prints the reasons why runs are invalid. It returns the exit code.
func printInvalid(w io.Writer, runs []*result.Run) int {
	code := 0
	for _, r := range runs {
		for _, reason := range r.Manifest.Reasons {
			fmt.Fprintf(w, "INVALID: %s: %s\n", r.Manifest.Label(), reason)
		}
		if r.Manifest.Verdict == result.Invalid {
			code = exitInvalid
		}
	}
	return code
}
