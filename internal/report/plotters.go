// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pcn-linux/pcn/internal/result"
)

// point is a point in the units of the axes.
type point struct{ x, y float64 }

// pointsOf returns the middle of each bin within [xMin, xMax], in ms, with its value scaled.
func pointsOf(t result.Timeline, scale, xMin, xMax float64) []point {
	var points []point
	for i, v := range t.Values {
		x := (toMs(t.TimeNs(i)) + toMs(t.TimeNs(i+1))) / 2
		if x >= xMin && x <= xMax {
			points = append(points, point{x, v * scale})
		}
	}
	return points
}

// zeros returns points at the same times, with value 0.
func zeros(points []point) []point {
	flat := make([]point, len(points))
	for i, p := range points {
		flat[i].x = p.x
	}
	return flat
}

// transformed returns the positions of points on the canvas.
func transformed(points []point, c draw.Canvas, p *plot.Plot) []vg.Point {
	trX, trY := p.Transforms(&c)
	at := make([]vg.Point, len(points))
	for i, pt := range points {
		at[i] = vg.Point{X: trX(pt.x), Y: trY(pt.y)}
	}
	return at
}

// area draws the area between two curves with points at the same times: filled or cross-hatched,
// with the upper curve as a line.
type area struct {
	low, high  []point
	fill, line color.Color
	hatch      vg.Length   // distance between hatch lines; 0 means none
	name       string      // the entry of the legend
	stacked    bool        // its value is the distance of the curves
	band       color.Color // of the curve that it is a band of; nil for no band
}

// Plot implements [plot.Plotter].
func (a *area) Plot(c draw.Canvas, p *plot.Plot) {
	low, high := transformed(a.low, c, p), transformed(a.high, c, p)
	if len(high) == 0 {
		return
	}
	if a.fill != nil {
		outline := slices.Clone(thin(high))
		below := thin(low)
		slices.Reverse(below)
		c.FillPolygon(a.fill, append(outline, below...))
	}
	if a.hatch > 0 {
		inLow, inHigh := thinBoth(low, high)
		hatch(c, inLow, inHigh, a.hatch, a.line)
	}
	c.StrokeLines(draw.LineStyle{Color: a.line, Width: vg.Points(0.9)}, thin(high))
}

// hatch draws diagonals both ways between two curves.
func hatch(c draw.Canvas, low, high []vg.Point, spacing vg.Length, clr color.Color) {
	var path vg.Path
	for _, slope := range []vg.Length{1, -1} {
		for _, s := range hatchSegments(low, high, slope, spacing*math.Sqrt2) {
			path.Move(s.from)
			path.Line(s.to)
		}
	}
	c.SetLineStyle(draw.LineStyle{Color: clr, Width: vg.Points(0.45)})
	c.Stroke(path)
}

type segment struct{ from, to vg.Point }

// hatchSegments returns the parts of the lines y = slope*x + n*step between two curves with points
// at the same x.
func hatchSegments(low, high []vg.Point, slope, step vg.Length) []segment {
	first, last := offsets(low, high, slope)
	var segments []segment
	for n := math.Ceil(float64(first / step)); n <= float64(last/step); n++ {
		offset := vg.Length(n) * step
		segments = append(segments, lineWithin(low, high, slope, offset)...)
	}
	return segments
}

// offsets returns the least and largest y - slope*x of both curves.
func offsets(low, high []vg.Point, slope vg.Length) (first, last vg.Length) {
	first, last = vg.Length(math.Inf(1)), vg.Length(math.Inf(-1))
	for i := range low {
		for _, p := range []vg.Point{low[i], high[i]} {
			first = min(first, p.Y-slope*p.X)
			last = max(last, p.Y-slope*p.X)
		}
	}
	return first, last
}

// lineWithin returns the parts of the line y = slope*x + offset between two curves.
func lineWithin(low, high []vg.Point, slope, offset vg.Length) []segment {
	const touching = 1e-6
	var segments []segment
	for i := 0; i+1 < len(low); i++ {
		width := low[i+1].X - low[i].X
		if width <= 0 {
			continue
		}
		lineAt := func(j int) vg.Length { return slope*low[j].X + offset }
		// Both are at least 0 where the line is within; they are linear in between.
		from, to := positive(lineAt(i)-low[i].Y, lineAt(i+1)-low[i+1].Y)
		from2, to2 := positive(high[i].Y-lineAt(i), high[i+1].Y-lineAt(i+1))
		from, to = max(from, from2), min(to, to2)
		if from >= to {
			continue
		}
		at := func(share vg.Length) vg.Point {
			x := low[i].X + share*width
			return vg.Point{X: x, Y: slope*x + offset}
		}
		if n := len(segments); n > 0 && at(from).X-segments[n-1].to.X < touching {
			segments[n-1].to = at(to)
			continue
		}
		segments = append(segments, segment{at(from), at(to)})
	}
	return segments
}

// positive returns the part [from, to] of [0, 1] in which a value that changes linearly from a to b
// is not negative. If there is none, from is larger than to.
func positive(a, b vg.Length) (from, to vg.Length) {
	switch {
	case a >= 0 && b >= 0:
		return 0, 1
	case a < 0 && b < 0:
		return 1, 0
	case a < 0:
		return a / (a - b), 1
	default:
		return 0, a / (a - b)
	}
}

// curve is a line through points.
type curve struct {
	points []point
	swatch
	name string  // the entry of the legend
	note string  // tells curves of one name apart
	low  []point // the lower end, if it is a band
}

