// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// sweepOf is a metric at two points under two schemes, of so many seeds.
func sweepOf(seeds int) Sweep {
	m := SweepMetric{Name: "queue", Measure: experiment.Measure{Metric: experiment.QueueMax,
		Ports: []string{"S0->R0", "S1->R1"}}, Over: experiment.OverMin}
	for p := range 2 {
		for i, scheme := range []string{"pfc", "pcn"} {
			mean := float64(1000 * (1 + p + i))
			half := mean / 4 * float64(min(seeds-1, 1))
			m.Rows = append(m.Rows, SweepRow{
				Point: p, Columns: []string{[]string{"a<b", "c"}[p]}, Scheme: scheme, Runs: seeds,
				Values: seeds,
				Mean:   mean, Low: mean - half, High: mean + half, Text: "so much",
			})
		}
	}
	return Sweep{
		Title: "T & t", Name: "s", Seeds: seeds, Schemes: []string{"pfc", "pcn"},
		Points: []string{"a<b", "c"}, PointHeader: []string{"x"},
		Metrics: []SweepMetric{m},
	}
}

func pageOf(t *testing.T, s Sweep) string {
	t.Helper()
	var page bytes.Buffer
	qt.Assert(t, qt.IsNil(WriteSweep(&page, s)))
	return page.String()
}

const barWidth = "stroke-width:0.9"

func TestSweepReport(t *testing.T) {
	page := pageOf(t, sweepOf(3))
	for _, want := range []string{"T &amp; t", "Longest queue of S0-&gt;R0, S1-&gt;R1 (min)",
		"<th>x</th>", "a&lt;b", "All runs are valid.", "<svg"} {
		qt.Check(t, qt.StringContains(page, want))
	}
	qt.Check(t, qt.IsFalse(strings.Contains(page, "Bounds")))
	qt.Check(t, qt.Equals(page, pageOf(t, sweepOf(3))))
	// error bars are lines of a width that nothing else has, in one path a scheme
	qt.Check(t, qt.Equals(strings.Count(page, barWidth), 2))
	qt.Check(t, qt.Equals(strings.Count(pageOf(t, sweepOf(1)), barWidth), 0))
}

// The file of values has each mean and the ends of its interval.
func TestValuesOfSweep(t *testing.T) {
	s := sweepOf(3)
	s.Metrics[0].Rows[0].Seeds = []float64{800, 900, 1300}
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(s.figure(s.Metrics[0]).writeCSV(&buf)))
	for _, want := range []string{
		"PFC,a<b,1,KB",
		`"PFC, 95% confidence interval",a<b,0.75,KB`,
		`"PFC, 95% confidence interval",a<b,1.25,KB`,
		`"PCN, 95% confidence interval",c,3.75,KB`,
		"one seed,a<b,0.8,KB", "one seed,a<b,1.3,KB",
	} {
		qt.Check(t, qt.StringContains(buf.String(), ","+want+"\n"))
	}
}

// A scheme's parameter is explained by what its source says of it.
func TestSweepParameters(t *testing.T) {
	s := sweepOf(1)
	s.PointHeader = []string{"pcn.T"}
	doc := scheme.Builtin().Sections()["pcn"].Param("T").Doc
	qt.Check(t, qt.StringContains(pageOf(t, s), "<dt>pcn.T</dt><dd>"+doc+"</dd>"))
	s.PointHeader = []string{"noise.scheduling"}
	qt.Check(t, qt.StringContains(pageOf(t, s), "<dt>noise.scheduling</dt><dd>mean of a random"))
	for _, path := range []string{"pcn.nothing", "duration", "x"} {
		qt.Check(t, qt.HasLen(parametersOf([]string{path}, scheme.Builtin()), 0))
	}
}

