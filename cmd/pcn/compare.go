// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/report"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

func newCompare() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "compare DIR...",
		Short: "Print how many times that of one scheme the others' values are",
		Long: `Print a table for all that the experiments compare, and for each metric that they expect something of: the value of
each scheme and how many times that of one scheme it is, and the same of the paper's numbers.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			groups, err := launch.ReadRuns(dirs)
			if err != nil {
				return err
			}
			code := 0
			for _, g := range groups {
				base, err := baseOf(g, to)
				if err != nil {
					return usageError{err}
				}
				printRatios(cmd.OutOrStdout(), g, base)
				code = max(code, printInvalid(cmd.OutOrStdout(), g.Runs))
			}
			return exitWith(code)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the scheme that all are compared to (default: pcn or, without one, the first)")
	return c
}

// baseOf is the scheme that the others are compared to.
func baseOf(g report.Group, asked string) (string, error) {
	schemes := g.Experiment.Schemes
	switch {
	case asked == "" && slices.Contains(schemes, "pcn"):
		return "pcn", nil
	case asked == "":
		return schemes[0], nil
	case !slices.Contains(schemes, asked):
		return "", fmt.Errorf("--to: experiment %s has no run of scheme %q (hint: it has %s)", g.Experiment.Name, asked, strings.Join(schemes, ", "))
	default:
		return asked, nil
	}
}

// printRatios prints a table for each comparison of the group.
func printRatios(w io.Writer, g report.Group, base string) {
	e := *g.Experiment
	e.Compare = comparisons(&e)
	if len(e.Compare) == 0 {
		fmt.Fprintf(w, "%s: nothing to compare: the file has neither compare: nor expect:\n", e.Name)
	}
	for _, o := range result.EvaluateCompare(&e, g.Runs) {
		fmt.Fprintf(w, "%s: %s\n", e.Name, o.Compare.What)
		printRatiosOf(w, o, base)
		fmt.Fprintln(w)
	}
}

// printRatiosOf prints the table of one comparison; with the paper's columns if that has numbers.
func printRatiosOf(w io.Writer, o result.CompareOutcome, base string) {
	t := newTable(w)
	fmt.Fprintf(t, "scheme\tmeasured\tto %s", base)
	if len(o.Compare.Paper) > 0 {
		fmt.Fprintf(t, "\tpaper\tto %s", base)
	}
	fmt.Fprintln(t)
	to := valueOf(o, base)
	for _, v := range o.Values {
		fmt.Fprintf(t, "%s\t%s\t%s", v.Scheme, v.Short(), ratio(measured(v), measured(to)))
		if len(o.Compare.Paper) > 0 {
			fmt.Fprintf(t, "\t%s\t%s", cmp.Or(inWords(v.Paper), "-"), ratio(v.Paper, to.Paper))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// comparisons are what the experiment compares and, with no number of the paper, what else it expects something of.
func comparisons(e *experiment.Experiment) []experiment.Compare {
	var all []experiment.Compare
	for _, c := range e.Compare {
		c.What += ": " + measureInWords(c)
		all = append(all, c)
	}
	for _, x := range e.Expect {
		c := experiment.Compare{Measure: x.Measure, Over: experiment.OverMax}
		if x.Case != "" {
			c.Cases = []string{x.Case}
		}
		known := func(other experiment.Compare) bool {
			return reflect.DeepEqual(c.Measure, other.Measure) && slices.Equal(c.Cases, other.Cases)
		}
		if !slices.ContainsFunc(all, known) {
			c.What = measureInWords(c)
			all = append(all, c)
		}
	}
	return all
}

// measureInWords says what is measured, of what, and when.
func measureInWords(c experiment.Compare) string {
	of := c.Links
	switch {
	case len(c.Ports) > 0:
		of = c.Ports
	case len(c.Flows) > 0:
		of = c.Flows
	}
	text := string(c.Metric)
	if len(of) > 0 {
		text += " of " + strings.Join(of, ", ")
	}
	if len(of) > 1 || c.Over != experiment.OverMax { // or of a group
		text += " (" + string(c.Over) + ")"
	}
	if c.Target != nil {
		text += fmt.Sprintf(", target %s since %s", c.Target, c.Since)
	}
	if c.From != 0 || c.To != 0 {
		text += fmt.Sprintf(", from %s", c.From)
	}
	if c.To != 0 {
		text += fmt.Sprintf(" to %s", c.To)
	}
	if len(c.Cases) > 0 {
		text += ", cases " + strings.Join(c.Cases, ", ")
	}
	return text
}

// valueOf is the value of a scheme; none if it was not run.
func valueOf(o result.CompareOutcome, scheme string) result.CompareValue {
	for _, v := range o.Values {
		if v.Scheme == scheme {
			return v
		}
	}
	return result.CompareValue{}
}

// measured is what was measured; nil if that is nothing.
func measured(v result.CompareValue) *experiment.Quantity {
	if v.Scheme == "" || v.Err != nil {
		return nil
	}
	return &v.Measured
}

// ratio is how many times another value one is, to 3 significant digits; "-" if that is not known.
func ratio(value, to *experiment.Quantity) string {
	if value == nil || to == nil || to.Value == 0 {
		return "-"
	}
	r := value.Value / to.Value
	if r >= 100 {
		return strconv.FormatFloat(r, 'f', 0, 64)
	}
	return strconv.FormatFloat(r, 'g', 3, 64)
}
