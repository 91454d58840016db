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

func markOf(pass bool) string {
	if pass {
		return "ok"
	}
	return "NOT MET"
}

// printOutcomes prints a row for each expectation, and returns whether all are met.
func printOutcomes(w io.Writer, outcomes []result.Outcome) bool {
	all := true
	t := newTable(w)
	fmt.Fprintln(t, "\twhat\tpaper\tmeasured\tbound")
	for _, o := range outcomes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", markOf(o.Pass), o.Expect.What, o.Expect.Paper, o.Value(), o.Bound())
		all = all && o.Pass
	}
	t.Flush()
	return all
}

// printComparison prints a row for each scheme, and a line for what is asked between them. A scheme that is only
// shown has no mark.
func printComparison(w io.Writer, o result.CompareOutcome) {
	t := newTable(w)
	fmt.Fprintln(t, "\tscheme\tpaper\tmeasured\tto the paper\tbound")
	for _, v := range o.Values {
		mark := ""
		if v.Judged {
			mark = markOf(v.Pass)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", mark, v.Scheme, inWords(v.Paper), v.Value(), ratio(measured(v), v.Paper), v.Bound())
	}
	t.Flush()
	for _, asked := range []struct {
		what string
		*result.Relation
	}{{"order", o.Order}, {"ratios", o.Ratios}} {
		if asked.Relation != nil {
			fmt.Fprintf(w, "%s  %s: %s (%s)\n", markOf(asked.Holds), asked.what, asked.Asked, asked.Measured)
		}
	}
}

// inWords is a quantity; "" if there is none.
func inWords(q *experiment.Quantity) string {
	if q == nil {
		return ""
	}
	return q.String()
}
