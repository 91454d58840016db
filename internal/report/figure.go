// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Widths of figures: in reports, and in a column of a paper with two of them.
const (
	figureWidth = 5.4 * vg.Inch
	columnOfTwo = 3.33 * vg.Inch
)

// Gaps between panels, and the height of a row of the legend above them, in points.
const (
	panelGap    vg.Length = 9
	closeGap    vg.Length = 3
	legendGap   vg.Length = 7
	legendRow   vg.Length = 13
	rightMargin vg.Length = 8
)

// Sizes within a legend, in points.
const (
	swatchWidth  vg.Length = 20
	swatchHeight vg.Length = 9
	swatchGap    vg.Length = 4
	entryGap     vg.Length = 14
)

// figure has panels one below the other, with the same horizontal axis, and a legend above.
type figure struct {
	title, caption string
	sentence       string // says what the figure shows, without a full stop; "" for the title
	oneCase        bool   // of one case among several
	xLabel         string
	xMin, xMax     float64  // ms, unless names is set or logarithmic is true
	names          []string // names at 0, 1 and so on, in place of time
	logarithmic    bool     // the axis has logarithms to base 10
	legend         []legendEntry
	panels         []panel
	width          vg.Length // 0: figureWidth
}

func (f *figure) fullWidth() vg.Length { return cmp.Or(f.width, figureWidth) }

// panel is one plot of a figure.
type panel struct {
	plot         *plotted
	height       vg.Length // of the data area
	closeToAbove bool
	run          string // its label, for files of values
}

type legendEntry struct {
	text string
	swatch
}

// swatch is a style: filled, hatched, or a line.
type swatch struct {
	fill, line color.Color
	spacing    vg.Length   // between hatch lines; 0 means no hatching
	dashes     []vg.Length // of the line; nil means solid
	marker     draw.GlyphDrawer
	unlined    bool // draw only the marker
}

func sans(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

// newPlot returns an empty panel with the axes of the figure.
func (f *figure) newPlot(yLabel string, yMin, yMax float64) *plotted {
	p := &plotted{Plot: plot.New()}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = f.xMin, f.xMax, yMin, yMax
	p.Y.Label.Text = yLabel
	measured := measuredText{plot.DefaultTextHandler, map[sizedText]textBox{}}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Padding = 0
		axis.Label.TextStyle.Font = sans(9)
		axis.Label.Padding = vg.Points(3)
		axis.Tick.Label.Font = sans(8.5)
		axis.Label.TextStyle.Handler, axis.Tick.Label.Handler = measured, measured
		axis.Tick.Length = vg.Points(3)
	}
	p.Y.Tick.Marker = fewTicks{5}
	p.X.Tick.Marker = f.xTicks()
	p.Add(grid{upright: f.names == nil})
	return p
}

// measuredText measures each text once: a plot asks for its labels' sizes several times, and is
// drawn as SVG and as PDF.
type measuredText struct {
	text.Handler
	boxes map[sizedText]textBox
}

type sizedText struct {
	text string
	font font.Font
}

type textBox struct{ width, height, depth vg.Length }

// Box implements [text.Handler].
func (m measuredText) Box(line string, in font.Font) (width, height, depth vg.Length) {
	b, ok := m.boxes[sizedText{line, in}]
	if !ok {
		b.width, b.height, b.depth = m.Handler.Box(line, in)
		m.boxes[sizedText{line, in}] = b
	}
	return b.width, b.height, b.depth
}

// xTicks returns a few times, or a tick for every name.
func (f *figure) xTicks() plot.Ticker {
	if f.logarithmic {
		return logTicks{}
	}
	if f.names == nil {
		return fewTicks{6}
	}
	var ticks plot.ConstantTicks
	for i, name := range f.names {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
	}
	return ticks
}

// grid draws a dotted line at each tick. The grid of package plotter skips ticks without a label.
type grid struct {
	upright bool // also draw vertical lines
}

