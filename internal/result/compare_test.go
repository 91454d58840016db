// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// recovering returns a run of 1000 ns in which a flow is back at its rate after so
// many bins of 100 ns; of 10 or more, it never is.
func recovering(caseName, scheme string, bins int) *Run {
	r := &Run{Manifest: Manifest{Case: caseName, Scheme: scheme, DurationNs: 1000, SampleNs: 100}}
	for i := range 10 {
		s := Sample{TimeNs: int64(100 * i), Kind: KindFlow, Name: "F0"}
		if i >= bins {
			s.RateBps = 10
		}
		r.Series = append(r.Series, s)
	}
	return r
}

// summary writes an outcome in lines, as a program would.
func summary(o CompareOutcome) []string {
	var lines []string
	for _, v := range o.Values {
		paper := "-"
		if v.Paper != nil {
			paper = v.Paper.String()
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s [%s] %v", v.Scheme, paper,
			v.Short(), v.Ratio(), v.Bound(), v.Pass)))
	}
	for _, relation := range o.Relations() {
		lines = append(lines, fmt.Sprintf("%s: %s: %v", relation.Asked, relation.Measured,
			relation.Holds))
	}
	return append(lines, fmt.Sprint(o.Pass))
}

func ns(value float64) experiment.Quantity {
	return experiment.Quantity{Value: value, Unit: experiment.UnitTime}
}

