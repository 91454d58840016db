// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
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
				if !c.switches || p.Tier != network.HostTier {
					q.Value = c.join(q.Value, float64(c.of(p)))
				}
			}
			return q, nil
		})
	}
	if len(runs[0].Completions) > 0 {
		for _, c := range completionTimes {
			add(c.what, c.of)
		}
	}
	for _, name := range longestQueues(runs[0]) {
		for _, c := range portCounts {
			if c.each != "" {
				add(c.each+name, func(r *Run) (experiment.Quantity, error) {
					return r.portQuantity(name, c.unit, c.of)
				})
			}
		}
	}
	for _, name := range fewFlows(runs[0]) {
		add("received by flow "+name, func(r *Run) (experiment.Quantity, error) {
			return r.receivedBy(name)
		})
	}
	return rows
}

// completionTimes are what engines are compared in if flows have sizes.
var completionTimes = []struct {
	what string
	of   func(*Run) (experiment.Quantity, error)
}{
	{"flows that ended", func(r *Run) (experiment.Quantity, error) {
		return experiment.Quantity{
			Unit: experiment.UnitCount, Value: float64(len(r.completionTimes())),
		}, nil
	}},
	{"median completion time", func(r *Run) (experiment.Quantity, error) {
		return r.completionTime(0.5)
	}},
	{"longest completion time", func(r *Run) (experiment.Quantity, error) {
		return r.completionTime(1)
	}},
}

// completionTimes returns those of the flows that ended.
func (r *Run) completionTimes() []float64 {
	var times []float64
	for _, c := range r.Completions {
		if c.FCTNs != nil {
			times = append(times, float64(*c.FCTNs))
		}
	}
	return times
}

// completionTime returns a percentile of the flows' completion times.
func (r *Run) completionTime(share float64) (experiment.Quantity, error) {
	q := experiment.Quantity{Unit: experiment.UnitTime}
	times := r.completionTimes()
	if len(times) == 0 {
		return q, errors.New("no flow ended")
	}
	q.Value = percentile(times, share)
	return q, nil
}

// So many ports have rows of their own, if their queues are so much of the longest one.
const (
	comparedPorts = 3
	comparedShare = 10
)

// longestQueues returns the names of the switches' ports with the longest queues. Those of hosts
// are not compared: Linux has bursts there before they are due.
func longestQueues(r *Run) []string {
	ports := slices.DeleteFunc(slices.Clone(r.Ports), func(p Port) bool {
		return p.Tier == network.HostTier || p.QueueMaxBytes == 0
	})
	slices.SortStableFunc(ports, func(a, b Port) int {
		return cmp.Compare(b.QueueMaxBytes, a.QueueMaxBytes)
	})
	var names []string
	for _, p := range ports[:min(len(ports), comparedPorts)] {
		if p.QueueMaxBytes >= ports[0].QueueMaxBytes/comparedShare {
			names = append(names, p.Name)
		}
	}
	return names
}

func (r *Run) portQuantity(
	name string, unit experiment.Unit, of func(Port) uint64,
) (experiment.Quantity, error) {
	p, err := r.portNamed(name)
	if err != nil {
		return experiment.Quantity{}, err
	}
	return experiment.Quantity{Unit: unit, Value: float64(of(p))}, nil
}

// mostFlows have rows of their own, if there are no more.
const mostFlows = 8

// fewFlows returns the names of the controlled flows, if they are few.
func fewFlows(r *Run) []string {
	var names []string
	for _, f := range r.Flows {
		if f.Proto == TCP {
			names = append(names, f.Name)
		}
	}
	if len(names) > mostFlows {
		return nil
	}
	return names
}

// receivedBy returns what a flow received in the time of the run. What comes after is left out:
// Linux still sends then what a socket has taken.
func (r *Run) receivedBy(name string) (experiment.Quantity, error) {
	rate, err := r.FlowRate(name)
	if err != nil {
		return experiment.Quantity{}, err
	}
	q := experiment.Quantity{Unit: experiment.UnitBytes}
	for _, bps := range rate.Values {
		q.Value += bps * float64(rate.StepNs) / 8e9
	}
	return q, nil
}

// portCounts are what engines are compared in, whatever the experiment expects.
var portCounts = []struct {
	what string
	unit experiment.Unit
	of   func(Port) uint64
	join func(a, b float64) float64 // over all ports
	each string                     // what it is of one port; empty: it is not compared
	// Hosts' ports do not count: Linux has bursts there before they are due.
	switches bool
}{
	{"longest queue of any switch", experiment.UnitBytes,
		func(p Port) uint64 { return p.QueueMaxBytes },
		func(a, b float64) float64 { return max(a, b) }, "longest queue of ", true},
	{"packets sent by all ports", experiment.UnitCount,
		func(p Port) uint64 { return p.SentPackets }, sum, "", false},
	{"packets marked by all ports", experiment.UnitCount,
		func(p Port) uint64 { return p.MarkedPackets }, sum, "packets marked by ", false},
	{"packets dropped by all ports", experiment.UnitCount, Port.DroppedPackets, sum, "", false},
	{"PAUSE frames of all ports", experiment.UnitCount,
		func(p Port) uint64 { return p.PauseSent }, sum, "", false},
	{"time paused, over all ports", experiment.UnitTime,
		func(p Port) uint64 { return uint64(p.PausedNs) }, sum, "time paused of ", false},
}

func sum(a, b float64) float64 { return a + b }