// Without a value there is no figure, and with one point the axis is of schemes.
func TestSweepReportOfLittle(t *testing.T) {
	s := sweepOf(2)
	for i := range s.Metrics[0].Rows {
		s.Metrics[0].Rows[i].Values = 0
	}
	page := pageOf(t, s)
	qt.Check(t, qt.IsFalse(strings.Contains(page, "<svg")))
	qt.Check(t, qt.Equals(strings.Count(page, `<td class="n">2</td><td class="n">2</td>`), 4))

	s = sweepOf(2)
	s.Points, s.Metrics[0].Rows = s.Points[:1], s.Metrics[0].Rows[:2]
	s.Outcomes = []SweepOutcome{{Metric: "queue", Scheme: "pcn", Mean: "1", Bound: "at most 2",
		Pass: true}, {Metric: "queue", Scheme: "pfc"}}
	s.Invalid = []InvalidCell{{"pfc-s1", []string{"late"}}}
	page = pageOf(t, s)
	for _, want := range []string{">pcn<", "1 of 2 bounds are met.",
		"1 run is invalid, and left out of all means.",
		"late"} {
		qt.Check(t, qt.StringContains(page, want))
	}
}

// A sweep over two parameters is a map: the first downwards, the second across, and a panel for
// each scheme. The least value is pale, the greatest dark. What is not the mean of all runs is
// marked.
func TestSweepMap(t *testing.T) {
	s := sweepOf(2)
	s.PointHeader = []string{"T", "w_min"}
	m := &s.Metrics[0]
	m.Rows = nil
	for p, columns := range [][]string{
		{"1us", "1/2"}, {"1us", "1/4"}, {"2us", "1/2"}, {"2us", "1/4"},
	} {
		m.Rows = append(m.Rows, SweepRow{
			Point: p, Columns: columns, Scheme: "pcn", Runs: 2, Values: 2,
			Mean: float64(1000 * (p + 1)),
		})
	}
	m.Rows[2].Values, m.Rows[3].Values = 0, 1
	m.Measure.Target, s.Duration = &experiment.Quantity{}, "5ms"
	h := s.heatmap(*m)
	const note = " Means leave out 3 of 8 runs (*; none: all)"
	qt.Check(t, qt.StringContains(h.Caption, note+", which did not reach the target in 5ms."))
	s.Invalid = []InvalidCell{{"pcn-s1", nil}} // or were invalid
	qt.Check(t, qt.StringContains(s.heatmap(*m).Caption, note+"."))
	qt.Assert(t, qt.HasLen(h.Panels, 1))
	p := h.Panels[0]
	qt.Check(t, qt.Equals(p.Label, "PCN"))
	qt.Check(t, qt.DeepEquals(p.Columns, []string{"1/2", "1/4"}))
	qt.Check(t, qt.DeepEquals(p.Rows, []heatRow{
		{"1us", []heatCell{{"1", heatStyle(0)}, {"2", heatStyle(1. / 3)}}},
		{"2us", []heatCell{{Text: "none"}, {"4*", heatStyle(1)}}},
	}))
	page := pageOf(t, s)
	qt.Check(t, qt.StringContains(page,
		"Longest queue of S0-&gt;R0, S1-&gt;R1 (min), mean over the seeds, in KB."))
	qt.Check(t, qt.StringContains(page, "<th>w_min 1/4</th>"))
	qt.Check(t, qt.IsFalse(strings.Contains(page, "<svg")))
}

// The heading names each scheme's least and largest value with its point, of many schemes only
// those of all; one that does not change has no point.
func TestSweepSentence(t *testing.T) {
	const of = "Longest queue of S0->R0 and S1->R1: "
	s := sweepOf(1)
	s.PointHeader = []string{"bursts.burst.size"}
	m := &s.Metrics[0]
	qt.Check(t, qt.Equals(s.finding(), of+
		"1 KB (burst size a<b) to 2 KB (burst size c) with PFC; "+
		"2 KB (burst size a<b) to 3 KB (burst size c) with PCN."))
	qt.Check(t, qt.Equals(s.figure(*m).xLabel, "burst size"))
	m.Rows[3].Mean = m.Rows[1].Mean
	m.Rows[2].Values = 0
	qt.Check(t, qt.Equals(s.finding(),
		of+"1 KB at burst size a<b with PFC; 2 KB at every point with PCN."))

	for i, scheme := range []string{"qcn", "timely"} {
		s.Schemes = append(s.Schemes, scheme)
		m.Rows = append(m.Rows, SweepRow{Point: 1, Columns: []string{"c"}, Scheme: scheme,
			Runs: 1, Values: 1, Mean: float64(5000 * (i + 1))})
	}
	qt.Check(t, qt.Equals(s.finding(),
		of+"1 KB (PFC, burst size a<b) to 10 KB (TIMELY, burst size c)."))
}
