// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// completed returns a run of 1 ms with flows that take 1 to 100 times their ideal, 100 ns, one that
// does not end and one of another group. Flow k starts at k us, and has k KB.
func completed() *Run {
	r := &Run{Manifest: Manifest{DurationNs: 1e6, SampleNs: 1e6}}
	add := func(name, group string, k int, fctNs *int64) {
		r.Flows = append(r.Flows, Flow{Name: name, Group: group, Proto: TCP})
		r.Completions = append(r.Completions, NewCompletion(Completion{
			Flow: name, Group: group, SizeBytes: uint64(k) * 1000, StartNs: int64(k) * 1000,
			FCTNs: fctNs, IdealNs: 100,
		}))
	}
	for k := 1; k <= 100; k++ {
		add(fmt.Sprintf("w%d", k), "w", k, new(int64(k*100)))
	}
	add("w101", "w", 101, nil)
	add("x", "x", 5, new(int64(1e6)))
	return r
}

func TestMetricsOfCompletions(t *testing.T) {
	r, w := completed(), []string{"w"}
	for _, tc := range []struct {
		name string
		m    experiment.Measure
		want float64
	}{
		{"mean", experiment.Measure{Metric: experiment.FCTMean, Flows: w}, 5050},
		{"median", experiment.Measure{Metric: experiment.FCTP50, Flows: w}, 5000},
		{"95th", experiment.Measure{Metric: experiment.FCTP95, Flows: w}, 9500},
		{"99th", experiment.Measure{Metric: experiment.FCTP99, Flows: w}, 9900},
		{"99.9th of 100", experiment.Measure{Metric: experiment.FCTP999, Flows: w}, 10000},
		{"slowdown", experiment.Measure{Metric: experiment.SlowdownMean, Flows: w}, 50.5},
		{"99th of slowdown", experiment.Measure{Metric: experiment.SlowdownP99, Flows: w}, 99},
		{"median of slowdown", experiment.Measure{Metric: experiment.SlowdownP50, Flows: w}, 50},
		{"95th of slowdown", experiment.Measure{Metric: experiment.SlowdownP95, Flows: w}, 95},
		{"99.9th of slowdown", experiment.Measure{Metric: experiment.SlowdownP999, Flows: w}, 100},
		{"a range of sizes", experiment.Measure{Metric: experiment.FCTMean, Flows: w,
			Sizes: experiment.Sizes{From: 10e3, To: 12e3}}, 1050},
		{"sizes up to", experiment.Measure{Metric: experiment.FCTMean, Flows: w,
			Sizes: experiment.Sizes{To: 3e3}}, 150},
		{"sizes from", experiment.Measure{Metric: experiment.FCTMean, Flows: w,
			Sizes: experiment.Sizes{From: 100e3}}, 10000},
		{"started in the window", experiment.Measure{Metric: experiment.FCTMean, Flows: w,
			From: 2000, To: 4000}, 250},
		{"two groups are one", experiment.Measure{Metric: experiment.FCTMean,
			Flows: []string{"w", "x"}, Sizes: experiment.Sizes{From: 5e3, To: 6e3}}, 500250},
		{"a flow", experiment.Measure{Metric: experiment.FCTP99, Flows: []string{"w7"}}, 700},
		{"share", experiment.Measure{Metric: experiment.Completed, Flows: w}, 100. / 101},
		{"share of a window", experiment.Measure{Metric: experiment.Completed, Flows: w,
			From: 100_000}, 0.5},
		{"share of sizes", experiment.Measure{Metric: experiment.Completed, Flows: w,
			Sizes: experiment.Sizes{From: 101e3}}, 0},
		{"per second", experiment.Measure{Metric: experiment.CompletionRate, Flows: w}, 100e3},
		// flow k ends at 1.1 k us
		{"per second of a window", experiment.Measure{Metric: experiment.CompletionRate, Flows: w,
			From: 5000, To: 10_000}, 5. / 5e-6},
		// k = 10 ends when the window begins, k = 20 when it is over
		{"per second, on the edges", experiment.Measure{Metric: experiment.CompletionRate,
			Flows: w, From: 11_000, To: 22_000}, 10. / 11e-6},
		{"per second until the last", experiment.Measure{Metric: experiment.CompletionRate,
			Flows: w, Sizes: experiment.Sizes{To: 100e3}, From: 5000}, 95. / 103.9e-6},
		{"per second before the last", experiment.Measure{Metric: experiment.CompletionRate,
			Flows: w, Sizes: experiment.Sizes{To: 100e3}, To: 100_000}, 90. / 100e-6},
		{"per second, none", experiment.Measure{Metric: experiment.CompletionRate,
			Flows: []string{"w7"}, From: 500_000}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			values, err := r.Measure(tc.m)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.HasLen(values, 1))
			qt.Check(t, qt.IsTrue(values[0].Value > tc.want*(1-1e-9) &&
				values[0].Value < tc.want*(1+1e-9) || values[0].Value == tc.want),
				qt.Commentf("%g, want %g", values[0].Value, tc.want))
			qt.Check(t, qt.Equals(values[0].Unit, tc.m.Metric.Unit()))
		})
	}
	for _, tc := range []struct {
		m    experiment.Measure
		want string
	}{
		{experiment.Measure{Metric: experiment.FCTMean, Flows: []string{"w101"}},
			"none of 1 flows completed"},
		{experiment.Measure{Metric: experiment.SlowdownP50, Flows: w, From: 200_000},
			"no such flow started from 200us to 1ms"},
		{experiment.Measure{Metric: experiment.Completed, Flows: []string{"y"}},
			"no such flow started .*"},
	} {
		_, err := r.Measure(tc.m)
		qt.Check(t, qt.ErrorMatches(err, tc.want))
	}
}