func TestEvaluateCompare(t *testing.T) {
	recovery := experiment.Measure{Metric: experiment.RecoveryTime, Flows: []string{"F0"},
		Target: &experiment.Quantity{Value: 10}, Hold: 100}
	paper := map[string]experiment.Quantity{"pcn": ns(100), "qcn": ns(400), "dcqcn": ns(400),
		"timely": ns(800)}
	for _, tc := range []struct {
		name string
		c    experiment.Compare
		runs []*Run
		want []string
	}{
		{
			"all near the paper, in order",
			experiment.Compare{Paper: paper, Within: 0.5, Order: true,
				Ratios: &experiment.Ratios{To: "pcn", Min: 3}},
			[]*Run{recovering("", "timely", 7), recovering("", "pcn", 1),
				recovering("", "dcqcn", 5), recovering("", "qcn", 3)},
			[]string{
				"pcn 100ns 100ns 1 [50ns to 150ns] true",
				"dcqcn 400ns 500ns 1.25 [200ns to 600ns] true",
				"timely 800ns 700ns 0.875 [400ns to 1.2us] true",
				"qcn 400ns 300ns 0.75 [200ns to 600ns] true",
				"pcn < dcqcn = qcn < timely: pcn 100ns, qcn 300ns, dcqcn 500ns, timely 700ns: true",
				"each at least 3 times pcn: dcqcn 5 times, timely 7 times, qcn 3 times: true",
				"true",
			},
		},
		{
			"too far from the paper",
			experiment.Compare{Paper: paper, Within: 0.2},
			[]*Run{recovering("", "pcn", 1), recovering("", "qcn", 3)},
			[]string{"pcn 100ns 100ns 1 [80ns to 120ns] true",
				"qcn 400ns 300ns 0.75 [320ns to 480ns] false", "false"},
		},
		{
			"within more than all of it",
			experiment.Compare{Paper: paper, Within: 1.5},
			[]*Run{recovering("", "pcn", 0)},
			[]string{"pcn 100ns 0ns 0 [0ns to 250ns] true", "true"},
		},
		{
			"bounds instead of within",
			experiment.Compare{Paper: paper, Within: 0.2,
				Bounds: map[string]experiment.Bounds{"pcn": {Max: new(ns(300))}}},
			[]*Run{recovering("", "pcn", 3)},
			[]string{"pcn 100ns 300ns 3 [at most 300ns] true", "true"},
		},
		{
			"above a bound",
			experiment.Compare{Paper: paper,
				Bounds: map[string]experiment.Bounds{"pcn": {Min: new(ns(100)),
					Max: new(ns(200))}}},
			[]*Run{recovering("", "pcn", 3)},
			[]string{"pcn 100ns 300ns 3 [100ns to 200ns] false", "false"},
		},
		{
			"a scheme the paper says nothing about",
			experiment.Compare{Paper: paper, Within: 0.5, Order: true,
				Ratios: &experiment.Ratios{To: "pcn", Min: 4}},
			[]*Run{recovering("", "pcn", 1), recovering("", "cubic", 0), recovering("", "qcn", 4)},
			[]string{
				"pcn 100ns 100ns 1 [50ns to 150ns] true",
				"qcn 400ns 400ns 1 [200ns to 600ns] true",
				"cubic - 0ns  [] true",
				"pcn < qcn: pcn 100ns, qcn 400ns: true",
				"each at least 4 times pcn: qcn 4 times: true",
				"true",
			},
		},
		{
			"an error of a scheme that is not judged",
			experiment.Compare{Paper: paper},
			[]*Run{recovering("", "pcn", 1), recovering("", "cubic", 10)},
			[]string{"pcn 100ns 100ns 1 [] true", "cubic - not reached  [] true", "true"},
		},
		{
			"not in order",
			experiment.Compare{Paper: paper, Order: true},
			[]*Run{recovering("", "pcn", 5), recovering("", "qcn", 4), recovering("", "timely", 8)},
			[]string{
				"pcn 100ns 500ns 5 [] true", "timely 800ns 800ns 1 [] true",
				"qcn 400ns 400ns 1 [] true",
				"pcn < qcn < timely: qcn 400ns, pcn 500ns, timely 800ns: false", "false",
			},
		},
		{
			"a tie is no order",
			experiment.Compare{Paper: paper, Order: true},
			[]*Run{recovering("", "pcn", 4), recovering("", "qcn", 4)},
			[]string{"pcn 100ns 400ns 4 [] true", "qcn 400ns 400ns 1 [] true",
				"pcn < qcn: pcn 400ns, qcn 400ns: false", "false"},
		},
		{
			"the first and the last are out of order",
			experiment.Compare{Paper: paper, Order: true},
			[]*Run{recovering("", "pcn", 2), recovering("", "qcn", 1), recovering("", "dcqcn", 3)},
			[]string{
				"pcn 100ns 200ns 2 [] true", "dcqcn 400ns 300ns 0.75 [] true",
				"qcn 400ns 100ns 0.25 [] true",
				"pcn < dcqcn = qcn: qcn 100ns, pcn 200ns, dcqcn 300ns: false", "false",
			},
		},
		{
			"not reached is longer than the run",
			experiment.Compare{Paper: paper, Order: true,
				Ratios: &experiment.Ratios{To: "pcn", Min: 5}},
			[]*Run{recovering("", "pcn", 2), recovering("", "qcn", 10),
				recovering("", "timely", 10)},
			[]string{
				"pcn 100ns 200ns 2 [] true", "timely 800ns not reached  [] true",
				"qcn 400ns not reached  [] true",
				"pcn < qcn < timely: pcn 200ns, qcn not reached, timely not reached: true",
				"each at least 5 times pcn: timely over 5 times, qcn over 5 times: true",
				"true",
			},
		},
		{
			"longer than the run may be too little",
			experiment.Compare{Paper: paper, Ratios: &experiment.Ratios{To: "pcn", Min: 5.5}},
			[]*Run{recovering("", "pcn", 2), recovering("", "qcn", 10)},
			[]string{"pcn 100ns 200ns 2 [] true", "qcn 400ns not reached  [] true",
				"each at least 5.5 times pcn: qcn over 5 times: false", "false"},
		},
		{
			"not reached before what was reached",
			experiment.Compare{Paper: paper, Order: true,
				Ratios: &experiment.Ratios{To: "pcn", Min: 2}},
			[]*Run{recovering("", "pcn", 10), recovering("", "qcn", 9)},
			[]string{
				"pcn 100ns not reached  [] true", "qcn 400ns 900ns 2.25 [] true",
				"pcn < qcn: qcn 900ns, pcn not reached: false",
				"each at least 2 times pcn: qcn not known: false", "false",
			},
		},
		{
			"not measured",
			experiment.Compare{Paper: paper, Order: true,
				Ratios: &experiment.Ratios{To: "pcn", Min: 2}},
			[]*Run{recovering("", "pcn", 1), {Manifest: Manifest{Scheme: "qcn", DurationNs: 1000,
				SampleNs: 100}}},
			[]string{
				"pcn 100ns 100ns 1 [] true", "qcn 400ns not measured  [] false",
				"pcn < qcn: pcn 100ns, qcn not measured: false",
				"each at least 2 times pcn: qcn not known: false", "false",
			},
		},
		{
			"times of nothing",
			experiment.Compare{Paper: map[string]experiment.Quantity{"pcn": ns(0), "qcn": ns(100),
				"timely": ns(100)}, Within: 0.5, Ratios: &experiment.Ratios{To: "pcn", Min: 10}},
			[]*Run{recovering("", "pcn", 0), recovering("", "qcn", 1), recovering("", "timely", 0)},
			[]string{
				"pcn 0ns 0ns  [0ns to 0ns] true", "timely 100ns 0ns 0 [50ns to 150ns] false",
				"qcn 100ns 100ns 1 [50ns to 150ns] true",
				"each at least 10 times pcn: timely 0ns to 0, qcn 100ns to 0: false", "false",
			},
		},
		{
			"alone",
			experiment.Compare{Paper: paper, Order: true,
				Ratios: &experiment.Ratios{To: "pcn", Min: 2}},
			[]*Run{recovering("", "qcn", 4)},
			[]string{"qcn 400ns 400ns 1 [] true", "true"},
		},
		{
			"ratios alone are of all schemes",
			experiment.Compare{Ratios: &experiment.Ratios{To: "pcn", Min: 2}},
			[]*Run{recovering("", "pcn", 2), recovering("", "cubic", 4), recovering("", "qcn", 3)},
			[]string{
				"pcn - 200ns  [] true", "qcn - 300ns  [] true", "cubic - 400ns  [] true",
				"each at least 2 times pcn: qcn 1.5 times, cubic 2 times: false", "false",
			},
		},
		{
			"ratios of some schemes",
			experiment.Compare{Schemes: []string{"pcn", "cubic"},
				Ratios: &experiment.Ratios{To: "pcn", Min: 2}},
			[]*Run{recovering("", "pcn", 2), recovering("", "cubic", 4), recovering("", "qcn", 3)},
			[]string{"pcn - 200ns  [] true", "cubic - 400ns  [] true",
				"each at least 2 times pcn: cubic 2 times: true", "true"},
		},
		{
			"listed schemes are judged without a number of their own",
			experiment.Compare{Schemes: []string{"pcn", "cubic"},
				Bounds: map[string]experiment.Bounds{"pcn": {Max: new(ns(300))}},
				Ratios: &experiment.Ratios{To: "pcn", Min: 3}},
			[]*Run{recovering("", "pcn", 2), recovering("", "cubic", 4)},
			[]string{"pcn - 200ns  [at most 300ns] true", "cubic - 400ns  [] true",
				"each at least 3 times pcn: cubic 2 times: false", "false"},
		},
		{
			"the longest of all cases",
			experiment.Compare{Paper: paper, Within: 0.5, Over: experiment.OverMax},
			[]*Run{recovering("a", "qcn", 2), recovering("b", "qcn", 6), recovering("c", "qcn", 4)},
			[]string{"qcn 400ns 600ns 1.5 [200ns to 600ns] true", "true"},
		},
		{
			"the shortest of all cases",
			experiment.Compare{Paper: paper, Within: 0.5, Over: experiment.OverMin},
			[]*Run{recovering("a", "qcn", 2), recovering("b", "qcn", 6), recovering("c", "qcn", 4)},
			[]string{"qcn 400ns 200ns 0.5 [200ns to 600ns] true", "true"},
		},
		{
			"the mean of two cases",
			experiment.Compare{Paper: paper, Over: experiment.OverMean, Cases: []string{"a", "b"}},
			[]*Run{recovering("a", "qcn", 2), recovering("b", "qcn", 6), recovering("c", "qcn", 9)},
			[]string{"qcn 400ns 400ns 1 [] true", "true"},
		},
		{
			"one case not reached",
			experiment.Compare{Paper: paper, Over: experiment.OverMin},
			[]*Run{recovering("a", "qcn", 2), recovering("b", "qcn", 10)},
			[]string{"qcn 400ns not reached  [] true", "true"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.c.Measure = recovery
			e := &experiment.Experiment{Schemes: []string{"pcn", "dcqcn", "timely", "qcn", "cubic"},
				Compare: []experiment.Compare{tc.c}}
			outcomes := EvaluateCompare(e, tc.runs)
			qt.Assert(t, qt.HasLen(outcomes, 1))
			qt.Assert(t, qt.DeepEquals(summary(outcomes[0]), tc.want))
		})
	}
}

