// SPDX-License-Identifier: Apache-2.0

package report

import (
	"image/color"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

func TestValueAxis(t *testing.T) {
	for _, tc := range []struct {
		name   string
		unit   experiment.Unit
		values []float64
		label  string
		ticks  []string
	}{
		{"times", experiment.UnitTime, []float64{1.4e6, 3.1e6}, "x (ms)",
			[]string{"0", "1", "2", "3"}},
		{"long times", experiment.UnitTime, []float64{1e9}, "x (s)", []string{"0", "0.5", "1"}},
		{"short times", experiment.UnitTime, []float64{900}, "x (ns)",
			[]string{"0", "500", "1000"}},
		{"30 times is linear", experiment.UnitTime, []float64{1e6, 30e6}, "x (ms)",
			[]string{"0", "10", "20", "30"}},
		{"31 times is logarithmic", experiment.UnitTime, []float64{1e6, 31e6}, "x (ms)",
			[]string{"0.1", "1", "10"}},
		{"0 does not count", experiment.UnitTime, []float64{0, 30e6, 20e6}, "x (ms)",
			[]string{"0", "10", "20", "30"}},
		{"low rates", experiment.UnitRate, []float64{5e8}, "x (Mbit/s)",
			[]string{"0", "200", "400"}},
		{"rates", experiment.UnitRate, []float64{5e8, 40e9}, "x (Gbit/s)",
			[]string{"0.1", "1", "10"}},
		{"queues", experiment.UnitBytes, []float64{500e3}, "x (KB)", []string{"0", "200", "400"}},
		{"long queues", experiment.UnitBytes, []float64{2e6}, "x (MB)", []string{"0", "1", "2"}},
		{"shares", experiment.UnitShare, []float64{0.5}, "x (%)", []string{"0", "20", "40"}},
		{"counts", experiment.UnitCount, []float64{7}, "x", []string{"0", "2", "4", "6"}},
		{"nothing", experiment.UnitCount, nil, "x", []string{"0", "0.5", "1"}},
		{"zero", experiment.UnitTime, []float64{0}, "x (ns)", []string{"0", "0.5", "1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			axis := newValueAxis(tc.unit, tc.values, 0.1)
			qt.Check(t, qt.Equals(axis.label("x"), tc.label))
			var ticks []string
			for _, tick := range axis.ticks().Ticks(axis.low, axis.high) {
				ticks = append(ticks, tick.Label)
			}
			qt.Check(t, qt.DeepEquals(ticks, tc.ticks))
			for _, v := range tc.values {
				qt.Check(t, qt.IsTrue(axis.at(v) >= axis.low &&
					axis.at(v) <= axis.low+0.9001*(axis.high-axis.low)),
					qt.Commentf("%v at %v", v, axis.at(v)))
				qt.Check(t, qt.IsTrue(v == 0 || axis.at(v) > axis.low),
					qt.Commentf("%v is drawn", v))
			}
		})
	}
}

func TestShortest(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 3.285e6: "3.29ms", 3e6: "3ms",
		12_716_000: "12.7ms", 999.9e3: "1ms", -1.2345e6: "-1.23ms", 7: "7ns"} {
		qt.Check(t, qt.Equals(formatShort(experiment.Quantity{Value: value,
			Unit: experiment.UnitTime}), want))
	}
}

func TestLetters(t *testing.T) {
	for i, want := range map[int]string{0: "a", 25: "z", 26: "aa", 51: "az", 52: "ba", 701: "zz",
		702: "aaa"} {
		qt.Check(t, qt.Equals(letters(i), want))
	}
}

func TestLegendIsBrokenIntoRows(t *testing.T) {
	f := &figure{}
	qt.Check(t, qt.HasLen(f.legendRows(100), 0))
	for range 5 {
		f.legend = append(f.legend, legendEntry{text: "TIMELY"})
	}
	entry := f.legend[0].width()
	lengths := func(width vg.Length) (n []int) {
		for _, row := range f.legendRows(width) {
			n = append(n, len(row))
		}
		return n
	}
	qt.Check(t, qt.DeepEquals(lengths(5*entry+4*entryGap+1), []int{5}))
	qt.Check(t, qt.DeepEquals(lengths(5*entry+4*entryGap-1), []int{4, 1}))
	qt.Check(t, qt.DeepEquals(lengths(2*entry+entryGap+1), []int{2, 2, 1}))
	qt.Check(t, qt.DeepEquals(lengths(1), []int{1, 1, 1, 1, 1}))
}

// drawnBoxes returns the colours and outlines of what a plotter fills.
func drawnBoxes(rec *recorder.Canvas) (colors []color.Color, boxes []vg.Rectangle) {
	var last color.Color
	for _, a := range rec.Actions {
		switch a := a.(type) {
		case *recorder.SetColor:
			last = a.Color
		case *recorder.Fill:
			box := vg.Rectangle{Min: a.Path[0].Pos, Max: a.Path[0].Pos}
			for _, c := range a.Path[:len(a.Path)-1] {
				box.Min.X, box.Min.Y = min(box.Min.X, c.Pos.X), min(box.Min.Y, c.Pos.Y)
				box.Max.X, box.Max.Y = max(box.Max.X, c.Pos.X), max(box.Max.Y, c.Pos.Y)
			}
			colors, boxes = append(colors, last), append(boxes, box)
		}
	}
	return colors, boxes
}

