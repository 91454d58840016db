// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// RanOn returns the engine of the run.
func (m Manifest) RanOn() experiment.Engine {
	return cmp.Or(experiment.Engine(m.Engine), experiment.EngineKernel)
}

// EnginesOf returns the engines that the runs ran on, in the order of [experiment.Engines].
func EnginesOf(runs []*Run) []experiment.Engine {
	return slices.DeleteFunc(experiment.Engines(), func(e experiment.Engine) bool {
		return !slices.ContainsFunc(runs, func(r *Run) bool { return r.Manifest.RanOn() == e })
	})
}

// EngineRow has what each engine measured of one quantity, in one case and with one scheme.
type EngineRow struct {
	Case, Scheme, What string
	Values             []EngineValue // the first is what others are compared with
}

// EngineValue is the value of one engine.
type EngineValue struct {
	Engine   experiment.Engine
	Measured experiment.Quantity
	Err      error // says why there is no value
}

// Text returns the value, or the reason why there is none.
func (v EngineValue) Text() string {
	if v.Err != nil {
		return "not measured: " + v.Err.Error()
	}
	return v.Measured.String()
}

// Difference returns by how much the i-th value differs from the first: "" if this can't be said.
func (r EngineRow) Difference(i int) string {
	first, v := r.Values[0], r.Values[i]
	switch {
	case i == 0 || first.Err != nil || v.Err != nil:
		return ""
	case v.Measured.Value == first.Measured.Value:
		return "equal"
	case first.Measured.Value == 0:
		return "not 0"
	}
	percent := (v.Measured.Value/first.Measured.Value - 1) * 100
	if math.Abs(percent) < 0.05 {
		return "under 0.1%"
	}
	return fmt.Sprintf("%+.1f%%", percent)
}

// EngineRows compares the engines that ran the same case, scheme and seed: in what the experiment
// expects, and in what ports counted. Runs that only one engine did have no rows.
func EngineRows(e *experiment.Experiment, runs []*Run) []EngineRow {
	var rows []EngineRow
	for i, r := range runs {
		first := !slices.ContainsFunc(runs[:i], func(o *Run) bool { return sameRun(o, r) })
		if !first {
			continue
		}
		same := slices.Clone(runs[i:])
		same = slices.DeleteFunc(same, func(o *Run) bool { return !sameRun(o, r) })
		if len(EnginesOf(same)) > 1 {
			rows = append(rows, engineRowsOf(e, same)...)
		}
	}
	return rows
}

// sameRun reports whether two runs are to give the same.
func sameRun(a, b *Run) bool {
	return a.Manifest.Label() == b.Manifest.Label() && a.Manifest.Seed == b.Manifest.Seed
}

// IsOtherEngine reports whether a run of another engine is to give the same.
func (r *Run) IsOtherEngine(other *Run) bool {
	return sameRun(r, other) && r.Manifest.RanOn() != other.Manifest.RanOn()
}

// engineRowsOf compares runs of different engines.
func engineRowsOf(e *experiment.Experiment, runs []*Run) []EngineRow {
	var rows []EngineRow
	add := func(what string, measure func(*Run) (experiment.Quantity, error)) {
		m := runs[0].Manifest
		row := EngineRow{Case: m.Case, Scheme: m.Scheme, What: what}
		for _, r := range runs {
			q, err := measure(r)
			row.Values = append(row.Values, EngineValue{r.Manifest.RanOn(), q, err})
		}
		rows = append(rows, row)
	}
	for _, o := range Evaluate(e, runs[0]) {
		add(o.Expect.What, func(r *Run) (experiment.Quantity, error) {
			return r.MeasureOne(o.Expect.Measure, experiment.OverMax)
		})
	}
	for _, c := range portCounts {
		add(c.what, func(r *Run) (experiment.Quantity, error) {
			q := experiment.Quantity{Unit: c.unit}
			for _, p := range r.Ports {
				q.Value = c.join(q.Value, float64(c.of(p)))
			}
			return q, nil
		})
	}
	return rows
}

// portCounts are what engines are compared in, whatever the experiment expects.
var portCounts = []struct {
	what string
	unit experiment.Unit
	of   func(Port) uint64
	join func(a, b float64) float64 // over all ports
}{
	{"longest queue of any port", experiment.UnitBytes,
		func(p Port) uint64 { return p.QueueMaxBytes },
		func(a, b float64) float64 { return max(a, b) }},
	{"packets sent by all ports", experiment.UnitCount,
		func(p Port) uint64 { return p.SentPackets }, sum},
	{"packets marked by all ports", experiment.UnitCount,
		func(p Port) uint64 { return p.MarkedPackets }, sum},
	{"packets dropped by all ports", experiment.UnitCount, Port.DroppedPackets, sum},
	{"PAUSE frames of all ports", experiment.UnitCount,
		func(p Port) uint64 { return p.PauseSent }, sum},
	{"time paused, over all ports", experiment.UnitTime,
		func(p Port) uint64 { return uint64(p.PausedNs) }, sum},
}

func sum(a, b float64) float64 { return a + b }
