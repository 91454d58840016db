// SPDX-License-Identifier: Apache-2.0

package report

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// referencesOf returns the paper's data points for a figure of a run.
func referencesOf(e *experiment.Experiment, name experiment.FigureName,
	r runView) []experiment.Reference {
	return slices.DeleteFunc(slices.Clone(e.Figures.Reference),
		func(ref experiment.Reference) bool {
			return ref.Figure != name || ref.Scheme != "" && ref.Scheme != r.Manifest.Scheme
		})
}

// topOf returns the largest of the paper's data points for a figure.
func topOf(references []experiment.Reference, name experiment.FigureName) float64 {
	top := 0.0
	for _, ref := range references {
		for _, p := range ref.Points {
			if ref.Figure == name {
				top = max(top, p.Value.Value)
			}
		}
	}
	return top
}

// addReferences draws the paper's data points as open circles in the colour of their flow or port,
// and their labels at the upper right. In stacked figures, below returns the height on which an
// object's curve stands.
func addReferences(p *plotted, references []experiment.Reference, scale float64, objects []string,
	below func(object string, ns int64) float64) {
	legend := &ringLegend{}
	for _, ref := range references {
		r := &rings{color: color.Black, name: ref.Name}
		if i := slices.Index(objects, ref.Name); i >= 0 {
			r.color = flowColors[i%len(flowColors)]
		}
		for _, at := range ref.Points {
			ns := int64(at.At)
			r.points = append(r.points, point{toMs(ns),
				(at.Value.Value + below(ref.Name, ns)) * scale})
		}
		p.Add(r)
		legend.add(ref.Label, r.color)
	}
	p.Add(legend)
}

// notStacked is the "below" of addReferences for figures whose curves stand on the axis.
func notStacked(string, int64) float64 {
	return 0
}

// rings draws open circles at points.
type rings struct {
	points []point
	color  color.Color
	name   string // the entry of the legend
}

// Plot implements [plot.Plotter].
func (r *rings) Plot(c draw.Canvas, p *plot.Plot) {
	for _, at := range transformed(r.points, c, p) {
		c.DrawGlyph(ringStyle(r.color), at)
	}
}

// ringLegend writes texts at the upper right of a panel, each after the rings that it names.
type ringLegend struct {
	entries []ringEntry
}

type ringEntry struct {
	text   string
	colors []color.Color
}

func (l *ringLegend) add(text string, clr color.Color) {
	for i := range l.entries {
		if l.entries[i].text == text {
			l.entries[i].colors = append(l.entries[i].colors, clr)
			return
		}
	}
	l.entries = append(l.entries, ringEntry{text, []color.Color{clr}})
}

// Plot implements [plot.Plotter].
func (l *ringLegend) Plot(c draw.Canvas, _ *plot.Plot) {
	const step vg.Length = 7
	style := labelStyle(8)
	x, y := c.Max.X-5, c.Max.Y-8
	for _, entry := range slices.Backward(l.entries) {
		x -= style.Width(entry.text)
		c.FillText(style, vg.Point{X: x, Y: y}, entry.text)
		for _, clr := range slices.Backward(entry.colors) {
			x -= step
			c.DrawGlyph(ringStyle(clr), vg.Point{X: x + 1, Y: y})
		}
		x -= entryGap / 2
	}
}

func ringStyle(clr color.Color) draw.GlyphStyle {
	return draw.GlyphStyle{Color: clr, Radius: vg.Points(2.3), Shape: ring{}}
}

// ring is an open circle.
type ring struct{}

// DrawGlyph implements [draw.GlyphDrawer].
func (ring) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var path vg.Path
	path.Move(vg.Point{X: at.X + style.Radius, Y: at.Y})
	path.Arc(at, style.Radius, 0, 2*math.Pi)
	path.Close()
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(0.9)})
	c.Stroke(path)
}
