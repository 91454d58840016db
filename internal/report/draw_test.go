// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"math"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/recorder"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
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
		hostPause{"2ms from the first to the last PAUSE of H0 and H1", 1e6, 3e6}))
	qt.Assert(t, qt.Equals(hostSpan(e, r, []string{"S1->S0"}), hostPause{}))
	// Only those that are paused are named.
	qt.Assert(t, qt.Equals(hostSpan(e, r, []string{"S0->H1", "S1->R0"}).text,
		"1.5ms from the first to the last PAUSE of H1"))
}

// The heading compares schemes by all links that are drawn: no one of them is every scheme's worst.
func TestHeadingOfPause(t *testing.T) {
	e := load(t)
	run := func(label string, ns ...int64) runView { // for how long each link is paused
		r := runView{Label: label, Run: &result.Run{
			Manifest: result.Manifest{DurationNs: 9e6, SampleNs: 1e6}}}
		for i, to := range []string{"S0", "S1"} {
			from := []string{"S1", "S0"}[i]
			r.PFC = append(r.PFC, result.PFCEvent{From: from, To: to, Kind: result.Pause},
				result.PFCEvent{EffectNs: ns[i], From: from, To: to, Kind: result.Resume})
		}
		return r
	}
	runs := []runView{run("PFC", 3e6, 1e6), run("PCN", 1e6, 5e6)}
	for _, tc := range []struct {
		links []string
		want  string
	}{
		{[]string{"S1->S0", "S0->S1"},
			"Added up, the links drawn are paused for 4 ms with PFC and 6 ms with PCN"},
		{[]string{"S1->S0"}, "The link S1->S0 is paused for 3 ms with PFC and 1 ms with PCN"},
		{[]string{"S1->S0", "S1->H2"}, "No PAUSE stops H2"},
		{[]string{"S1->S9", "S1->S8"}, "No link drawn is paused"},
	} {
		e.Figures.Pause = tc.links
		f, err := pauseFigure(e, runs)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(f.sentence, tc.want))
	}
}

// Where no host of the figure is paused, the label says who else is.
func TestOthersPaused(t *testing.T) {
	e := load(t)
	links := []string{"S1->S0", "S0->H0", "S0->H1"}
	for want, paused := range map[string][]string{
		"no PAUSE stops H0 or H1":                  {"S1->S0"},
		"PAUSE stops H2, not H0 or H1":             {"S1->H2"},
		"PAUSE stops H2..H4 and H15, not H0 or H1": {"S1->H3", "S1->H15", "S1->H2", "S1->H4"},
		// H15 and R0 are neighbours, but no range
		"PAUSE stops H14..H15 and R0, not H0 or H1":          {"S1->H14", "S1->R0", "S1->H15"},
		"PAUSE stops 4 other hosts, not H0 or H1":            {"S1->H2", "S1->H4", "S1->H6", "S1->H8"},
		"PAUSE stops 1 other port of a switch, not H0 or H1": {"S0->S1"},
		"PAUSE stops H2 and 2 other ports of switches, not H0 or H1": {
			"S1->H2", "S0->S1", "H2->S1",
		},
	} {
		r := runView{Run: &result.Run{}}
		for _, link := range paused {
			from, to, _ := network.SplitPort(link)
			r.PFC = append(r.PFC, result.PFCEvent{From: from, To: to, Kind: result.Pause})
		}
		qt.Check(t, qt.Equals(hostSpan(e, r, links).text, want))
	}
	// of many hosts it says how many are drawn
	links = nil
	for i := range 5 {
		links = append(links, fmt.Sprintf("S1->H%d", 2+i))
	}
	qt.Check(t, qt.Equals(hostSpan(e, runView{Run: &result.Run{}}, links).text,
		"no PAUSE stops the hosts drawn"))
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

// Only where the sum exceeds the link that all flows share, the caption says why.
func TestSumOverLink(t *testing.T) {
	for _, tc := range []struct {
		flows  string
		shared float64
	}{
		{"{name: F0, from: H0, to: R0}", 40e9},
		{"{name: F0, from: H0, to: R0}, {name: F1, from: H1, to: R1}", 40e9}, // S0->S1
		{"{name: F0, from: H0, to: R0}, {name: F1, from: R1, to: H1}", 0},    // both ways
		{"{name: F0, from: H0, to: R0}, {name: F1, from: H2, to: R1}", 0},
		{"{name: F0, from: [H0, H2], to: R0}", 40e9}, // a group: S1->R0
		{"{name: F0, from: H0, to: R0}, {name: other, from: H2, to: R1}", 40e9},
	} {
		e, err := experiment.Parse("x.yaml", []byte("name: x\ntopology: {kind: fig1}\n"+
			"schemes: [pfc]\nduration: 19ms\nflows: ["+tc.flows+"]\n"))
		qt.Assert(t, qt.IsNil(err))
		got, err := sharedRate(e, []string{"F0", "F1"})
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got, tc.shared), qt.Commentf("%s", tc.flows))
	}

	e := load(t)
	const note = "The sum exceeds a link"
	runs := viewsOf(fig2(e))
	most := func(bps uint64) string {
		for _, r := range runs {
			for i := range r.Series {
				r.Series[i].RateBps = bps / 2 // of F0 and of F1
			}
		}
		f, err := throughputFigure(e, runs)
		qt.Assert(t, qt.IsNil(err))
		return f.caption
	}
	qt.Check(t, qt.Not(qt.StringContains(most(40.1e9), note)))
	qt.Check(t, qt.StringContains(most(41e9), note))
}

