// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// This file keeps pages small: below maxPage, if need be by coarser figures. A run has many more
// bins than a figure has pixels.

// maxPage is the largest page, in bytes, that readers get with all of its details.
const maxPage = 1_000_000

// thrift is what a page does without.
type thrift struct {
	tolerance float64 // by which curves of pictures may move, in points
	columns   int     // of curves that the script draws, at least
	brief     bool    // it has no tables of flows and ports
}

// thrifts are tried in this order until a page is small enough. The last is taken in any case: it
// makes pages of about 30 KB an experiment.
var thrifts = []thrift{{0, 100, false}, {0.3, 100, false}, {1, 100, false}, {1, 60, true},
	{3, 30, true}}

// writeSmall writes a page that is drawn with as little thrift as makes it small enough.
func writeSmall(w io.Writer, draw func(w io.Writer, t thrift) error) error {
	var page bytes.Buffer
	for _, t := range thrifts {
		page.Reset()
		if err := draw(&page, t); err != nil {
			return err
		}
		if page.Len() <= maxPage {
			break
		}
	}
	_, err := page.WriteTo(w)
	return err
}

// columnWidth is the width, in points, within which a curve keeps only its ends and extremes.
const columnWidth vg.Length = 0.7

// thin returns a curve that looks the same with at most four points for each column. Points are in
// the order of x; of a column it keeps the first, the lowest, the highest and the last.
func thin(points []vg.Point) []vg.Point {
	if len(points) < 3 {
		return points
	}
	var kept []vg.Point
	for from := 0; from < len(points); {
		to, low, high := from, from, from
		column := math.Floor(float64(points[from].X / columnWidth))
		for to < len(points) && math.Floor(float64(points[to].X/columnWidth)) == column {
			if points[to].Y < points[low].Y {
				low = to
			}
			if points[to].Y > points[high].Y {
				high = to
			}
			to++
		}
		last := -1
		for _, i := range []int{from, min(low, high), max(low, high), to - 1} {
			if i > last {
				kept, last = append(kept, points[i]), i
			}
		}
		from = to
	}
	return kept
}

// thinBoth thins two curves with points at the same x to one point for each column: the highest of
// the lower curve and the lowest of the upper one, so that what is between them stays between them.
func thinBoth(low, high []vg.Point) (thinLow, thinHigh []vg.Point) {
	last := math.Inf(-1)
	for i := range low {
		column := math.Floor(float64(low[i].X / columnWidth))
		if n := len(thinLow) - 1; column == last {
			thinLow[n].Y = max(thinLow[n].Y, low[i].Y)
			thinHigh[n].Y = max(min(thinHigh[n].Y, high[i].Y), thinLow[n].Y)
			continue
		}
		last = column
		thinLow, thinHigh = append(thinLow, low[i]), append(thinHigh, high[i])
	}
	return thinLow, thinHigh
}

// compact shortens the paths and texts of a figure within a page. Curves may move by the tolerance,
// in points.
func compact(svg string, tolerance float64) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(svg, ` d="`)
		d, behind, closed := strings.Cut(rest, `"`)
		if !found || !closed {
			break
		}
		if short, ok := compactPath(d, tolerance); ok {
			d = short
		}
		b.WriteString(before + ` d="` + d + `"`)
		svg = behind
	}
	b.WriteString(svg)
	svg = withoutFonts(joinPaths(b.String(), tolerance < hatchless))
	return strings.ReplaceAll(svg, usualSize, "")
}

// withoutFonts leaves out the font of texts: the page's style sheet has that of all figures.
func withoutFonts(svg string) string {
	const family = "font-family:"
	const others = ";font-variant:normal;font-weight:normal;font-style:normal;"
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(svg, family)
		if !found {
			b.WriteString(svg)
			return b.String()
		}
		b.WriteString(before)
		svg = rest
		if end := strings.IndexAny(rest, `;"`); end >= 0 && strings.HasPrefix(rest[end:], others) {
			svg = rest[end+len(others):]
			continue
		}
		b.WriteString(family)
	}
}

// usualSize is the size of most texts. The page's style sheet has it, too.
const usualSize = "\n\tstyle=\"font-size:8.5px\""

// hatchless is the tolerance from which on areas are not hatched: their outlines tell them apart.
const hatchless = 1

// styledPath returns what is before the first path of an SVG picture, its data and style, and what
// is behind it.
func styledPath(svg string) (before, d, style, behind string, ok bool) {
	const start = `<path d="`
	for from := 0; ; {
		i := strings.Index(svg[from:], start)
		if i < 0 {
			return svg, "", "", "", false
		}
		from += i + len(start)
		d, rest, _ := strings.Cut(svg[from:], `"`)
		rest, styled := strings.CutPrefix(rest, ` style="`)
		style, rest, _ := strings.Cut(rest, `"`)
		if behind, ended := strings.CutPrefix(rest, " />\n"); styled && ended {
			return svg[:from-len(start)], d, style, behind, true
		}
	}
}