// Plot implements [plot.Plotter].
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	dotted := draw.LineStyle{Color: color.Gray{Y: 0xb8}, Width: vg.Points(0.5),
		Dashes: []vg.Length{vg.Points(1), vg.Points(2)}}
	trX, trY := p.Transforms(&c)
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		if !g.upright {
			break
		}
		c.StrokeLine2(dotted, trX(t.Value), c.Min.Y, trX(t.Value), c.Max.Y)
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		c.StrokeLine2(dotted, c.Min.X, trY(t.Value), c.Max.X, trY(t.Value))
	}
}

// fewTicks labels about n ticks and has no minor ones.
type fewTicks struct{ n int }

// Ticks implements [plot.Ticker].
func (f fewTicks) Ticks(low, high float64) []plot.Tick {
	step := tickStep((high - low) / float64(f.n))
	var ticks []plot.Tick
	for i := int(low/step) - 1; float64(i)*step <= high*(1+1e-9); i++ {
		if v := float64(i) * step; v >= low-step*1e-9 {
			ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.4g", v)})
		}
	}
	return ticks
}

// tickStep returns the smallest step of 1, 2 or 5 times a power of 10 that is at least minimum.
func tickStep(minimum float64) float64 {
	power := 1.0
	for power > minimum {
		power /= 10
	}
	for power*10 <= minimum {
		power *= 10
	}
	for _, step := range []float64{1, 2, 5} {
		if step*power >= minimum {
			return step * power
		}
	}
	return 10 * power
}

// withoutLabels removes the labels of ticks, but keeps the ticks for the grid.
type withoutLabels struct{ plot.Ticker }

// Ticks implements [plot.Ticker].
func (w withoutLabels) Ticks(low, high float64) []plot.Tick {
	ticks := w.Ticker.Ticks(low, high)
	for i := range ticks {
		ticks[i].Label = ""
	}
	return ticks
}

// svg draws the figure for a page, which compacts it.
func (f *figure) svg() (template.HTML, error) {
	l := f.layout()
	canvas := vgsvg.New(l.width, l.height)
	f.draw(draw.New(canvas), l)
	return inlineSVG(canvas, f.heading()+".")
}

// heading returns what stands above the figure, without a full stop.
func (f *figure) heading() string { return cmp.Or(f.sentence, f.title) }

// layout is where the parts of a figure are.
type layout struct {
	margins            []margin
	left, legendHeight vg.Length
	width, height      vg.Length
	legend             [][]legendEntry
}

// layout also gives the axes their texts: only the lowest panel has them at its horizontal axis.
func (f *figure) layout() layout {
	last := len(f.panels) - 1
	for i, p := range f.panels {
		if i < last {
			p.plot.X.Tick.Marker = withoutLabels{f.xTicks()}
			continue
		}
		p.plot.X.Label.Text = f.xLabel
		if f.namesAreTooWide() {
			style := &p.plot.X.Tick.Label
			// 0.06: a gap to the axis
			style.Rotation, style.XAlign, style.YAlign = math.Pi/4, text.XRight-0.06, text.YCenter
		}
	}
	l := layout{width: f.fullWidth()}
	l.margins, l.left = f.margins()
	l.legend = f.legendRows(l.width - l.left - rightMargin)
	l.legendHeight = legendGap + legendRow*vg.Length(max(1, len(l.legend)))
	l.height = l.legendHeight
	for i, p := range f.panels {
		l.height += p.height + l.margins[i].top + l.margins[i].bottom + f.gapAbove(i)
	}
	return l
}

// draw draws the figure on a canvas of its layout's size.
func (f *figure) draw(all draw.Canvas, l layout) {
	drawLegend(all, l.legend, l.left)
	top := all.Max.Y - l.legendHeight
	for i, p := range f.panels {
		top -= f.gapAbove(i)
		bottom := top - p.height - l.margins[i].top - l.margins[i].bottom
		c := all
		c.Min = vg.Point{X: all.Min.X + l.left - l.margins[i].left, Y: bottom}
		c.Max = vg.Point{X: all.Max.X - rightMargin + l.margins[i].right, Y: top}
		p.plot.Draw(c)
		top = bottom
	}
}

