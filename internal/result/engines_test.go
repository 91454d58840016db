// SPDX-License-Identifier: Apache-2.0

package result

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

func onEngine(engine, scheme string, queue, pauses uint64) *Run {
	return &Run{
		Manifest: Manifest{Engine: engine, Scheme: scheme, Seed: 1, SampleNs: 1000,
			DurationNs: 2000},
		Ports: []Port{
			{Name: "S0->S1", QueueMaxBytes: queue, PauseSent: pauses, SentPackets: 10},
			{Name: "S1->S0", QueueMaxBytes: queue / 20, PauseSent: pauses},
			{Name: "H0->S0", Tier: network.HostTier, QueueMaxBytes: 9 * queue},
		},
		// in two bins, and as much again after the run
		Flows: []Flow{{Name: "F", Proto: TCP, ReceivedBytes: 20 * queue}},
		Series: []Sample{
			{Kind: KindFlow, Name: "F", RateBps: 3 * queue * 8e6},
			{TimeNs: 1000, Kind: KindFlow, Name: "F", RateBps: 7 * queue * 8e6},
		},
		Completions: []Completion{{FCTNs: new(int64(2 * queue))}, {FCTNs: new(int64(queue))},
			{FCTNs: new(int64(3 * queue))}, {}},
	}
}

// Only runs that several engines did are compared, each with the first.
func TestEngineRows(t *testing.T) {
	runs := []*Run{onEngine("", "pcn", 1000, 2), onEngine("sim", "pcn", 1100, 1),
		onEngine("sim", "dcqcn", 1, 1)}
	rows := EngineRows(&experiment.Experiment{}, runs)
	got := map[string][2]string{}
	for _, r := range rows {
		qt.Check(t, qt.Equals(r.Scheme, "pcn"))
		qt.Assert(t, qt.HasLen(r.Values, 2))
		qt.Check(t, qt.Equals(r.Values[0].Engine, experiment.EngineKernel))
		got[r.What] = [2]string{r.Values[1].Text(), r.Difference(1)}
	}
	for what, want := range map[string][2]string{
		"longest queue of any switch":  {"1.1KB", "+10.0%"},
		"packets sent by all ports":    {"10", "equal"},
		"PAUSE frames of all ports":    {"2", "-50.0%"},
		"packets dropped by all ports": {"0", "equal"},
		"flows that ended":             {"3", "equal"},
		"median completion time":       {"2.2us", "+10.0%"},
		"longest completion time":      {"3.3us", "+10.0%"},
		"longest queue of S0->S1":      {"1.1KB", "+10.0%"},
		"packets marked by S0->S1":     {"0", "equal"},
		"time paused of S0->S1":        {"0ns", "equal"},
		"received by flow F":           {"11KB", "+10.0%"},
	} {
		qt.Check(t, qt.Equals(got[what], want), qt.Commentf("%s", what))
	}
	for _, short := range []string{"longest queue of S1->S0", "longest queue of H0->S0"} {
		_, ok := got[short]
		qt.Check(t, qt.IsFalse(ok), qt.Commentf("%s", short))
	}
	qt.Check(t, qt.HasLen(EngineRows(&experiment.Experiment{}, runs[1:]), 0))
}

func TestEngineDifference(t *testing.T) {
	for _, c := range []struct {
		first, other float64
		want         string
	}{
		{0, 0, "equal"}, {0, 1, "not 0"}, {1000, 1000.4, "under 0.1%"}, {1000, 999.6, "under 0.1%"},
		{1000, 1001, "+0.1%"}, {1000, 0, "-100.0%"},
	} {
		value := func(v float64) EngineValue {
			return EngineValue{Measured: experiment.Quantity{Value: v}}
		}
		r := EngineRow{Values: []EngineValue{value(c.first), value(c.other)}}
		qt.Check(t, qt.Equals(r.Difference(0), ""))
		qt.Check(t, qt.Equals(r.Difference(1), c.want), qt.Commentf("%g, %g", c.first, c.other))
	}
}