// joinPaths makes one path of neighbours of the same style, such as the lines of a grid. It may
// leave out the lines of hatched areas.
func joinPaths(svg string, hatched bool) string {
	const manyLines = 20 // more than the legend's
	var b strings.Builder
	var d, style string
	flush := func() {
		if d != "" {
			b.WriteString(`<path d="` + d + `" style="` + style + `" />` + "\n")
		}
		d, style = "", ""
	}
	for {
		before, lines, of, behind, ok := styledPath(svg)
		if !ok {
			break
		}
		if before != "" {
			flush()
			b.WriteString(before)
		}
		svg = behind
		if of != style {
			flush()
			style = of
		}
		if hatched || strings.Count(lines, "M") <= manyLines {
			d += lines
		}
	}
	flush()
	b.WriteString(svg)
	return b.String()
}

// dot is a point in tenths of a point, so that rounding does not add up.
type dot struct{ x, y int }

// compactPath writes a path of straight lines with relative coordinates, rounded to a tenth of a
// point. It returns false for any other path.
func compactPath(d string, tolerance float64) (short string, ok bool) {
	var b strings.Builder
	var line []dot
	end := func() {
		writeLine(&b, simplify(line, tolerance*10))
		line = nil
	}
	for d != "" {
		command := d[0]
		d = d[1:]
		if command == 'Z' {
			end()
			b.WriteByte('z')
			continue
		}
		to := strings.IndexAny(d, "MLZ")
		if to < 0 {
			to = len(d)
		}
		first, second, found := strings.Cut(d[:to], ",")
		x, errX := strconv.ParseFloat(first, 64)
		y, errY := strconv.ParseFloat(second, 64)
		if !found || errX != nil || errY != nil || command != 'M' && command != 'L' {
			return "", false
		}
		d = d[to:]
		if command == 'M' {
			end()
		}
		line = append(line, dot{int(math.Round(x * 10)), int(math.Round(y * 10))})
	}
	end()
	return b.String(), true
}

// writeLine writes a line through dots. It leaves out those at the same place as the one before,
// unless the line is no more than a point.
func writeLine(b *strings.Builder, line []dot) {
	for i, at := range line {
		if i == 0 {
			b.WriteString("M" + pair(at.x, at.y))
			continue
		}
		last := line[i-1]
		step := pair(at.x-last.x, at.y-last.y)
		switch {
		case i == 1:
			b.WriteString("l" + step)
		case at == last:
		case step[0] == '-':
			b.WriteString(step)
		default:
			b.WriteString(" " + step)
		}
	}
}

// simplify leaves out dots that are no farther than the tolerance from the line between those that
// stay (the algorithm of Ramer, Douglas and Peucker). It keeps the first and the last.
func simplify(line []dot, tolerance float64) []dot {
	if len(line) < 3 || tolerance == 0 {
		return line
	}
	first, last := line[0], line[len(line)-1]
	at, farthest := 0, -1.0
	for i := 1; i+1 < len(line); i++ {
		if d := distance(line[i], first, last); d > farthest {
			at, farthest = i, d
		}
	}
	if farthest <= tolerance {
		return []dot{first, last}
	}
	left := simplify(line[:at+1], tolerance)
	return append(slices.Clone(left[:len(left)-1]), simplify(line[at:], tolerance)...)
}

// distance returns how far a dot is from the line through two others, or from them if they are one.
func distance(p, a, b dot) float64 {
	dx, dy := float64(b.x-a.x), float64(b.y-a.y)
	x, y := float64(p.x-a.x), float64(p.y-a.y)
	if dx == 0 && dy == 0 {
		return math.Hypot(x, y)
	}
	return math.Abs(x*dy-y*dx) / math.Hypot(dx, dy)
}

// pair formats two numbers of tenths, with a comma only where a minus does not part them.
func pair(x, y int) string {
	second := tenths(y)
	if second[0] == '-' {
		return tenths(x) + second
	}
	return tenths(x) + "," + second
}

// tenths formats a number of tenths, such as .5 for 5.
func tenths(n int) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	switch whole, rest := n/10, n%10; {
	case rest == 0:
		return sign + strconv.Itoa(whole)
	case whole == 0:
		return sign + "." + strconv.Itoa(rest)
	default:
		return sign + strconv.Itoa(whole) + "." + strconv.Itoa(rest)
	}
}
