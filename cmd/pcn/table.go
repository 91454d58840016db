// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// labelledTable is a table for each case and scheme, under its label.
type labelledTable struct {
	*tabwriter.Writer
	w     io.Writer
	label string // of the rows so far
}

func newLabelledTable(w io.Writer) *labelledTable { return &labelledTable{newTable(w), w, ""} }

// begins reports whether a row with this label begins a table. It has then printed the label, with
// a suffix.
func (t *labelledTable) begins(label, suffix string) bool {
	if label == t.label {
		return false
	}
	t.label = label
	t.Flush()
	fmt.Fprintf(t.w, "\n%s%s\n", label, suffix)
	return true
}

func formatPass(pass bool) string {
	if pass {
		return "ok"
	}
	return "NOT MET"
}

// tooShort is in place of NOT MET where the run ended before its value was known.
const tooShort = "too short"

// worse returns the exit code that says more of two. What is too short may be met in a longer run.
func worse(a, b int) int {
	if a == exitShort && b != 0 {
		return b
	}
	if b == exitShort && a != 0 {
		return a
	}
	return max(a, b)
}

// verdictOf returns the word for a value that is judged, and its exit code.
func verdictOf(pass bool, needs experiment.Duration) (word string, code int) {
	switch {
	case pass:
		return formatPass(true), 0
	case needs != 0:
		return tooShort, exitShort
	default:
		return formatPass(false), exitExpect
	}
}

// withNeeds adds the duration that would do to the text of a value.
func withNeeds(value string, needs experiment.Duration) string {
	if needs == 0 {
		return value
	}
	return fmt.Sprintf("%s: %s: --duration %s", value, tooShort, needs)
}

// printOutcomes prints a row for each expectation. It returns the exit code.
func printOutcomes(w io.Writer, outcomes []result.Outcome) int {
	code := 0
	t := newTable(w)
	fmt.Fprintln(t, "\twhat\tpaper\tmeasured\tbound")
	for _, o := range outcomes {
		word, c := verdictOf(o.Pass, o.Needs)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", word, o.Expect.What, o.Expect.Paper,
			withNeeds(o.Value(), o.Needs), o.Bound())
		code = worse(code, c)
	}
	t.Flush()
	return code
}

// printMetrics prints a row for each metric that is only measured.
func printMetrics(w io.Writer, metrics []result.MetricValue) {
	t := newTable(w)
	fmt.Fprintln(t, "metric\tvalue")
	for _, m := range metrics {
		fmt.Fprintf(t, "%s\t%s\n", m.Name, m.Value())
	}
	t.Flush()
}

// printComparisons prints each comparison under its name. It returns the exit code.
func printComparisons(w io.Writer, outcomes []result.CompareOutcome) int {
	code := 0
	for _, o := range outcomes {
		fmt.Fprintf(w, "\n%s\n", o.Compare.What)
		printComparison(w, o)
		switch {
		case o.TooShort():
			code = worse(code, exitShort)
		case !o.Pass:
			code = worse(code, exitExpect)
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
			pass, _ = verdictOf(v.Pass, v.Needs)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", pass, v.Scheme, formatQuantity(v.Paper),
			withNeeds(v.Value(), v.Needs), formatRatio(measured(v), v.Paper), v.Bound())
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
