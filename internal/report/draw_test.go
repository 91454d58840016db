// SPDX-License-Identifier: Apache-2.0

package report

import (
	"image/color"
	"math"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/pcn-linux/pcn/internal/result"
)

var pointFields = cmp.AllowUnexported(point{})

// y returns the value at x of a curve through points.
func y(points []vg.Point, x vg.Length) vg.Length {
	for i := 0; i+1 < len(points); i++ {
		a, b := points[i], points[i+1]
		if x >= a.X && x <= b.X {
			return a.Y + (b.Y-a.Y)*(x-a.X)/(b.X-a.X)
		}
	}
	return vg.Length(math.NaN())
}

// Hatching stays between the curves, and misses none of the area between them.
func TestHatchSegments(t *testing.T) {
	low := []vg.Point{{X: 0, Y: 0}, {X: 10, Y: 0}, {X: 20, Y: 15}, {X: 30, Y: 0}}
	high := []vg.Point{{X: 0, Y: 20}, {X: 10, Y: 20}, {X: 20, Y: 15}, {X: 30, Y: 30}}
	const step = 4
	for _, slope := range []vg.Length{1, -1} {
		segments := hatchSegments(low, high, slope, step)
		length := vg.Length(0)
		for _, s := range segments {
			length += s.to.X - s.from.X
			for _, share := range []vg.Length{0, 0.25, 0.5, 0.75, 1} {
				x := s.from.X + share*(s.to.X-s.from.X)
				at := s.from.Y + share*(s.to.Y-s.from.Y)
				qt.Check(t, qt.IsTrue(at >= y(low, x)-1e-9 && at <= y(high, x)+1e-9),
					qt.Commentf("(%v, %v)", x, at))
				n := float64((at - slope*x) / step)
				qt.Check(t, qt.IsTrue(math.Abs(n-math.Round(n)) < 1e-9))
			}
		}
		// Lines a step apart have, in x, about area/step of length: the area is 10*20 + 10*10 +
		// 10*15 = 450.
		qt.Check(t, qt.IsTrue(math.Abs(float64(length)-450.0/step) < 12), qt.Commentf("%v", length))
	}
}

func TestHatchSegmentsOfNothing(t *testing.T) {
	flat := []vg.Point{{X: 0, Y: 1}, {X: 10, Y: 1}}
	qt.Assert(t, qt.HasLen(hatchSegments(nil, nil, 1, 4), 0))
	qt.Assert(t, qt.HasLen(hatchSegments(flat, flat, 1, 4), 0))
	same := []vg.Point{{X: 5, Y: 0}, {X: 5, Y: 0}}
	above := []vg.Point{{X: 5, Y: 9}, {X: 5, Y: 9}}
	qt.Assert(t, qt.HasLen(hatchSegments(same, above, 1, 4), 0))
}

// A line through many bins is one segment.
func TestHatchSegmentsAreJoined(t *testing.T) {
	var low, high []vg.Point
	for x := range 101 {
		low = append(low, vg.Point{X: vg.Length(x), Y: 0})
		high = append(high, vg.Point{X: vg.Length(x), Y: 10})
	}
	for _, s := range hatchSegments(low, high, 1, 4) {
		inside := s.from.X > 0 && s.to.X < 100
		if inside {
			qt.Check(t, qt.IsTrue(math.Abs(float64(s.to.X-s.from.X)-10) < 1e-9))
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		low, high float64
		n         int
		want      []string
	}{
		{0, 60, 4, []string{"0", "20", "40", "60"}},
		{-1, 19, 6, []string{"0", "5", "10", "15"}},
		{-0.17, 3.45, 6, []string{"0", "1", "2", "3"}},
		{0, 0.12, 4, []string{"0", "0.05", "0.1"}},
		{0, 1, 4, []string{"0", "0.5", "1"}},
		{-5, 70, 6, []string{"0", "20", "40", "60"}},
		{2, 3, 4, []string{"2", "2.5", "3"}},
	} {
		var got []string
		for _, tick := range (fewTicks{tc.n}).Ticks(tc.low, tc.high) {
			qt.Check(t, qt.IsTrue(tick.Value >= tc.low && tick.Value <= tc.high*(1+1e-9)))
			got = append(got, tick.Label)
		}
		qt.Check(t, qt.DeepEquals(got, tc.want), qt.Commentf("%v to %v", tc.low, tc.high))
	}
}

func TestPointsAreTheMiddlesOfBins(t *testing.T) {
	tl := result.Timeline{StartNs: -1e6, StepNs: 1e6, Values: []float64{1e9, 2e9, 3e9, 4e9}}
	qt.Assert(t, qt.CmpEquals(pointsOf(tl, 1e-9, 0, 2), []point{{0.5, 2}, {1.5, 3}}, pointFields))
}

// As in PCN, Fig. 2(b): the last flow is at the bottom and the first lies on top of it.
func TestStack(t *testing.T) {
	r := runView{Run: &result.Run{
		Manifest: result.Manifest{DurationNs: 1e6, SampleNs: 1e6},
		Series: []result.Sample{
			{Kind: result.KindFlow, Name: "F0", RateBps: 30e9},
			{Kind: result.KindFlow, Name: "F1", RateBps: 2e9},
		},
	}}
	layers, err := stack(r, []string{"F0", "F1"}, 0, 1)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(layers, 2))

	bottom, top := layers[0], layers[1]
	qt.Assert(t, qt.CmpEquals(bottom.low, []point{{0.5, 0}}, pointFields))
	qt.Assert(t, qt.CmpEquals(bottom.high, []point{{0.5, 2}}, pointFields))
	qt.Assert(t, qt.Equals(bottom.line, flowColors[1]))
	qt.Assert(t, qt.CmpEquals(top.low, []point{{0.5, 2}}, pointFields))
	qt.Assert(t, qt.CmpEquals(top.high, []point{{0.5, 32}}, pointFields))
	qt.Assert(t, qt.Equals(top.line, flowColors[0]))
}