// Links, ports and flows count as cases do.
func TestCompareOverFlows(t *testing.T) {
	r := recovering("", "pcn", 2)
	for i, s := range r.Series[:5] {
		s.Name = "F1"
		s.RateBps = uint64(i)
		r.Series = append(r.Series, s)
	}
	for over, want := range map[experiment.Over]float64{experiment.OverMax: 8,
		experiment.OverMin: 1, experiment.OverMean: 4.5, experiment.OverP50: 1,
		experiment.OverP99: 8, "": 8} {
		c := experiment.Compare{Over: over, Paper: map[string]experiment.Quantity{"pcn": {}}}
		c.Measure = experiment.Measure{Metric: experiment.MeanRate, Flows: []string{"F0", "F1"}}
		o := EvaluateCompare(&experiment.Experiment{Schemes: []string{"pcn"},
			Compare: []experiment.Compare{c}}, []*Run{r})
		qt.Check(t, qt.Equals(o[0].Values[0].Measured,
			experiment.Quantity{Value: want, Unit: experiment.UnitRate}))
	}
}

// Of flows that one scheme did not complete, none counts: its mean would be the shorter for it.
func TestCompletedByAll(t *testing.T) {
	completing := func(inCase, scheme string, fcts ...int64) *Run {
		r := recovering(inCase, scheme, 2)
		for i, fct := range fcts {
			c := Completion{Flow: "w" + strconv.Itoa(i), Group: "w", SizeBytes: 1, IdealNs: 10}
			if fct > 0 {
				c.FCTNs = &fct
			}
			r.Completions = append(r.Completions, NewCompletion(c))
		}
		return r
	}
	runs := []*Run{
		completing("a", "pcn", 10, 500, 40), completing("a", "dcqcn", 20, 0, 60),
		completing("a", "qcn", 0, 0, 0),
		completing("b", "pcn", 100, 700, 0), completing("b", "dcqcn", 110, 900, 400),
	}
	e := &experiment.Experiment{Schemes: []string{"pcn", "dcqcn", "qcn"}}
	for _, by := range []bool{false, true} {
		c := experiment.Compare{CompletedByAll: by, Schemes: []string{"pcn", "dcqcn"},
			Over: experiment.OverMean}
		c.Measure = experiment.Measure{Metric: experiment.FCTMean,
			Flows: []string{"w0", "w1", "w2"}}
		e.Compare = append(e.Compare, c)
	}
	outcomes := EvaluateCompare(e, runs)
	means := func(o CompareOutcome) (values []float64) {
		for _, v := range o.Values {
			for _, c := range v.Cases {
				values = append(values, c.Measured.Value)
			}
		}
		return values
	}
	qt.Check(t, qt.DeepEquals(means(outcomes[0]), []float64{550. / 3, 400, 40, 470}))
	qt.Check(t, qt.DeepEquals(means(outcomes[1]), []float64{25, 400, 40, 505}))
	qt.Check(t, qt.HasLen(runs[0].Completions, 3)) // the runs stay as they are
}

