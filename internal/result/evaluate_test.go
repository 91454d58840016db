// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// load returns hol, for 19 ms whatever the file says.
func load(t *testing.T) *experiment.Experiment {
	t.Helper()
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	e, err = e.With(experiment.Changes{Duration: new(19 * experiment.Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	return e
}

func rate(bps float64) *experiment.Quantity {
	return &experiment.Quantity{Value: bps, Unit: experiment.UnitRate}
}

// failed returns what is not met, in words.
func failed(outcomes []result.Outcome) []string {
	var what []string
	for _, o := range outcomes {
		if !o.Pass {
			what = append(what, o.Expect.What)
		}
	}
	return what
}

// Runs of the shape of Fig. 2 meet all that hol expects; each expectation fails,
// alone, when what it is about goes wrong.
func TestEvaluateHeadOfLine(t *testing.T) {
	const (
		us = int64(1000)
		ms = 1000 * us
	)
	setRate := func(r *result.Run, flow string, from, to int64, bps uint64) {
		for i, s := range r.Series {
			if s.Kind == result.KindFlow && s.Name == flow && s.TimeNs >= from && s.TimeNs < to {
				r.Series[i].RateBps = bps
			}
		}
	}
	dropEvents := func(r *result.Run, drop func(e result.PFCEvent) bool) {
		r.PFC = slices.DeleteFunc(r.PFC, drop)
	}
	pause := func(r *result.Run, to string, from, until int64) {
		r.PFC = append(r.PFC,
			result.PFCEvent{SentNs: from, EffectNs: from, From: "S0", To: to, Kind: result.Pause},
			result.PFCEvent{SentNs: until, EffectNs: until, From: "S0", To: to,
				Kind: result.Resume})
	}
	for _, tc := range []struct {
		name, scheme string
		spoil        func(r *result.Run)
		want         []string
	}{
		{"as in the paper", "pfc", func(r *result.Run) {}, nil},
		{"no PAUSE to H1", "pfc", func(r *result.Run) {
			dropEvents(r, func(e result.PFCEvent) bool { return e.To == "H1" })
		}, []string{"PAUSE reaches H0 and H1"}},
		{"PAUSE too long", "pfc", func(r *result.Run) { pause(r, "H0", 3800*us, 3801*us) },
			[]string{
				"PAUSE reaches H0 and H1",
			}},
		{"F1 does not collapse", "pfc", func(r *result.Run) { setRate(r, "F1", 0, 3*ms, 7e9) },
			[]string{"F0 and F1 both collapse in that time"}},
		{"F0 slow after PAUSE", "pfc", func(r *result.Run) { setRate(r, "F0", 3*ms, 4*ms, 17e9) },
			[]string{"F0 recovers at once after the last PAUSE to a host"}},

		{"as in the paper", "pcn", func(r *result.Run) {}, nil},
		{"a PAUSE to a host", "pcn", func(r *result.Run) { pause(r, "H0", 200*us, 201*us) },
			[]string{"no PAUSE reaches H0 or H1"}},
		{"PAUSE to S0 goes on", "pcn", func(r *result.Run) {
			r.PFC = append(r.PFC, result.PFCEvent{SentNs: ms, EffectNs: ms, From: "S1", To: "S0",
				Kind: result.Pause})
		}, []string{"PAUSE from S1 to S0 ends early, if there is any"}},
		{"no PAUSE at all is early enough", "pcn", func(r *result.Run) { r.PFC = nil }, nil},
		{"link idle until 3 ms", "pcn", func(r *result.Run) {
			setRate(r, "F0", 2*ms, 3*ms, 36e9)
		}, []string{"F0 and F1 together are back at 95% of the link"}},
		{"F0 does not take over", "pcn", func(r *result.Run) {
			setRate(r, "F0", ms, 3*ms, 29e9)
			setRate(r, "F1", ms, 3*ms, 11e9)
		}, []string{"F0 takes over what F1 leaves while the burst lasts"}},
		{"F1 not back", "pcn", func(r *result.Run) {
			setRate(r, "F1", 4*ms, 19*ms, 17e9)
			setRate(r, "F0", 4*ms, 19*ms, 22e9)
		}, []string{"F1 is back at 90% of 20 Gbit/s after the burst"}},
		{"burst does not end", "pcn", func(r *result.Run) {
			r.Flows[len(r.Flows)-1].EndNs = nil
		}, []string{"F1 is back at 90% of 20 Gbit/s after the burst"}},
		{"a packet lost", "pcn", func(r *result.Run) { r.Ports[3].DroppedRingPackets = 1 },
			[]string{"no packet is lost"}},
		{"a packet lost elsewhere", "pcn",
			func(r *result.Run) { r.Manifest.LostPackets["switch: no route"] = 1 },
			[]string{"no packet is lost"}},
		{"late", "pcn", func(r *result.Run) { r.Manifest.LatenessP99Ns = 1501 },
			[]string{"emulation is on time, against the base round trip"}},
		{"just on time", "pcn", func(r *result.Run) { r.Manifest.LatenessP99Ns = 1500 }, nil},
	} {
		t.Run(tc.scheme+"/"+tc.name, func(t *testing.T) {
			e := load(t)
			r := resulttest.Fig2(e, tc.scheme)
			tc.spoil(r)
			outcomes := result.Evaluate(e, r)
			qt.Assert(t, qt.HasLen(outcomes, map[string]int{"pfc": 5, "pcn": 7}[tc.scheme]))
			qt.Assert(t, qt.DeepEquals(failed(outcomes), tc.want))
		})
	}
}

func TestMeasured(t *testing.T) {
	e := load(t)
	var got []string
	for _, scheme := range []string{"pfc", "pcn"} {
		for _, o := range result.Evaluate(e, resulttest.Fig2(e, scheme)) {
			qt.Assert(t, qt.IsNil(o.Err))
			var values []string
			for _, v := range o.Measured {
				values = append(values, v.String())
			}
			got = append(got, scheme+" "+string(o.Expect.Metric)+" "+strings.Join(values, " "))
		}
	}
	qt.Assert(t, qt.DeepEquals(got, []string{
		"pfc pause_span 2.8ms 2.797ms", // 400 to 3200 us, and to 3172+25 us
		"pfc mean_rate 2.602Gbps 2.401Gbps",
		"pfc recovery_time 100us",
		"pfc lost_packets 0",
		"pfc lateness_p99 0.3%",
		"pcn pause_count 0 0",
		"pcn pause_end 892us",     // 880+12 us
		"pcn recovery_time 1.1ms", // 26+11*(t-0.2)/0.8 = 38 at t = 1.07
		"pcn mean_rate 38.5Gbps",
		// 20*(1-0.96*exp(-(t-3)/3.4)) = 18 at t = 10.69, burst ends at 2.9
		"pcn recovery_time 7.8ms",
		"pcn lost_packets 0",
		"pcn lateness_p99 0.3%",
	}))
}

func TestWhatCanNotBeMeasured(t *testing.T) {
	e := load(t)
	link, flow := []string{"S0->H0"}, []string{"F0"}
	for _, tc := range []struct {
		name string
		m    experiment.Measure
		want string
	}{
		{"window beyond the run", experiment.Measure{Metric: experiment.MeanRate, Flows: flow,
			To: 20 * experiment.Millisecond},
			"the run ends at 19ms, before the metric's window does"},
		{"window without a bin", experiment.Measure{Metric: experiment.MeanRate, Flows: flow,
			From: 1050 * experiment.Microsecond, To: 1150 * experiment.Microsecond},
			"F0: the window has no whole bin of the series"},
		{"flow without series", experiment.Measure{Metric: experiment.MeanRate,
			Flows: []string{"F9"}}, "F9: series has no flow F9"},
		{"no PAUSE to count from", experiment.Measure{Metric: experiment.RecoveryTime, Flows: flow,
			Since: experiment.SincePauseEnd, Links: link, Target: rate(1), Hold: 1},
			`F0: no PAUSE was sent on \[S0->H0\]`},
		{"target not reached", experiment.Measure{Metric: experiment.RecoveryTime, Flows: flow,
			Since: experiment.SinceStart, Target: rate(50e9), Hold: 1},
			"F0: not reached within the remaining 19ms of the run"},
		{"unknown metric", experiment.Measure{Metric: "goodput"}, `unknown metric "goodput"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := resulttest.Fig2(e, "pcn").Measure(tc.m)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
	r := resulttest.Fig2(e, "pcn")
	r.Manifest.BaseRTTNs = 0
	_, err := r.Measure(experiment.Measure{Metric: experiment.LatenessP99})
	qt.Assert(t, qt.ErrorMatches(err, "the manifest has no base_rtt_ns"))
}

// Every metric that a file may name is measured.
func TestEveryMetricIsImplemented(t *testing.T) {
	e := load(t)
	r := resulttest.Fig2(e, "pfc")
	r.Flows[0].CompletionNs, r.Flows[0].EndNs = 5000, new(int64(4000))
	r.Completions = []result.Completion{result.NewCompletion(result.Completion{Flow: "F0",
		FCTNs: new(int64(5000)), IdealNs: 2500})}
	r.States = []result.State{{TimeNs: 0, Port: "S0->S1", TCD: result.Congestion, OffNs: 1}}
	r.Programs = []result.Program{{Name: "a", StartNs: new(int64(0)), ExitCode: new(0),
		Files: map[string][]byte{result.StdoutFile: []byte(`{"n": [7]}`)}}}
	for _, m := range experiment.Metrics() {
		t.Run(string(m), func(t *testing.T) {
			values, err := r.Measure(experiment.Measure{
				Metric: m, Program: "a", Says: "7", JSON: "n.0",
				Links: []string{"S1->S0"}, Flows: []string{"F0"},
				Ports:  []string{"S0->S1"},
				Target: rate(20e9), Band: 0.5, Hold: 500e3, Detector: experiment.DetectTCD,
			})
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.HasLen(values, 1))
			qt.Assert(t, qt.Equals(values[0].Unit, m.Unit()))
		})
	}
}

// An expectation without values is not met by default.
func TestNothingMeasuredIsNoPass(t *testing.T) {
	e := load(t)
	e.Expect = []experiment.Expect{{Measure: experiment.Measure{Metric: experiment.MeanRate},
		Max: &experiment.Quantity{Value: 1, Unit: experiment.UnitRate}}}
	outcomes := result.Evaluate(e, resulttest.Fig2(e, "pcn"))
	qt.Assert(t, qt.IsFalse(outcomes[0].Pass))
}

// The made-up runs add up, or they would prove nothing.
func TestFig2AddsUp(t *testing.T) {
	e := load(t)
	for _, scheme := range []string{"pfc", "pcn"} {
		r := resulttest.Fig2(e, scheme)
		qt.Assert(t, qt.HasLen(r.Conservation(), 0))
		dir := t.TempDir()
		qt.Assert(t, qt.IsNil(r.Write(dir)))
		back, err := result.Read(dir)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(failed(result.Evaluate(e, back)), nil))
	}
}

// Of many values, only the ends are written.
func TestManyValuesInWords(t *testing.T) {
	var o result.Outcome
	for i := range 16 {
		o.Measured = append(o.Measured, *rate(float64(16-i) * 1e9))
	}
	qt.Check(t, qt.StringContains(o.Value(), "16Gbps, 15Gbps, 14Gbps"))
	o.Measured = append(o.Measured, *rate(7e9))
	qt.Check(t, qt.Equals(o.Value(), "17 values from 1Gbps to 16Gbps"))
}
