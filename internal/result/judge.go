// SPDX-License-Identifier: Apache-2.0

package result

import (
	"errors"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// Judged is all that an experiment's runs with one seed came to.
type Judged struct {
	Seed     uint64
	Runs     []JudgedRun
	Compared []CompareOutcome
}

// JudgedRun is what one run came to.
type JudgedRun struct {
	Manifest Manifest
	Outcomes []Outcome
	Metrics  []MetricValue
}

// MetricValue is one of the experiment's metrics, which have no bounds.
type MetricValue struct {
	experiment.NamedMetric
	Measured experiment.Quantity // over all links, ports or flows
	Err      error
}

// Value returns the value as text, or the reason why there is none.
func (v MetricValue) Value() string {
	return formatValues([]experiment.Quantity{v.Measured}, v.Err)
}

// Judge evaluates the expectations, the comparisons and the metrics of an experiment's runs, at
// least one.
func Judge(e *experiment.Experiment, runs []*Run) Judged {
	j := Judged{Seed: runs[0].Manifest.Seed, Compared: EvaluateCompare(e, runs)}
	for _, r := range runs {
		one := JudgedRun{Manifest: r.Manifest, Outcomes: Evaluate(e, r)}
		for _, m := range e.Metrics {
			v := MetricValue{NamedMetric: m}
			v.Measured, v.Err = r.MeasureOne(m.Measure, m.Over)
			one.Metrics = append(one.Metrics, v)
		}
		j.Runs = append(j.Runs, one)
	}
	return j
}

// objectsOf returns the name of what each of a metric's n values is of; "" for the whole run.
func (r *Run) objectsOf(m experiment.Measure, n int) []string {
	m.Flows = r.flowsOf(m)
	if objects := m.Objects(); len(objects) == n {
		return objects
	}
	return make([]string, n)
}

// NotReached returns the error of a time that was not reached although the run was observed for so
// long, as a file has it.
func NotReached(observedNs int64, text string) error {
	return &notReachedError{observedNs: observedNs, text: text}
}

// LongerThan returns the time that a time which was not reached is longer than, in ns; false if err
// is another error.
func LongerThan(err error) (ns int64, ok bool) {
	var longer *notReachedError
	if !errors.As(err, &longer) {
		return 0, false
	}
	return longer.observedNs, true
}