// Plot implements [plot.Plotter].
func (l *curve) Plot(c draw.Canvas, p *plot.Plot) {
	at := transformed(l.points, c, p)
	l.stroke(c, thin(at))
	for _, pt := range at {
		l.mark(c, pt)
	}
}

// stroke draws the line of the swatch.
func (s swatch) stroke(c draw.Canvas, at []vg.Point) {
	c.StrokeLines(draw.LineStyle{Color: s.line, Width: vg.Points(1.2), Dashes: s.dashes}, at)
}

// mark draws the marker of the swatch, if it has one.
func (s swatch) mark(c draw.Canvas, at vg.Point) {
	if s.marker != nil {
		c.DrawGlyph(draw.GlyphStyle{Color: s.line, Radius: vg.Points(2.6), Shape: s.marker}, at)
	}
}

// strip draws a row of boxes, one for each bin. A larger share has a stronger colour.
type strip struct {
	share result.Timeline
	row   float64 // lower end; the row is 1 high
	fill  color.RGBA
	name  string // the entry of the legend
}

// Plot implements [plot.Plotter]. Bins that are narrower than a column share a box, and so do
// neighbours of the same colour. Boxes of a colour follow each other, so that they become one path.
func (s *strip) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	bottom, top := trY(s.row+0.12), trY(s.row+0.88)
	boxes := s.boxes(func(ms float64) float64 {
		return float64(min(max(trX(ms), c.Min.X), c.Max.X) / columnWidth)
	})
	slices.SortStableFunc(boxes, func(a, b box) int { return cmp.Compare(a.share, b.share) })
	for _, b := range boxes {
		left, right := vg.Length(b.from)*columnWidth, vg.Length(b.to)*columnWidth
		fill := color.NRGBA{R: s.fill.R, G: s.fill.G, B: s.fill.B, A: uint8(40 + 215*b.share)}
		c.FillPolygon(fill, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom},
			{X: right, Y: top}, {X: left, Y: top}})
	}
}

// box is a part of a strip. Its ends are in columns.
type box struct{ from, to, share float64 }

// boxes returns the parts of the strip that are not empty. column returns the position of a time in
// ms, in columns. Shares are rounded to sixteenths, up if they are not 0.
func (s *strip) boxes(column func(ms float64) float64) []box {
	var all []box
	values := s.share.Values
	for i := 0; i < len(values); {
		from := column(toMs(s.share.TimeNs(i)))
		sum, n, to := 0.0, 0, from
		for i < len(values) && to-from < 1 {
			next := column(toMs(s.share.TimeNs(i + 1)))
			if next > to { // else the bin is outside of the axis
				sum, n = sum+min(values[i], 1), n+1
			}
			i, to = i+1, next
		}
		if sum == 0 {
			continue
		}
		share := math.Ceil(sum/float64(n)*16) / 16
		if k := len(all) - 1; k >= 0 && all[k].to == from && all[k].share == share {
			all[k].to = to
			continue
		}
		all = append(all, box{from, to, share})
	}
	return all
}

// arrow draws a double-headed arrow between two times in ms, and a dashed line at each. It draws
// nothing if the times are equal.
type arrow struct {
	from, to, y float64
}

// Plot implements [plot.Plotter].
func (a *arrow) Plot(c draw.Canvas, p *plot.Plot) {
	if a.from >= a.to {
		return
	}
	const head = 3.2
	trX, trY := p.Transforms(&c)
	left, right, y := max(trX(a.from), c.Min.X), min(trX(a.to), c.Max.X), trY(a.y)
	dashed := draw.LineStyle{Color: color.Black, Width: vg.Points(0.8),
		Dashes: []vg.Length{vg.Points(4), vg.Points(3)}}
	for _, x := range []vg.Length{left, right} {
		c.StrokeLine2(dashed, x, c.Min.Y, x, y+3)
	}
	solid := draw.LineStyle{Color: color.Black, Width: vg.Points(1)}
	c.StrokeLine2(solid, left, y, right, y)
	if right-left < 2*head {
		return
	}
	c.FillPolygon(color.Black, []vg.Point{{X: left, Y: y}, {X: left + 2*head, Y: y + head},
		{X: left + 2*head, Y: y - head}})
	c.FillPolygon(color.Black, []vg.Point{{X: right, Y: y}, {X: right - 2*head, Y: y + head},
		{X: right - 2*head, Y: y - head}})
}

// panelLabel is text at the upper left of a panel.
type panelLabel struct {
	text string
}

// Plot implements [plot.Plotter].
func (l *panelLabel) Plot(c draw.Canvas, _ *plot.Plot) {
	style := labelStyle(9)
	style.YAlign = draw.YTop
	c.FillText(style, vg.Point{X: c.Min.X + 5, Y: c.Max.Y - 3}, l.text)
}

// draw draws the swatch into a rectangle.
func (s swatch) draw(c draw.Canvas, r vg.Rectangle) {
	corners := []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}, r.Min}
	middle := (r.Min.Y + r.Max.Y) / 2
	switch {
	case s.fill != nil:
		c.FillPolygon(s.fill, corners)
		c.StrokeLines(draw.LineStyle{Color: color.Gray{Y: 0x70}, Width: vg.Points(0.6)}, corners)
	case s.spacing > 0:
		hatch(c, corners[:2], []vg.Point{corners[3], corners[2]}, s.spacing, s.line)
		c.StrokeLines(draw.LineStyle{Color: s.line, Width: vg.Points(0.9)}, corners)
	default:
		if !s.unlined {
			s.stroke(c, []vg.Point{{X: r.Min.X, Y: middle}, {X: r.Max.X, Y: middle}})
		}
		s.mark(c, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: middle})
	}
}
