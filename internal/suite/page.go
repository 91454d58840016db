// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// WritePage writes kernels by controls by metrics, in Markdown.
func WritePage(w io.Writer, reference *Record, kernels []*Record) error {
	var verdicts []Verdict
	for _, k := range kernels {
		v, err := Compare(reference, k)
		if err != nil {
			return err
		}
		verdicts = append(verdicts, v)
	}
	var b strings.Builder
	writeKernels(&b, reference, kernels, verdicts)
	for i, v := range verdicts {
		writeChanges(&b, kernels[i], v)
	}
	writeValues(&b, reference)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeKernels writes a table of kernels by controls.
func writeKernels(b *strings.Builder, reference *Record, kernels []*Record, verdicts []Verdict) {
	fmt.Fprintf(b, "## Kernels\n\nReference: %s (Linux %s), %d seeds, suite %s.\n\n",
		reference.Kernel, reference.Release, len(reference.Seeds()), reference.Suite)
	if len(kernels) == 0 {
		return
	}
	b.WriteString("| control |")
	for _, k := range kernels {
		fmt.Fprintf(b, " %s |", k.Kernel)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(kernels)) + "\n")
	for _, scheme := range schemesOf(reference) {
		fmt.Fprintf(b, "| %s |", scheme)
		for i, v := range verdicts {
			fmt.Fprintf(b, " %s |", v.ofScheme(kernels[i], scheme))
		}
		b.WriteString("\n")
	}
}

// schemesOf returns the controls of a record, in their order.
func schemesOf(r *Record) (schemes []string) {
	for _, run := range r.Runs {
		if !slices.Contains(schemes, run.Scheme) {
			schemes = append(schemes, run.Scheme)
		}
	}
	return schemes
}

// ofScheme says in a few words what a kernel's verdict says of a control.
func (v Verdict) ofScheme(kernel *Record, scheme string) string {
	runs, differ, outcomes := 0, 0, map[Outcome]int{}
	for _, run := range kernel.Runs {
		if run.Scheme == scheme {
			runs++
		}
	}
	for _, run := range v.Differ {
		if run.Scheme != scheme {
			continue
		}
		differ++
		for _, m := range run.Metrics {
			outcomes[m.Outcome]++
		}
	}
	switch {
	case runs == 0:
		return "not run"
	case differ == 0:
		return fmt.Sprintf("the same bytes, %d of %d runs", runs, runs)
	}
	return fmt.Sprintf("%d of %d runs the same; %d metrics changed, %d can't be told, %d within",
		runs-differ, runs, outcomes[Changed], outcomes[CantTell], outcomes[Within])
}

// writeChanges writes the metrics of a kernel that are not within their intervals.
func writeChanges(b *strings.Builder, kernel *Record, v Verdict) {
	if v.Changed+v.CantTell+v.Failed == 0 {
		return
	}
	fmt.Fprintf(b, "\n## What differs on %s\n\n", kernel.Kernel)
	b.WriteString("| run | metric | outcome | values |\n|---|---|---|---|\n")
	for _, run := range v.Differ {
		if run.Failed != "" {
			fmt.Fprintf(b, "| %s | | failed | %s |\n", run.Name(), run.Failed)
		}
		for _, m := range run.Metrics {
			if m.Outcome != Within {
				fmt.Fprintf(b, "| %s | %s | %s | %s |\n", run.Name(), m.Metric, m.Outcome, m.Text())
			}
		}
	}
}

// writeValues writes the metrics of the reference, a table for each experiment.
func writeValues(b *strings.Builder, reference *Record) {
	fmt.Fprintf(b, "\n## Metrics on %s\n\nMedians over the seeds, with their range.\n",
		reference.Kernel)
	runs := slices.Clone(reference.Runs)
	slices.SortStableFunc(runs, func(x, y Run) int {
		return cmp.Or(cmp.Compare(x.Experiment, y.Experiment), cmp.Compare(x.Case, y.Case))
	})
	last := ""
	for _, run := range runs {
		metrics := metricsOf(run)
		if run.Experiment != last {
			last = run.Experiment
			fmt.Fprintf(b, "\n| %s | %s |\n|---|%s\n", run.Experiment, strings.Join(metrics, " | "),
				strings.Repeat("---|", len(metrics)))
		}
		fmt.Fprintf(b, "| %s |", result.LabelOf(run.Case, run.Scheme))
		for _, name := range metrics {
			fmt.Fprintf(b, " %s |", run.text(name))
		}
		b.WriteString("\n")
	}
}

// text returns the median of a metric's values, and their range where that is one.
func (r Run) text(metric string) string {
	values, unit := r.values(metric)
	if len(values) == 0 {
		return "none"
	}
	slices.Sort(values)
	of := func(v float64) string { return experiment.Quantity{Value: v, Unit: unit}.String() }
	low, high := of(values[0]), of(values[len(values)-1])
	if low == high {
		return low
	}
	return fmt.Sprintf("%s (%s to %s)", of(result.Median(values)), low, high)
}