func (f *figure) gapAbove(i int) vg.Length {
	switch {
	case i == 0:
		return 0
	case f.panels[i].closeToAbove:
		return closeGap
	default:
		return panelGap
	}
}

// margin is the space that a plot needs around its data for axes and labels.
type margin struct {
	left, right, bottom, top vg.Length
}

// margins returns the margin of each panel, and the widest left margin, at which all data starts.
func (f *figure) margins() (margins []margin, left vg.Length) {
	for _, p := range f.panels {
		c := draw.NewCanvas(vgsvg.New(f.fullWidth(), f.fullWidth()), f.fullWidth(), f.fullWidth())
		data := p.plot.DataCanvas(c)
		m := margin{
			left:   data.Min.X - c.Min.X,
			right:  c.Max.X - data.Max.X,
			bottom: data.Min.Y - c.Min.Y,
			top:    c.Max.Y - data.Max.Y,
		}
		margins = append(margins, m)
		left = max(left, m.left)
	}
	return margins, max(left, f.reachOfFirstName())
}

// reachOfFirstName returns how far a slanted first name extends to the left of its panel.
func (f *figure) reachOfFirstName() vg.Length {
	if !f.namesAreTooWide() {
		return 0
	}
	// 0.8: at 45 degrees, its height, and off the axis
	return labelStyle(8.5).Width(f.names[0])*0.8 - f.slot()/2
}

// legendRows breaks the legend into rows that fit the width. A wider entry has a row of its own.
func (f *figure) legendRows(width vg.Length) [][]legendEntry {
	var rows [][]legendEntry
	free := vg.Length(0)
	for _, entry := range f.legend {
		if entry.width() > free || rows == nil {
			rows, free = append(rows, nil), width
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], entry)
		free -= entry.width() + entryGap
	}
	return rows
}

// width returns the width of the entry, with some room since the reader's font may be wider than
// ours.
func (e legendEntry) width() vg.Length {
	return swatchWidth + swatchGap + 1.08*labelStyle(9).Width(e.text)
}

// drawLegend writes the entries side by side above the panels.
func drawLegend(c draw.Canvas, rows [][]legendEntry, left vg.Length) {
	y := c.Max.Y - legendRow
	for _, row := range rows {
		x := c.Min.X + left
		for _, entry := range row {
			entry.draw(c, vg.Rectangle{Min: vg.Point{X: x, Y: y},
				Max: vg.Point{X: x + swatchWidth, Y: y + swatchHeight}})
			c.FillText(labelStyle(9), vg.Point{X: x + swatchWidth + swatchGap, Y: y +
				swatchHeight/2}, entry.text)
			x += entry.width() + entryGap
		}
		y -= legendRow
	}
}

func labelStyle(size float64) text.Style {
	return text.Style{Color: color.Black, Font: sans(size), YAlign: draw.YCenter,
		Handler: plot.DefaultTextHandler}
}

// inlineSVG returns the canvas as an <svg> element, without the XML header of a separate file.
func inlineSVG(canvas *vgsvg.Canvas, title string) (template.HTML, error) {
	var buf bytes.Buffer
	if _, err := canvas.WriteTo(&buf); err != nil {
		return "", fmt.Errorf("write figure %q: %w", title, err)
	}
	_, svg, found := bytes.Cut(buf.Bytes(), []byte("<svg "))
	if !found {
		return "", fmt.Errorf("figure %q has no <svg> element", title)
	}
	return template.HTML(`<svg role="img" aria-label="` + template.HTMLEscapeString(title) + `" ` +
		string(svg)), nil
}
