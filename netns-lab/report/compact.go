// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// This file keeps pages small. A page of every shipped experiment is to stay below 1 MB, and a run
// has many more bins than a figure has pixels.

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

var (
	pathData = regexp.MustCompile(` d="([^"]*)"`)
	// The page's style sheet has the font of all texts of figures.
	fontOfText = regexp.MustCompile(
		`font-family:[^;"]*;font-variant:normal;font-weight:normal;font-style:normal;`)
)

// compact shortens the paths and texts of a figure within a page.
func compact(svg string) string {
	svg = pathData.ReplaceAllStringFunc(svg, func(attribute string) string {
		d := pathData.FindStringSubmatch(attribute)[1]
		if short, ok := compactPath(d); ok {
			return ` d="` + short + `"`
		}
		return attribute
	})
	return fontOfText.ReplaceAllString(svg, "")
}

// compactPath writes a path of straight lines with relative coordinates, rounded to a tenth of a
// point. It returns false for any other path.
func compactPath(d string) (short string, ok bool) {
	var b strings.Builder
	x, y := 0, 0 // tenths of a point, so that rounding does not add up
	afterLine := false
	for d != "" {
		command := d[0]
		d = d[1:]
		if command == 'Z' {
			b.WriteByte('z')
			afterLine = false
			continue
		}
		end := strings.IndexAny(d, "MLZ")
		if end < 0 {
			end = len(d)
		}
		first, second, found := strings.Cut(d[:end], ",")
		px, errX := strconv.ParseFloat(first, 64)
		py, errY := strconv.ParseFloat(second, 64)
		if !found || errX != nil || errY != nil || command != 'M' && command != 'L' {
			return "", false
		}
		d = d[end:]
		atX, atY := int(math.Round(px*10)), int(math.Round(py*10))
		switch {
		case command == 'M':
			b.WriteString("M" + pair(atX, atY))
			afterLine = false
		case atX == x && atY == y && afterLine:
			continue
		case afterLine:
			step := pair(atX-x, atY-y)
			if step[0] != '-' {
				b.WriteByte(' ')
			}
			b.WriteString(step)
		default:
			b.WriteString("l" + pair(atX-x, atY-y))
			afterLine = true
		}
		x, y = atX, atY
	}
	return b.String(), true
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
