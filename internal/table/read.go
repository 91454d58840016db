// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Judged returns what the runs of an experiment on one engine came to, by seed: what [Of] made the
// table from. Manifests have only what the table has.
func (t Table) Judged(e *experiment.Experiment, engine experiment.Engine) ([]result.Judged, error) {
	var all []result.Judged
	for _, r := range t.Rows {
		if r.Engine != engine {
			continue
		}
		i := slices.IndexFunc(all, func(j result.Judged) bool { return j.Seed == r.Seed })
		if i < 0 {
			i, all = len(all), append(all, result.Judged{Seed: r.Seed})
		}
		if err := addRow(&all[i], e, r); err != nil {
			return nil, fmt.Errorf("%s %d of %s, seed %d: %w", r.Kind, r.Number, e.Name,
				r.Seed, err)
		}
	}
	for _, j := range all {
		judge(j)
	}
	return all, nil
}

// addRow adds a row to what its seed came to.
func addRow(j *result.Judged, e *experiment.Experiment, r Row) error {
	var list int
	switch r.Kind {
	case Expect:
		list = len(e.Expect)
	case Metrics:
		list = len(e.Metrics)
	case Compare, CompareCase:
		list = len(e.Compare)
	default:
		return fmt.Errorf("unknown kind %q", r.Kind)
	}
	if r.Number < 0 || r.Number >= list {
		return fmt.Errorf("the experiment's file has %d: the table is of another file", list)
	}
	switch r.Kind {
	case Expect:
		addExpect(runOf(j, r), e.Expect[r.Number], r)
	case Metrics:
		v := result.MetricValue{NamedMetric: e.Metrics[r.Number], Err: r.err()}
		v.Measured = r.quantity()
		run := runOf(j, r)
		run.Metrics = append(run.Metrics, v)
	default:
		addCompared(j, e.Compare[r.Number], r)
	}
	return nil
}

// runOf returns the run that a row is of.
func runOf(j *result.Judged, r Row) *result.JudgedRun {
	i := slices.IndexFunc(j.Runs, func(run result.JudgedRun) bool {
		return run.Manifest.Case == r.Case && run.Manifest.Scheme == r.Scheme
	})
	if i < 0 {
		i = len(j.Runs)
		j.Runs = append(j.Runs, result.JudgedRun{Manifest: result.Manifest{Case: r.Case,
			Scheme: r.Scheme, Seed: r.Seed, Verdict: r.Verdict, Engine: string(r.Engine)}})
	}
	return &j.Runs[i]
}

// addExpect adds a value to the last outcome of a run, if it is of the same expectation.
func addExpect(run *result.JudgedRun, x experiment.Expect, r Row) {
	last := len(run.Outcomes) - 1
	if last < 0 || run.Outcomes[last].Number != r.Number {
		run.Outcomes = append(run.Outcomes,
			result.Outcome{Expect: x, Number: r.Number, Scheme: r.Scheme, Err: r.err()})
		last++
	}
	if r.Value != nil {
		o := &run.Outcomes[last]
		o.Measured, o.Objects = append(o.Measured, r.quantity()), append(o.Objects, r.Object)
	}
}

// addCompared adds the value of a scheme, or of one of its cases.
func addCompared(j *result.Judged, c experiment.Compare, r Row) {
	i := slices.IndexFunc(j.Compared, func(o result.CompareOutcome) bool {
		return o.Number == r.Number
	})
	if i < 0 {
		i = len(j.Compared)
		j.Compared = append(j.Compared,
			result.CompareOutcome{Compare: c, Number: r.Number, Engine: r.Engine})
	}
	o := &j.Compared[i]
	if r.Kind == Compare {
		o.Values = append(o.Values,
			result.CompareValue{Scheme: r.Scheme, Measured: r.quantity(), Err: r.err()})
		return
	}
	v := &o.Values[len(o.Values)-1] // its row stands before those of its cases
	v.Cases = append(v.Cases, result.CaseValue{Case: r.Case, Measured: r.quantity(), Err: r.err()})
}

// judge holds all values against their bounds.
func judge(j result.Judged) {
	for _, run := range j.Runs {
		for i := range run.Outcomes {
			run.Outcomes[i].Judge()
		}
	}
	for i := range j.Compared {
		o := &j.Compared[i]
		for k, v := range o.Values {
			if len(v.Cases) == 0 { // of the only one
				o.Values[k].Cases = []result.CaseValue{{Measured: v.Measured, Err: v.Err}}
			}
		}
		o.Judge()
	}
}

// quantity returns the value; 0 without one.
func (r Row) quantity() experiment.Quantity {
	q := experiment.Quantity{Unit: r.Metric.Unit()}
	if r.Value != nil {
		q.Value = *r.Value
	}
	return q
}

// err returns why there is no value; nil if there is one.
func (r Row) err() error {
	switch {
	case r.Value != nil:
		return nil
	case r.LongerThan != nil:
		return result.NotReached(int64(*r.LongerThan), r.Error)
	}
	return errors.New(r.Error)
}
