// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

func TestSentence(t *testing.T) {
	run := func(v result.Verdict) runView {
		return runView{Run: &result.Run{Manifest: result.Manifest{Verdict: v}}}
	}
	compared := []result.CompareOutcome{{
		Values: []result.CompareValue{{Judged: true, Pass: true}, {Judged: false}},
		Order:  &result.Relation{Holds: false},
	}}
	for _, c := range []struct {
		runs       []runView
		met, total int
		compared   []result.CompareOutcome
		want       string
	}{
		{[]runView{run(result.Valid)}, 0, 0, nil,
			"The run is valid. Nothing was held against a paper."},
		{[]runView{run(result.Invalid)}, 2, 3, nil, "The run is not valid: do not use its " +
			"numbers. 2 of 3 results are within their bounds."},
		{[]runView{run(result.Valid), run(result.Invalid)}, 3, 3, nil, "1 of 2 runs are not " +
			"valid: do not use their numbers. 3 of 3 results are within their bounds."},
		{[]runView{run(result.Valid), run(result.Valid)}, 3, 3, compared,
			"Both runs are valid. 4 of 5 results are within their bounds."},
	} {
		g := groupView{Met: c.met, Total: c.total, Compared: c.compared,
			Cases: []caseView{{Runs: c.runs}}}
		qt.Check(t, qt.Equals(g.Sentence(), c.want))
	}
}

func TestHeadings(t *testing.T) {
	ms := func(who string, value float64) namedValue {
		return namedValue{who: who, value: value * 1e6, unit: experiment.UnitTime}
	}
	over := ms("TIMELY", 60)
	over.most = true
	without := namedValue{who: "BBR", none: true}
	for _, tc := range []struct {
		values []namedValue
		want   string
	}{
		{nil, ""},
		{[]namedValue{without}, ""},
		{[]namedValue{ms("PFC", 3)}, "It takes 3ms with PFC"},
		{[]namedValue{ms("PFC", 3), ms("PCN", 0)}, "It takes 3ms with PFC and 0 with PCN"},
		{[]namedValue{ms("PFC", 3), over, without},
			"It takes 3ms with PFC and over 60ms with TIMELY; there is no value for BBR"},
		{[]namedValue{ms("PFC", 3), over, ms("PCN", 1), ms("QCN", 2)},
			"It takes between 1ms (PCN) and over 60ms (TIMELY)"},
		{[]namedValue{ms("A", 1), ms("B", 1), ms("C", 1), ms("D", 1)},
			"It takes 1ms in all of them"},
		{[]namedValue{ms("PFC", 3), without, without, without, without},
			"It takes 3ms with PFC; 4 others have no value"},
	} {
		qt.Check(t, qt.Equals(sentenceOf("It takes", tc.values), tc.want))
	}
}

// A metric of a whole run has no objects to name.
func TestCaptionWithoutObjects(t *testing.T) {
	o := overCases{what: "marks that are wrong",
		m: experiment.Measure{Metric: experiment.WrongMarks, Detector: experiment.DetectECN},
		curves: []*caseCurve{{scheme: "pcn", values: []caseValue{
			{name: "a", value: experiment.Quantity{Value: 0.5, Unit: experiment.UnitShare}},
			{name: "b", value: experiment.Quantity{Value: 0.1, Unit: experiment.UnitShare}},
		}}}}
	f := o.figure([]string{"a", "b"}, []string{"pcn"})
	qt.Check(t, qt.Equals(f.caption, "Marks that are wrong: wrong marks, in each case."))
	qt.Check(t, qt.Equals(f.heading(), "Wrong marks of ECN are 50% with a/PCN and 10% with b/PCN"))
}

// What an experiment calls a metric begins with a capital, in any alphabet.
func TestCaption(t *testing.T) {
	qt.Check(t, qt.Equals(captionOf("loss lasts", "Recovery time of F0"),
		"Loss lasts: recovery time of F0"))
	qt.Check(t, qt.Equals(captionOf("\u00e9tat de S0", "Queue max"), "\u00c9tat de S0: queue max"))
	qt.Check(t, qt.Equals(captionOf("", "Queue max"), "Queue max"))
}
