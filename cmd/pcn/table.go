// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func formatPass(pass bool) string {
	if pass {
		return "ok"
	}
	return "NOT MET"
}

// printOutcomes prints a row for each expectation. It reports whether all are met.
func printOutcomes(w io.Writer, outcomes []result.Outcome) bool {
	all := true
	t := newTable(w)
	fmt.Fprintln(t, "\twhat\tpaper\tmeasured\tbound")
	for _, o := range outcomes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n",
			formatPass(o.Pass), o.Expect.What, o.Expect.Paper, o.Value(), o.Bound())
		all = all && o.Pass
	}
	t.Flush()
	return all
}

// printComparisons prints each comparison under its name. It returns the exit code.
func printComparisons(w io.Writer, outcomes []result.CompareOutcome) int {
	code := 0
	for _, o := range outcomes {
		fmt.Fprintf(w, "\n%s\n", o.Compare.What)
		printComparison(w, o)
		if !o.Pass {
			code = exitExpect
		}
	}
	return code
}

// printComparison prints a row for each scheme, and a line for each required relation between them.
// Schemes without a bound are shown without "ok" or "NOT MET".
func printComparison(w io.Writer, o result.CompareOutcome) {
	t, measure := newTable(w), "measured"
	if o.OverSeeds() {
		measure = "median [95% interval]"
	}
	fmt.Fprintf(t, "\tscheme\tpaper\t%s\tto the paper\tbound\n", measure)
	for _, v := range o.Values {
		pass := ""
		if v.Judged {
			pass = formatPass(v.Pass)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", pass, v.Scheme, formatQuantity(v.Paper),
			v.Value(), formatRatio(measured(v), v.Paper), v.Bound())
	}
	t.Flush()
	for _, r := range []struct {
		name string
		*result.Relation
	}{{"order", o.Order}, {"ratios", o.Ratios}} {
		if r.Relation != nil {
			fmt.Fprintf(w, "%s  %s: %s (%s)\n", formatPass(r.Holds), r.name, r.Asked, r.Measured)
		}
	}
}

// formatQuantity returns "" for nil.
func formatQuantity(q *experiment.Quantity) string {
	if q == nil {
		return ""
	}
	return q.String()
}