func drawnTexts(rec *recorder.Canvas) []string {
	var texts []string
	for _, a := range rec.Actions {
		if s, ok := a.(*recorder.FillString); ok {
			texts = append(texts, s.String)
		}
	}
	return texts
}

// Bars stand on the foot of the axis and reach to their value; what has none is named.
func TestBars(t *testing.T) {
	f := named("", "", []string{"A", "B"})
	p := f.newPlot("", 0, 10)
	b := &bars{items: []bar{
		{from: -0.5, to: 0, value: 5, text: "five", swatch: measuredBar},
		{from: 0.5, to: 1, value: 10, text: "ten", swatch: failedBar},
		{from: 1, to: 1.5, value: 0, text: "0", swatch: measuredBar},
		{from: 0, to: 0.5, value: 7, text: "not reached", swatch: measuredBar, failed: true},
	}}
	var rec recorder.Canvas
	b.Plot(draw.NewCanvas(&rec, 200, 100), p.Plot)
	colors, boxes := drawnBoxes(&rec)
	qt.Check(t, qt.DeepEquals(boxes, []vg.Rectangle{{Max: vg.Point{X: 50, Y: 50}},
		{Min: vg.Point{X: 100}, Max: vg.Point{X: 150, Y: 100}}}))
	qt.Check(t, qt.DeepEquals(colors, []color.Color{measuredBar.fill, failedBar.fill}))
	qt.Check(t, qt.DeepEquals(drawnTexts(&rec), []string{"five", "ten", "0", "not reached"}))
}

func TestCompareFigure(t *testing.T) {
	e, runs := both(t)
	o := result.EvaluateCompare(e, runs)[0]
	f := compareFigure(o)
	qt.Check(t, qt.DeepEquals(f.names, []string{"PFC", "QCN", "TIMELY", "PCN", "CUBIC"}))
	qt.Check(t, qt.Equals(f.caption,
		"Recovery time of F0+F1, the largest of 2 cases."))
	var entries []string
	for _, entry := range f.legend {
		entries = append(entries, entry.text)
	}
	qt.Check(t, qt.DeepEquals(entries, []string{"measured", "measured, out of bounds", "paper"}))

	svg, err := f.svg()
	qt.Assert(t, qt.IsNil(err))
	for _, text := range []string{">Recovery time (ms)<", ">100<", ">10<", ">1<", ">0.1<",
		">3.3ms<", ">3.1ms<", ">6.4ms<", ">20ms<", ">not reached<", ">60ms<", ">1.1ms<",
		">1.4ms<"} {
		qt.Check(t, qt.StringContains(string(svg), text))
	}

	o.Values = o.Values[:1]
	o.Values[0].Cases = o.Values[0].Cases[:1]
	qt.Check(t, qt.Equals(compareFigure(o).caption,
		"Recovery time of F0+F1."))
	o.Compare.Flows, o.Compare.Over = []string{"F0", "F1"}, experiment.OverMean
	qt.Check(t, qt.Equals(compareFigure(o).caption,
		"Recovery time of F0, F1, the mean of them."))
	o.Compare.Flows, o.Compare.Over = []string{"group"}, experiment.OverP99
	qt.Check(t, qt.Equals(compareFigure(o).caption,
		"Recovery time of group, the 99th percentile of them."))
}

// Where one scheme shows what detectors say, the detectors are compared, in one figure.
func TestDetectorsTogether(t *testing.T) {
	share := func(detector experiment.Detector, value float64) (o result.CompareOutcome) {
		o.Compare.What, o.Compare.Over = string(detector), experiment.OverMean
		o.Compare.Metric, o.Compare.Detector = experiment.WrongMarks, detector
		o.Values = []result.CompareValue{{Scheme: "dcqcn", Pass: true,
			Cases:    make([]result.CaseValue, 2),
			Measured: experiment.Quantity{Value: value, Unit: experiment.UnitShare}}}
		return o
	}
	outcomes := []result.CompareOutcome{share("ecn", 0.25), share("fecn", 0.3), share("tcd", 0)}
	together := detectorsTogether(outcomes)
	qt.Assert(t, qt.HasLen(together, 1))
	f := compareFigure(together[0])
	qt.Check(t, qt.Equals(f.sentence, "Wrong marks of 3 detectors with DCQCN: "+
		"25% with ECN, 30% with FECN and 0% with TCD"))
	qt.Check(t, qt.Equals(f.caption, "Wrong marks, the mean of 2 cases."))
	qt.Check(t, qt.DeepEquals(f.names, []string{"ECN", "FECN", "TCD"}))
	over := comparedOverCases(together)[0].figure([]string{"pfc", "cbfc"}, []string{"dcqcn"})
	qt.Check(t, qt.HasLen(over.legend, 3))                        // one figure over cases, too
	qt.Check(t, qt.Equals(outcomes[0].Values[0].Scheme, "dcqcn")) // tables have it

	for name, change := range map[string]func(o *result.CompareOutcome){
		"two schemes": func(o *result.CompareOutcome) {
			o.Values = append(o.Values, o.Values[0])
		},
		"another metric": func(o *result.CompareOutcome) {
			o.Compare.Metric = experiment.DetectorMarks
		},
		"another time":   func(o *result.CompareOutcome) { o.Compare.From = 5 },
		"no detector":    func(o *result.CompareOutcome) { o.Compare.Detector = "" },
		"another engine": func(o *result.CompareOutcome) { o.Engine = "sim" },
	} {
		two := []result.CompareOutcome{share("ecn", 0.25), share("fecn", 0.3)}
		change(&two[1])
		qt.Check(t, qt.HasLen(detectorsTogether(two), 2), qt.Commentf(name))
	}
}

