// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"pcn/netns-lab/result"
)

// printOutcomes prints a row for each expectation, and returns whether all are met.
func printOutcomes(w io.Writer, outcomes []result.Outcome) bool {
	all := true
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\twhat\tpaper\tmeasured\tbound")
	for _, o := range outcomes {
		mark := "ok"
		if !o.Pass {
			mark = "NOT MET"
			all = false
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", mark, o.Expect.What, o.Expect.Paper, o.Value(), o.Bound())
	}
	t.Flush()
	return all
}