// What has a meaning of its own can be told apart, with each kind of colour blindness, too: states
// of ports from each other, and from the paths of the first flows; and flows from each other, on a
// dark page as well.
func TestColoursCanBeToldApart(t *testing.T) {
	// Machado, Oliveira and Fernandes 2009, severity 1; the distance is that of OKLab
	views := map[string][3][3]float64{
		"all colours": {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia": {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216},
			{-0.003882, -0.048116, 1.051998}},
		"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413},
			{-0.011820, 0.042940, 0.968881}},
		"tritanopia": {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602},
			{0.004733, 0.691367, 0.303900}},
	}
	times := func(m [3][3]float64, v [3]float64) (out [3]float64) {
		for i := range m {
			for k := range v {
				out[i] += m[i][k] * v[k]
			}
		}
		return out
	}
	seen := func(view [3][3]float64, c color.Color) [3]float64 {
		r, g, b, _ := c.RGBA()
		var v [3]float64
		for i, part := range []uint32{r, g, b} {
			s := float64(part) / 0xffff
			if v[i] = s / 12.92; s > 0.04045 {
				v[i] = math.Pow((s+0.055)/1.055, 2.4)
			}
		}
		v = times(view, v)
		for i := range v {
			v[i] = min(max(v[i], 0), 1)
		}
		v = times([3][3]float64{{0.4122214708, 0.5363325363, 0.0514459929},
			{0.2119034982, 0.6806995451, 0.1073969566},
			{0.0883024619, 0.2817188376, 0.6299787005}}, v)
		for i := range v {
			v[i] = math.Cbrt(v[i])
		}
		return times([3][3]float64{{0.2104542553, 0.7936177850, -0.0040720468},
			{1.9779984951, -2.4285922050, 0.4505937099},
			{0.0259040371, 0.7827717662, -0.8086757660}}, v)
	}
	check := func(least float64, colors []color.Color) {
		for name, view := range views {
			for i, a := range colors {
				for _, b := range colors[:i] {
					x, y := seen(view, a), seen(view, b)
					apart := math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
					qt.Check(t, qt.IsTrue(apart > least),
						qt.Commentf("%s: %s and %s are %.3f apart", name, hex(a), hex(b), apart))
				}
			}
		}
	}
	check(0.15, []color.Color{congestedColor, undeterminedColor, pausedColor, pauseLight,
		flowColors[0], flowColors[1]})
	check(0.14, flowColors)
	var onDark []color.Color // as live.js shows them: nearer to white, so nearer to each other
	for _, c := range flowColors {
		r, g, b, _ := c.RGBA()
		mixed := func(v uint32) uint8 { return uint8(math.Round(float64(v>>8)*0.58 + 255*0.42)) }
		onDark = append(onDark, color.RGBA{R: mixed(r), G: mixed(g), B: mixed(b), A: 0xff})
	}
	check(0.089, onDark)
}
