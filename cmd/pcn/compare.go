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

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
)

func newCompare() *cobra.Command {
	var (
		to     string
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "compare DIR...",
		Short: "Compare schemes as ratios to one baseline",
		Long: `Print a table for each comparison and for each expected metric of the experiments:
the value of each scheme and its ratio to the baseline scheme. Where the file gives the paper's
numbers, the table also shows these and their ratios.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			groups, err := launch.ReadRuns(dirs)
			if err != nil {
				return err
			}
			code := 0
			found := []jsonout.Compared{}
			for _, g := range groups {
				baseline, err := chooseBaseline(g, to)
				if err != nil {
					return usageError{err}
				}
				if asJSON {
					found = append(found, comparedWith(g, baseline))
					code = max(code, printInvalid(io.Discard, g.Runs))
					continue
				}
				printRatios(cmd.OutOrStdout(), g, baseline)
				code = max(code, printInvalid(cmd.OutOrStdout(), g.Runs))
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), found); err != nil {
					return err
				}
			}
			return exitWith(code)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&to, "to", "",
		"baseline scheme (default: pcn, or the first scheme if pcn was not run)")
	return c
}

// defaultBaseline is the scheme that others are compared to if it was run.
const defaultBaseline = "pcn"

// chooseBaseline returns the requested scheme; without a request, the default or the first one.
func chooseBaseline(g report.Group, requested string) (string, error) {
	schemes := g.Experiment.Schemes
	switch {
	case requested == "" && slices.Contains(schemes, defaultBaseline):
		return defaultBaseline, nil
	case requested == "":
		return schemes[0], nil
	case !slices.Contains(schemes, requested):
		return "", fmt.Errorf("--to: experiment %s has no run of scheme %q (hint: it has %s)",
			g.Experiment.Name, requested, strings.Join(schemes, ", "))
	default:
		return requested, nil
	}
}

// comparedWith is what printRatios prints, as JSON.
func comparedWith(g report.Group, baseline string) jsonout.Compared {
	e := *g.Experiment
	e.Compare = comparisons(&e)
	all := jsonout.ComparisonsOf(evaluated(&e, g))
	for _, c := range all {
		c.SetRatios(baseline)
	}
	return jsonout.Compared{
		Experiment: e.Name, Baseline: baseline, Comparisons: all, Runs: jsonout.RunsOf(g.Runs),
	}
}

// evaluated evaluates the comparisons: of several seeds, those of the file, by their medians.
func evaluated(e *experiment.Experiment, g report.Group) []result.CompareOutcome {
	if len(g.Seeds) == 0 {
		return result.EvaluateCompare(e, g.Runs)
	}
	var all []result.CompareOutcome
	for _, s := range g.Seeds {
		for _, o := range s.Comparisons() {
			o.Compare.What = fmt.Sprintf("%s, median of %d seeds on engine %s",
				e.Compare[o.Number].What, len(s.Seeds), s.Engine())
			all = append(all, o)
		}
	}
	return all
}

func printRatios(w io.Writer, g report.Group, baseline string) {
	e := *g.Experiment
	e.Compare = comparisons(&e)
	if len(e.Compare) == 0 {
		fmt.Fprintf(w, "%s: nothing to compare: the file has neither compare: nor expect:\n",
			e.Name)
	}
	for _, o := range evaluated(&e, g) {
		fmt.Fprintf(w, "%s: %s\n", e.Name, o.Compare.What)
		printRatioTable(w, o, baseline)
		fmt.Fprintln(w)
	}
}

// printRatioTable prints one comparison. It has the paper's columns only if the paper has numbers.
func printRatioTable(w io.Writer, o result.CompareOutcome, baseline string) {
	t := newTable(w)
	fmt.Fprintf(t, "scheme\tmeasured\tto %s", baseline)
	if len(o.Compare.Paper) > 0 {
		fmt.Fprintf(t, "\tpaper\tto %s", baseline)
	}
	fmt.Fprintln(t)
	to := valueOf(o, baseline)
	for _, v := range o.Values {
		fmt.Fprintf(t, "%s\t%s\t%s", v.Scheme, v.Short(), formatRatio(measured(v), measured(to)))
		if len(o.Compare.Paper) > 0 {
			fmt.Fprintf(t, "\t%s\t%s",
				cmp.Or(formatQuantity(v.Paper), "-"), formatRatio(v.Paper, to.Paper))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// comparisons returns the experiment's comparisons and one more for each other metric that it has
// an expectation of. The latter have no numbers of a paper.
func comparisons(e *experiment.Experiment) []experiment.Compare {
	var all []experiment.Compare
	for _, c := range e.Compare {
		c.What += ": " + describeMeasure(c)
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
			c.What = describeMeasure(c)
			all = append(all, c)
		}
	}
	return all
}

// describeMeasure names the metric, its objects, and the time it covers.
func describeMeasure(c experiment.Compare) string {
	objects := c.Links
	switch {
	case len(c.Ports) > 0:
		objects = c.Ports
	case len(c.Flows) > 0:
		objects = c.Flows
	}
	text := string(c.Metric)
	if len(objects) > 0 {
		text += " of " + strings.Join(objects, ", ")
	}
	if len(objects) > 1 || c.Over != experiment.OverMax { // the one object may be a group of flows
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

// valueOf returns the value of a scheme; the zero value if the scheme was not run.
func valueOf(o result.CompareOutcome, scheme string) result.CompareValue {
	for _, v := range o.Values {
		if v.Scheme == scheme {
			return v
		}
	}
	return result.CompareValue{}
}

// measured returns the measured quantity; nil if there is none.
func measured(v result.CompareValue) *experiment.Quantity {
	if v.Scheme == "" || v.Err != nil {
		return nil
	}
	return &v.Measured
}

// formatRatio returns value / to with 3 significant digits; "-" if either is missing.
func formatRatio(value, to *experiment.Quantity) string {
	if value == nil || to == nil || to.Value == 0 {
		return "-"
	}
	r := value.Value / to.Value
	if r >= 100 {
		return strconv.FormatFloat(r, 'f', 0, 64)
	}
	return strconv.FormatFloat(r, 'g', 3, 64)
}