func TestThroughputLoss(t *testing.T) {
	steady := []float64{40, 40, 40, 40, 40}
	for _, tc := range []struct {
		name  string
		after []float64
		text  string
		until int64
	}{
		{"none", []float64{40, 40, 40, 40, 40, 40}, "no throughput loss", 0},
		{"within 5%", []float64{39, 39, 39, 39, 39, 39}, "no throughput loss", 0},
		{"some", []float64{40, 10, 10, 40, 40, 40, 40, 40}, "throughput loss 300us", 300_000},
		{"to the end", []float64{40, 10, 10, 10, 10, 10, 10}, "throughput loss until the end",
			700_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tl := result.Timeline{StartNs: -500_000, StepNs: 100_000,
				Values: append(append([]float64{}, steady...), tc.after...)}
			text, until, ok := throughputLoss(tl)
			qt.Assert(t, qt.IsTrue(ok))
			qt.Assert(t, qt.Equals(text, tc.text))
			qt.Assert(t, qt.Equals(until, tc.until))
		})
	}
	_, _, ok := throughputLoss(result.Timeline{StartNs: -400_000, StepNs: 100_000, Values: steady})
	qt.Assert(t, qt.IsFalse(ok))
}

func TestShades(t *testing.T) {
	qt.Assert(t, qt.Equals[color.Color](shade(0, 1), pauseLight))
	qt.Assert(t, qt.Equals[color.Color](shade(0, 3), pauseLight))
	qt.Assert(t, qt.Equals[color.Color](shade(2, 3), pauseDark))
}

// From the first PAUSE at any host to the last at any other; switches don't count.
func TestHostSpan(t *testing.T) {
	e := load(t)
	frame := func(ns int64, from, to string, kind result.PFCKind) result.PFCEvent {
		return result.PFCEvent{SentNs: ns, EffectNs: ns, From: from, To: to, Kind: kind}
	}
	r := runView{Run: &result.Run{
		Manifest: result.Manifest{DurationNs: 9e6, SampleNs: 1e6},
		PFC: []result.PFCEvent{
			frame(0, "S1", "S0", result.Pause), frame(8e6, "S1", "S0", result.Resume),
			frame(2e6, "S0", "H0", result.Pause), frame(3e6, "S0", "H0", result.Resume),
			frame(1e6, "S0", "H1", result.Pause), frame(2.5e6, "S0", "H1", result.Resume),
		},
	}}
	qt.Assert(t, qt.Equals(hostSpan(e, r, []string{"S1->S0", "S0->H0", "S0->H1"}),
		hostPause{true, "PAUSE stops hosts for 2ms", 1e6, 3e6}))
	qt.Assert(t, qt.IsFalse(hostSpan(e, r, []string{"S1->S0"}).drawn))
}

// One box for each bin in which the link was paused, the fuller the longer, and none outside of the
// axes.
func TestStrip(t *testing.T) {
	f := &figure{xMin: 0, xMax: 4}
	p := f.newPlot("", 0, 1)
	s := &strip{share: result.Timeline{StartNs: -1e6, StepNs: 1e6,
		Values: []float64{1, 0, 0.5, 1, 0, 1}}, fill: pauseDark}
	var rec recorder.Canvas
	c := draw.NewCanvas(&rec, 100, 10)
	s.Plot(c, p.Plot)

	var boxes [][2]vg.Length
	var alphas []uint8
	for _, a := range rec.Actions {
		switch a := a.(type) {
		case *recorder.SetColor:
			alphas = append(alphas, a.Color.(color.NRGBA).A)
		case *recorder.Fill:
			boxes = append(boxes, [2]vg.Length{a.Path[0].Pos.X, a.Path[1].Pos.X})
		}
	}
	qt.Assert(t, qt.DeepEquals(boxes, [][2]vg.Length{{25, 50}, {50, 75}}))
	qt.Assert(t, qt.DeepEquals(alphas, []uint8{147, 255}))
}