func TestSlantedNames(t *testing.T) {
	qt.Check(t, qt.IsFalse(named("", "", []string{"PFC", "PCN"}).namesAreTooWide()))
	long := named("", "", strings.Split(strings.Repeat("senders-10,", 12), ","))
	qt.Check(t, qt.IsTrue(long.namesAreTooWide()))
	long.add(experiment.QueueMax, valueAxis{high: 1})
	long.layout()
	qt.Check(t, qt.IsTrue(long.panels[0].plot.X.Tick.Label.Rotation > 0))
}

func TestOverCases(t *testing.T) {
	e, runs := both(t)
	cases, err := casesOf(e, viewsOf(runs), nil)
	qt.Assert(t, qt.IsNil(err))
	var outcomes []outcomeView
	for _, c := range cases {
		outcomes = append(outcomes, c.Outcomes...)
	}
	all := expectedOverCases(outcomes)
	qt.Assert(t, qt.HasLen(all, 2)) // what is lost is of the run as a whole
	recovers, goesOn := all[0], all[1]
	qt.Check(t, qt.HasLen(recovers.curves, 5))
	qt.Check(t, qt.DeepEquals(recovers.cases([]string{"calm", "wild"}), []string{"calm", "wild"}))
	qt.Check(t, qt.DeepEquals(goesOn.cases([]string{"calm", "wild"}), []string{"wild"}))
	qt.Check(t, qt.HasLen(goesOn.curves, 10))
	qt.Check(t, qt.Equals(goesOn.curves[1].object, "F1"))

	svg, err := recovers.figure([]string{"calm", "wild"}, e.Schemes).svg()
	qt.Assert(t, qt.IsNil(err))
	for _, text := range []string{">Recovery time (ms)<", ">calm<", ">wild<", ">PFC<", ">TIMELY<",
		">not reached or not measured<"} {
		qt.Check(t, qt.StringContains(string(svg), text))
	}
	svg, err = goesOn.figure([]string{"wild"}, e.Schemes).svg()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(string(svg), ">PCN F1<"))
	qt.Check(t, qt.Not(qt.StringContains(string(svg), "not reached")))
}

// Jain's index is one value of several flows.
func TestOneByOne(t *testing.T) {
	flows := []string{"F0", "F1"}
	qt.Check(t, qt.DeepEquals(separateObjects(experiment.Measure{Metric: experiment.MeanRate,
		Flows: flows}), flows))
	qt.Check(t, qt.DeepEquals(separateObjects(experiment.Measure{Metric: experiment.MeanRate,
		Flows: flows[:1]}), []string{""}))
	qt.Check(t, qt.DeepEquals(separateObjects(experiment.Measure{Metric: experiment.Jain,
		Flows: flows}), []string{""}))
	qt.Check(t, qt.DeepEquals(separateObjects(experiment.Measure{Metric: experiment.RecoveryTime,
		Flows: flows, Links: []string{"S0->H0"}}), flows))
	qt.Check(t, qt.DeepEquals(separateObjects(experiment.Measure{Metric: experiment.QueueMax,
		Ports: flows}), flows))
	qt.Check(t, qt.HasLen(separateObjects(experiment.Measure{Metric: experiment.LostPackets}), 0))
}

// A case without a value leaves a gap.
func TestTrackParts(t *testing.T) {
	value := func(name string, v float64) caseValue {
		return caseValue{name: name,
			value: experiment.Quantity{Value: v}}
	}
	tr := &caseCurve{values: []caseValue{value("a", 1), value("b", 2), {name: "c", err: errNoRun},
		value("d", 4)}}
	names := []string{"a", "b", "c", "d"}
	axis := newValueAxis(experiment.UnitCount, []float64{4}, 0.1)
	qt.Check(t, qt.CmpEquals(tr.parts(names, axis), [][]point{{{0, 1}, {1, 2}}, {{3, 4}}},
		cmp.AllowUnexported(point{})))
	qt.Check(t, qt.DeepEquals(tr.missing(names), []int{2}))
}
