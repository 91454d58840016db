// SPDX-License-Identifier: Apache-2.0

package report

import (
	"image/color"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

// drawnRings returns the middles and colours of what is drawn as full circles.
func drawnRings(rec *recorder.Canvas) (middles []vg.Point, colors []color.Color) {
	var last color.Color
	for _, a := range rec.Actions {
		switch a := a.(type) {
		case *recorder.SetColor:
			last = a.Color
		case *recorder.Stroke:
			if len(a.Path) > 1 && a.Path[1].Type == vg.ArcComp {
				middles, colors = append(middles, a.Path[1].Pos), append(colors, last)
			}
		}
	}
	return middles, colors
}

func TestReferences(t *testing.T) {
	at := func(ms, value float64) experiment.Point {
		return experiment.Point{At: experiment.Duration(ms * 1e6),
			Value: experiment.Quantity{Value: value}}
	}
	f := &figure{xMin: 0, xMax: 10}
	p := f.newPlot("", 0, 40)
	addReferences(p, []experiment.Reference{
		// one is outside
		{Name: "F1", Label: "Fig. 2", Points: []experiment.Point{at(5, 10e9), at(11, 10e9)}},
		{Name: "F0", Label: "Fig. 2", Points: []experiment.Point{at(1, 20e9)}},
		{Name: "F9", Label: "Fig. 3", Points: []experiment.Point{at(2, 20e9)}},
	}, 1e-9, []string{"F0", "F1"}, func(object string, ns int64) float64 {
		if object == "F0" && ns == 1e6 {
			return 5e9
		}
		return 0
	})
	var rec recorder.Canvas
	p.HideAxes()
	p.Draw(draw.NewCanvas(&rec, 1000, 400))
	middles, colors := drawnRings(&rec)
	qt.Assert(t, qt.HasLen(middles, 6)) // and three in the legend
	qt.Check(t, qt.DeepEquals(middles[:3], []vg.Point{{X: 500, Y: 100}, {X: 100, Y: 250},
		{X: 200, Y: 200}}))
	qt.Check(t, qt.DeepEquals(colors[:3], []color.Color{flowColors[1], flowColors[0], color.Black}))
	texts := drawnTexts(&rec)
	qt.Check(t, qt.DeepEquals(texts, []string{"Fig. 3", "Fig. 2"})) // once each, from the right
	for _, m := range middles[3:] {
		qt.Check(t, qt.IsTrue(m.X > 800 && m.Y > 380), qt.Commentf("%v", m))
	}
}

// A point of a stacked flow is as far above the flow below as it was read off.
func TestStackedBelow(t *testing.T) {
	e, runs := both(t)
	below := stackedBelow(runView{Run: resulttest.Fig2(e, "pfc")}, []string{"F0", "F1"})
	qt.Check(t, qt.Equals(below("F0", 10e6), 20e9))
	qt.Check(t, qt.Equals(below("F1", 10e6), 0))
	qt.Check(t, qt.Equals(below("F9", 10e6), 0))
	qt.Check(t, qt.Equals(below("F0", -2e6), 0))
	qt.Check(t, qt.Equals(below("F0", 19e6), 0))
	qt.Assert(t, qt.IsNotNil(runs))
}

// A reference is drawn in the panel of its scheme, or in all, and there is room for it.
func TestReferencesInFigures(t *testing.T) {
	e, runs := both(t)
	figures := svgElement.FindAllString(render(t, e, runs), -1)
	qt.Check(t, qt.Equals(strings.Count(figures[2], ">from the paper<"), 1))
	qt.Check(t, qt.Equals(strings.Count(strings.Join(figures, ""), ">from the paper<"), 1))

	e.Figures.Reference[0].Scheme = ""
	e.Figures.Reference[0].Points[0].Value.Value = 90e9
	for i, name := range []experiment.FigureName{experiment.FigureThroughput,
		experiment.FigureQueue, experiment.FigureSendRate, experiment.FigureRates} {
		f := []func(*experiment.Experiment, []runView) (*figure, error){throughputFigure,
			queueFigure, sendRateFigure, portRateFigure}[i]
		e.Figures.Reference[0].Figure = name
		drawn, err := f(e, viewsOf(runs[:2]))
		qt.Assert(t, qt.IsNil(err))
		for _, p := range drawn.panels {
			scale := 1e-9
			if name == experiment.FigureQueue {
				scale = 1e-6
			}
			qt.Check(t, qt.IsTrue(p.plot.Y.Max > 90e9*scale), qt.Commentf("%s", name))
		}
		svg, err := drawn.svg()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(strings.Count(string(svg), ">from the paper<"), 2))
	}
}

func TestSendRateFigure(t *testing.T) {
	e, runs := both(t)
	figures := svgElement.FindAllString(render(t, e, runs), -1)
	for _, text := range []string{">Rate (Gbit/s)<", ">F0<", ">F1<", ">sender&#39;s rate<",
		">calm/PCN<"} {
		qt.Check(t, qt.StringContains(figures[4], text))
	}
	// two flows of five schemes, and the legend
	qt.Check(t, qt.Equals(strings.Count(figures[4], "stroke-dasharray:4,2.5"), 2*5+1))
	qt.Check(t, qt.StringContains(figures[5], ">S0-&gt;S1<"))
	qt.Check(t, qt.Not(qt.StringContains(figures[5], "stroke-dasharray:4,2.5")))

	runs[0].Series = nil
	_, err := sendRateFigure(e, viewsOf(runs[:1]))
	qt.Check(t,
		qt.ErrorMatches(err, "sending and receiving rate of run calm/PFC: series has no flow F0"))
}