// TestMetricsOfTiers: L pauses T0 twice and T1 once, and T0 its host H while it is paused.
func TestMetricsOfTiers(t *testing.T) {
	frame := func(atNs int64, from, to string, kind PFCKind) PFCEvent {
		return PFCEvent{SentNs: atNs, EffectNs: atNs + 5, From: from, To: to, Class: 3, Kind: kind}
	}
	r := &Run{Manifest: Manifest{DurationNs: 1000, SampleNs: 1000}, PFC: []PFCEvent{
		frame(100, "L", "T0.1", Pause), frame(130, "T0", "H", Pause),
		frame(150, "L", "T0.1", Resume), frame(170, "T0", "H", Resume),
		frame(200, "T0", "H", Pause), frame(210, "T0", "H", Resume),
		// not yet stopped
		frame(300, "L", "T0.0", Pause), frame(304, "T0", "H", Pause),
		frame(310, "L", "T0.0", Resume), frame(320, "T0", "H", Resume),
		// of another class
		{SentNs: 350, EffectNs: 355, From: "L", To: "T0.0", Class: 2, Kind: Pause},
		frame(360, "T0", "H", Pause),
		{SentNs: 370, EffectNs: 375, From: "L", To: "T0.0", Class: 2, Kind: Resume},
		frame(380, "T0", "H", Resume),
		// to what stops it
		frame(390, "L", "T1", Pause), frame(396, "T1", "L", Pause), frame(397, "L", "T1", Resume),
		frame(398, "T1", "L", Resume),
		frame(400, "L", "T1", Pause), frame(410, "T0", "H", Pause), frame(420, "L", "T1", Resume),
		frame(430, "T0", "H", Resume),
	}}
	for node, tier := range map[string]string{"H": "host", "T0": "ToR", "T1": "ToR", "L": "leaf"} {
		r.Ports = append(r.Ports, Port{Node: node, Tier: tier})
	}
	r.PauseRepeats = []PauseRepeats{
		{TimeNs: 0, From: "T0", To: "H", Class: experiment.DataClass(1), Frames: 7},
		{TimeNs: 100, From: "T0", To: "H", Class: experiment.DataClass(0), Frames: 20},
		{TimeNs: 300, From: "L", To: "T0", Class: experiment.DataClass(0), Frames: 4},
	}
	all := []string{"host", "ToR", "leaf"}
	for _, tc := range []struct {
		name string
		m    experiment.Measure
		want []float64
	}{
		{"frames", experiment.Measure{Metric: experiment.TierPauseCount, Tiers: all},
			[]float64{0, 6, 5}},
		{"frames of all", experiment.Measure{Metric: experiment.TierPauseCount}, []float64{11}},
		{"frames of a class", experiment.Measure{Metric: experiment.TierPauseCount,
			Priority: new(1)}, []float64{1}},
		{"stopped of a class", experiment.Measure{Metric: experiment.TierPauseTotal,
			Priority: new(1)}, []float64{20}},
		{"depth of a class", experiment.Measure{Metric: experiment.PauseDepth, Priority: new(1)},
			[]float64{1}},
		{"frames that are repeated", experiment.Measure{Metric: experiment.TierPauseFrames,
			Tiers: all}, []float64{0, 27, 4}},
		{"those of all in a window", experiment.Measure{Metric: experiment.TierPauseFrames,
			From: 100}, []float64{24}},
		{"those of a class", experiment.Measure{Metric: experiment.TierPauseFrames,
			Priority: new(1)}, []float64{7}},
		{"those of a link", experiment.Measure{Metric: experiment.PauseFrames,
			Links: []string{"T0->H", "L->T0"}, To: 200}, []float64{27, 0}},
		{"frames in a window", experiment.Measure{Metric: experiment.TierPauseCount, Tiers: all,
			From: 130, To: 300}, []float64{0, 2, 0}},
		{"stopped", experiment.Measure{Metric: experiment.TierPauseTotal, Tiers: all},
			[]float64{0, 40 + 10 + 16 + 20 + 20 + 2, 50 + 10 + 20 + 20 + 7}},
		{"stopped by all", experiment.Measure{Metric: experiment.TierPauseTotal}, []float64{215}},
		{"stopped in a window", experiment.Measure{Metric: experiment.TierPauseTotal, Tiers: all,
			From: 150, To: 210}, []float64{0, 25 + 5, 5}},
		{"depth", experiment.Measure{Metric: experiment.PauseDepth}, []float64{2}},
		{"depth where nothing was stopped before",
			experiment.Measure{Metric: experiment.PauseDepth, From: 200}, []float64{1}},
		{"no depth", experiment.Measure{Metric: experiment.PauseDepth, From: 500}, []float64{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			values, err := r.Measure(tc.m)
			qt.Assert(t, qt.IsNil(err))
			var got []float64
			for _, v := range values {
				got = append(got, v.Value)
			}
			qt.Check(t, qt.DeepEquals(got, tc.want))
		})
	}
	_, err := r.Measure(experiment.Measure{Metric: experiment.TierPauseCount,
		Tiers: []string{"spine"}})
	qt.Check(t, qt.ErrorMatches(err, "spine: ports.csv has no node of this tier .*"))
}
