// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

func TestSentence(t *testing.T) {
	run := func(v result.Verdict) runView {
		return runView{Run: &result.Run{Manifest: result.Manifest{Verdict: v}}}
	}
	compared := []result.CompareOutcome{{
		Compare: experiment.Compare{What: "throughput is lost for"},
		Values: []result.CompareValue{{Judged: true, Pass: true}, {Judged: false},
			{Scheme: "timely", Judged: true}},
		Order: &result.Relation{Asked: "pcn < qcn", Holds: false},
	}}
	outcomes := func(met, total int) []outcomeView {
		all := make([]outcomeView, total)
		for i := range all {
			all[i].Pass = i < met
			all[i].Expect.What, all[i].Label = "the link is full", "QCN"
		}
		return all
	}
	for _, c := range []struct {
		runs       []runView
		met, total int
		compared   []result.CompareOutcome
		want       string
	}{
		{[]runView{run(result.Valid)}, 0, 0, nil,
			"The run is valid. Nothing was held against a paper."},
		{[]runView{run(result.Invalid)}, 2, 3, nil, "The run is not valid: do not use its " +
			"numbers. 2 of 3 results are within their bounds; not: the link is full (QCN)."},
		{[]runView{run(result.Valid)}, 2, 6, nil,
			"The run is valid. 2 of 6 results are within their bounds."}, // the tables name them
		{[]runView{run(result.Valid), run(result.Invalid)}, 3, 3, nil, "1 of 2 runs are not " +
			"valid: do not use their numbers. 3 of 3 results are within their bounds."},
		{[]runView{run(result.Valid), run(result.Valid)}, 3, 3, compared,
			"Both runs are valid. 4 of 6 results are within their bounds; not: throughput is " +
				"lost for (TIMELY); throughput is lost for (pcn < qcn)."},
	} {
		g := groupView{Compared: c.compared,
			Cases: []caseView{{Runs: c.runs, Outcomes: outcomes(c.met, c.total)}}}
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
		{[]namedValue{ms("PFC", 3)}, "It takes 3 ms with PFC"},
		{[]namedValue{ms("PFC", 3), ms("PCN", 0)}, "It takes 3 ms with PFC and 0 ms with PCN"},
		{[]namedValue{ms("PFC", 3), over, without},
			"It takes 3 ms with PFC and over 60 ms with TIMELY; " +
				"not reached or not measured with BBR"},
		{[]namedValue{ms("PFC", 3), over, ms("PCN", 1), ms("QCN", 2)},
			"It takes 1 ms (PCN) to over 60 ms (TIMELY)"},
		{[]namedValue{ms("PFC", 3), ms("A", 0), ms("B", 0), ms("C", 0.6)},
			"It takes 0 ms (A and B) to 3 ms (PFC)"},
		{[]namedValue{ms("A", 0), ms("B", 0)}, "It takes 0 with A and 0 with B"},
		// One unit for all, that of the axis, but not for what is next to nothing in it.
		{[]namedValue{ms("PFC", 3.456), ms("PCN", 0.6), ms("QCN", 0.0042)},
			"It takes 3.46 ms with PFC, 0.6 ms with PCN and 4.2 us with QCN"},
		{[]namedValue{ms("A", 1), ms("B", 1), ms("C", 1), ms("D", 1)},
			"It takes 1 ms with each of 4"},
		{[]namedValue{ms("A", 0.9971), ms("B", 0.9972), ms("C", 0.9973)},
			"It takes 997 us with A, B and C"},
		{[]namedValue{ms("PFC", 3), without, without, without, without},
			"It takes 3 ms with PFC; not reached or not measured with 4 others"},
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
	qt.Check(t, qt.Equals(captionOf("both share", "Jain's index"), "Both share: Jain's index"))
}

// What an experiment compares is a noun, or a phrase that its values end.
func TestComparedInWords(t *testing.T) {
	for what, want := range map[string]string{
		"throughput is lost for":        "Throughput is lost for",
		"throughput loss lasts":         "Throughput loss lasts",
		"mean completion time":          "Mean completion time:",
		"mean, PCN's least (2 times)":   "Mean, PCN's least:",
		"PAUSE frames, as papers count": "PAUSE frames, as papers count:",
	} {
		qt.Check(t, qt.Equals(comparedInWords(what), want))
	}
}

// Metrics have words that say what they are.
func TestMetricTitle(t *testing.T) {
	for metric, want := range map[experiment.Metric]string{
		experiment.MeanRate: "Mean rate", experiment.QueueP99: "99th percentile of the queue",
		experiment.QueueMean: "Mean queue", experiment.FCTMean: "Mean completion time",
		experiment.FCTP50: "Median of the completion time",
		experiment.Jain:   "Jain's fairness index",
	} {
		qt.Check(t, qt.Equals(metricTitle(metric), want))
	}
}

// Over cases, a report begins with a metric that is not the same for all of them, and draws it.
func TestMetricOverCases(t *testing.T) {
	row := func(run, name string, values ...float64) metricRow {
		m := result.SeedsMetric{NamedMetric: experiment.NamedMetric{Name: name,
			Measure: experiment.Measure{Metric: experiment.StalledFlows}}}
		text := "not measured"
		for _, v := range values {
			m.Values = append(m.Values, experiment.Quantity{Value: v, Unit: experiment.UnitCount})
		}
		if len(values) > 0 {
			m.Spread = new(result.SpreadOf(m.Values))
			text = m.Spread.Median.String()
		}
		return metricRow{run, name, "Flows: " + name, text, m}
	}
	rows := []metricRow{row("a/PFC", "lost", 0), row("a/PFC", "stalled", 318),
		row("b/PFC", "lost", 0), row("b/PFC", "stalled", 1)}
	found := metricOverCases(rows)
	qt.Check(t, qt.Equals(metricSentence(found), "Flows: stalled: 318 with a/PFC and 1 with b/PFC"))
	qt.Check(t, qt.HasLen(metricOverCases(rows[:2]), 0))
	qt.Check(t, qt.HasLen(metricOverCases(nil), 0))
	for _, run := range []string{"c", "d", "e", "f"} {
		rows = append(rows, row(run, "stalled", 2))
	}
	qt.Check(t, qt.HasLen(metricOverCases(rows), 0))

	f := metricFigure(append(found, row("c/PFC", "stalled"), row("d/PFC", "stalled", 4, 5, 9)))
	qt.Check(t, qt.Equals(f.heading(), "Flows: stalled: 318 with a/PFC, 1 with b/PFC, "+
		"not measured with c/PFC and 5 with d/PFC"))
	over := f.live().Panels[0].Over
	qt.Assert(t, qt.HasLen(over, 2))
	var texts []string
	for _, b := range over[0].Bars {
		texts = append(texts, b.Text)
	}
	qt.Check(t, qt.DeepEquals(texts, []string{"318", "1", "none", "5"}))
	qt.Check(t, qt.HasLen(over[1].Intervals, 1)) // of the one with seeds
}

// The first sentence has its figure first, whatever else is drawn.
func TestFindingIsDrawnFirst(t *testing.T) {
	e, runs := both(t)
	e.Metrics = []experiment.NamedMetric{{Name: "rate", Over: experiment.OverMin,
		Measure: experiment.Measure{Metric: experiment.MeanRate, Flows: []string{"F0"},
			From: experiment.Millisecond}}}
	begins := func(e *experiment.Experiment, runs []*result.Run) (sentence, figure string) {
		page := render(t, e, runs)
		_, sentence, _ = strings.Cut(page, `<p class="sentence">`)
		sentence, _, _ = strings.Cut(sentence, "</p>")
		return sentence, titles(page)[0]
	}
	sentence, figure := begins(e, runs)
	qt.Check(t, qt.Matches(sentence, `Throughput loss lasts .*TIMELY\.`))
	qt.Check(t, qt.Equals(figure, "(a) "+sentence))

	e.Compare = nil
	two := []*result.Run{runs[0], runs[3], runs[8]} // calm/PFC, calm/PCN and wild/PCN
	sentence, figure = begins(e, two)
	qt.Check(t, qt.Matches(sentence,
		`Mean rate of F0, from 1ms on: [0-9.]+Gbps with calm/PFC, .* and .* with wild/PCN\.`))
	qt.Check(t, qt.Equals(figure, "(a) "+sentence))
}

// The heading of queues compares the schemes by the longest queue of each. It names a port only if
// that is the longest in every run.
func TestQueueSentence(t *testing.T) {
	run := func(label string, bytes ...uint64) runView {
		r := &result.Run{Manifest: result.Manifest{DurationNs: 1, SampleNs: 1}}
		for i, port := range []string{"S0->S1", "S1->R1"} {
			r.Series = append(r.Series, result.Sample{Name: port, Kind: result.KindPort,
				QueueMaxBytes: bytes[i]})
		}
		return runView{Run: r, Label: label}
	}
	ports := []string{"S0->S1", "S1->R1"}
	qt.Check(t, qt.Equals(queueSentence([]runView{run("PFC", 1000, 3000), run("PCN", 500, 2000)},
		ports), "The queue of S1->R1 grows to 3 KB with PFC and 2 KB with PCN"))
	for _, runs := range [][]runView{
		{run("PFC", 1000, 3000), run("PCN", 2000, 500)},
		{run("PFC", 3000, 1000), run("PCN", 500, 2000)},
	} {
		qt.Check(t, qt.Equals(queueSentence(runs, ports),
			"The longest queue drawn grows to 3 KB with PFC and 2 KB with PCN"))
	}
}