func TestCompareShowsEachCase(t *testing.T) {
	c := experiment.Compare{Measure: experiment.Measure{Metric: experiment.RecoveryTime,
		Flows: []string{"F0"}, Target: &experiment.Quantity{Value: 10}, Hold: 100}}
	e := &experiment.Experiment{Schemes: []string{"pcn"}, Compare: []experiment.Compare{c}}
	v := EvaluateCompare(e, []*Run{recovering("a", "pcn", 2),
		recovering("b", "pcn", 10)})[0].Values[0]
	qt.Assert(t, qt.HasLen(v.Cases, 2))
	qt.Check(t, qt.Equals(v.Cases[0], CaseValue{Case: "a", Measured: ns(200)}))
	qt.Check(t, qt.Equals(v.Cases[1].Case, "b"))
	qt.Check(t, qt.ErrorIs(v.Cases[1].Err, ErrNotReached))
	qt.Check(t, qt.Equals(v.Value(),
		"not measured: b: F0: not reached within the remaining 1us of the run"))
}

func TestNothingToCompare(t *testing.T) {
	e := &experiment.Experiment{Schemes: []string{"pcn"},
		Compare: []experiment.Compare{{Cases: []string{"b"}}}}
	qt.Check(t, qt.HasLen(EvaluateCompare(e, []*Run{recovering("a", "pcn", 2)}), 0))
	qt.Check(t, qt.HasLen(EvaluateCompare(e, nil), 0))
}

// An expectation of one case is held against runs of that case only.
func TestEvaluateCase(t *testing.T) {
	x := experiment.Expect{Measure: experiment.Measure{Metric: experiment.LostPackets},
		Max: new(experiment.Quantity{})}
	ofCase := x
	ofCase.Case = "a"
	e := &experiment.Experiment{Expect: []experiment.Expect{x, ofCase}}
	qt.Check(t, qt.HasLen(Evaluate(e, recovering("a", "pcn", 0)), 2))
	qt.Check(t, qt.HasLen(Evaluate(e, recovering("b", "pcn", 0)), 1))
	qt.Check(t, qt.HasLen(Evaluate(e, recovering("", "pcn", 0)), 1))
}
