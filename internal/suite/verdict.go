// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"math"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Outcome is what a metric's values on a kernel say, beside those on the reference.
type Outcome string

// The outcomes.
const (
	Within   Outcome = "within"     // the median is in the interval of the reference
	Changed  Outcome = "changed"    // all values are on one side of that interval
	CantTell Outcome = "can't tell" // neither
)

const (
	// Margin widens the range of the reference's seeds, at both ends, by this share of their
	// median: less than one byte in a packet of 1514, which the suite is to find.
	Margin = 0.0002
	// LeastSeeds is how many values a change needs on either side: six of six are apart by chance
	// once in 462 times.
	LeastSeeds = 6
)

// Interval is what a metric may be: the range of the reference's seeds, and the margin.
type Interval struct{ Low, High, Median float64 }

// intervalOf returns the interval that values give, at least one.
func intervalOf(values []float64) Interval {
	sorted := slices.Sorted(slices.Values(values))
	median := result.Median(sorted)
	margin := Margin * math.Abs(median)
	return Interval{sorted[0] - margin, sorted[len(sorted)-1] + margin, median}
}

// judge says what values tell beside the reference's.
func judge(reference, values []float64) Outcome {
	if len(reference) == 0 || len(values) == 0 {
		return CantTell
	}
	of := intervalOf(reference)
	low, high := slices.Min(values), slices.Max(values)
	median := result.Median(slices.Sorted(slices.Values(values)))
	switch {
	case (low > of.High || high < of.Low) &&
		len(values) >= LeastSeeds && len(reference) >= LeastSeeds:
		return Changed
	case of.Low <= median && median <= of.High:
		return Within
	}
	return CantTell
}

// MetricVerdict is what a metric of a run came to.
type MetricVerdict struct {
	Metric    string
	Unit      experiment.Unit
	Outcome   Outcome
	Reference []float64 // of seeds that have a value
	Values    []float64
}

// RunVerdict is what a run came to whose bytes are not the reference's.
type RunVerdict struct {
	Run
	Failed    string   // why it has no result, where the reference has one
	SameFlows []string // whose bytes are the same with the first seed
	Flows     int      // how many there are
	Metrics   []MetricVerdict
}

// Verdict is what a kernel came to beside a reference.
type Verdict struct {
	Runs, Same        int // all, and those with the same bytes
	Flows, SameFlows  int
	Differ            []RunVerdict
	Changed, CantTell int // metrics
	Failed            int // runs
}

// Compare says what a kernel came to beside a reference. It fails if the two were not made by the
// same program of the same experiments.
func Compare(reference, kernel *Record) (Verdict, error) {
	var v Verdict
	// A kernel on which every run fails has no program that ran.
	if kernel.GuestSHA256 != "" && reference.GuestSHA256 != kernel.GuestSHA256 {
		return v, fmt.Errorf("the reference was made by another build of pcn (its program is "+
			"%.12s, not %.12s): run the suite on kernel %s again", reference.GuestSHA256,
			kernel.GuestSHA256, reference.Kernel)
	}
	for _, run := range reference.Runs {
		if kernel.has(run) && kernel.find(run.Name()) == nil {
			return v, fmt.Errorf("kernel %s has no run %s, which the reference has: run the same "+
				"suite on both", kernel.Kernel, run.Name())
		}
	}
	for _, run := range kernel.Runs {
		of := reference.find(run.Name())
		if of == nil {
			return v, fmt.Errorf("the reference has no run %s: run the same suite on both",
				run.Name())
		}
		if err := v.add(*of, run); err != nil {
			return v, err
		}
	}
	return v, nil
}

// add compares a run.
func (v *Verdict) add(reference, run Run) error {
	v.Runs++
	first := run.Seeds[0]
	v.Flows += len(first.Flows)
	same := reference.seed(first.Seed)
	if same != nil && same.Failed == "" && first.Failed == "" &&
		same.ExperimentSHA256 != first.ExperimentSHA256 {
		return fmt.Errorf("run %s is of another experiment than the reference's: run the same "+
			"suite on both", run.Name())
	}
	if same != nil && same.sameAs(first) {
		v.Same, v.SameFlows = v.Same+1, v.SameFlows+len(first.Flows)
		return nil
	}
	one := RunVerdict{Run: run, Flows: len(first.Flows)}
	if same != nil {
		one.SameFlows = sameFlows(same.Flows, first.Flows)
	}
	v.SameFlows += len(one.SameFlows)
	if failsNow(reference, run) {
		one.Failed = run.Failure()
		v.Failed++
	}
	one.Metrics = compareMetrics(reference, run)
	for _, m := range one.Metrics {
		switch m.Outcome {
		case Changed:
			v.Changed++
		case CantTell:
			v.CantTell++
		case Within:
		}
	}
	v.Differ = append(v.Differ, one)
	return nil
}

// failsNow reports whether a run fails that does not on the reference.
func failsNow(reference, run Run) bool { return run.Failure() != "" && reference.Failure() == "" }

// hasChanged reports whether a run fails that did not, or a metric of it has changed.
func hasChanged(reference, run Run) bool {
	return failsNow(reference, run) || slices.ContainsFunc(compareMetrics(reference, run),
		func(m MetricVerdict) bool { return m.Outcome == Changed })
}

// sameAs reports whether two runs with one seed came to the same bytes.
func (s SeedRun) sameAs(other SeedRun) bool {
	return s.Tables != "" && s.Tables == other.Tables && s.Failed == other.Failed
}

// Failure returns why a run has no result with a seed; "" if it has all.
func (r Run) Failure() string {
	for _, s := range r.Seeds {
		if s.Failed != "" {
			return fmt.Sprintf("seed %d: %s", s.Seed, s.Failed)
		}
	}
	return ""
}

// sameFlows returns the flows whose digests are the same.
func sameFlows(a, b map[string]string) (same []string) {
	for name, sum := range a {
		if b[name] == sum {
			same = append(same, name)
		}
	}
	slices.Sort(same)
	return same
}

// compareMetrics judges each metric of a run.
func compareMetrics(reference, run Run) (all []MetricVerdict) {
	for _, name := range metricsOf(reference) {
		m := MetricVerdict{Metric: name}
		m.Reference, m.Unit = reference.values(name)
		m.Values, _ = run.values(name)
		m.Outcome = judge(m.Reference, m.Values)
		all = append(all, m)
	}
	return all
}

// metricsOf returns the names of a run's metrics, in the experiment's order.
func metricsOf(r Run) (names []string) {
	for _, s := range r.Seeds {
		for _, v := range s.Values {
			if !slices.Contains(names, v.Metric) {
				names = append(names, v.Metric)
			}
		}
	}
	return names
}

// values returns a metric's values over the seeds that have one.
func (r Run) values(metric string) (values []float64, unit experiment.Unit) {
	for _, s := range r.Seeds {
		for _, v := range s.Values {
			if v.Metric == metric && v.Value != nil {
				values, unit = append(values, *v.Value), v.Unit
			}
		}
	}
	return values, unit
}

// Text returns the values beside the interval of the reference.
func (m MetricVerdict) Text() string {
	text := func(v float64) string { return experiment.Quantity{Value: v, Unit: m.Unit}.String() }
	if len(m.Reference) == 0 || len(m.Values) == 0 {
		return "no values"
	}
	of := intervalOf(m.Reference)
	sorted := slices.Sorted(slices.Values(m.Values))
	return fmt.Sprintf("%s [%s to %s], reference %s [%s to %s]", text(result.Median(sorted)),
		text(sorted[0]), text(sorted[len(sorted)-1]), text(of.Median), text(of.Low), text(of.High))
}
