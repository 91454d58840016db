// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
	"strconv"
)

// This file makes the values of figures few and short, for the page's script.

// numeral is a number that is written with 5 significant digits, which is finer than any screen.
type numeral float64

// MarshalJSON implements [json.Marshaler].
func (n numeral) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', 5, 64), nil
}

// numbers is a list of values that is written with 4 significant digits. Equal neighbours are
// written as [count, value].
type numbers []float64

// MarshalJSON implements [json.Marshaler].
func (n numbers) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i := 0; i < len(n); {
		k := i
		for k < len(n) && n[k] == n[i] {
			k++
		}
		if i > 0 {
			b = append(b, ',')
		}
		value := strconv.FormatFloat(n[i], 'g', 4, 64)
		if k-i > 2 {
			b = fmt.Appendf(b, "[%d,%s]", k-i, value)
			i = k
			continue
		}
		b = append(b, value...)
		i++
	}
	return append(b, ']'), nil
}

// table returns curves over common values of x. Curves that have other x than the first are read
// off at evenly spaced places.
func table(drawn []*curve, xMin, xMax float64) (x numbers, curves []liveCurve) {
	if len(drawn) == 0 {
		return nil, nil
	}
	sameX := func(c *curve) bool {
		return slices.EqualFunc(c.points, drawn[0].points,
			func(a, b point) bool { return a.x == b.x })
	}
	apart := slices.ContainsFunc(drawn, func(c *curve) bool { return !sameX(c) })
	const places = 500
	if apart {
		for i := range places + 1 {
			x = append(x, xMin+(xMax-xMin)*float64(i)/places)
		}
	} else {
		for _, p := range drawn[0].points {
			x = append(x, p.x)
		}
	}
	for _, c := range drawn {
		l := liveCurve{Name: c.name, Note: c.note, liveLook: lookOfSwatch(c.swatch)}
		for i, at := range x {
			if apart {
				l.Y = append(l.Y, valueAt(c.points, at))
				if c.low != nil {
					l.Low = append(l.Low, valueAt(c.low, at))
				}
				continue
			}
			l.Y = append(l.Y, c.points[i].y)
			if c.low != nil {
				l.Low = append(l.Low, c.low[i].y)
			}
		}
		curves = append(curves, l)
	}
	return x, curves
}

// valueAt returns the value of the last point that is not right of x.
func valueAt(points []point, x float64) float64 {
	i, _ := slices.BinarySearchFunc(points, x, func(p point, x float64) int {
		if p.x <= x {
			return -1
		}
		return 1
	})
	if len(points) == 0 {
		return 0
	}
	return points[max(i-1, 0)].y
}

// thin leaves at most two values of each curve for each column: its lowest and its highest. It
// reports whether it left out any.
func (p *livePanel) thin(columns int) bool {
	bins := (len(p.X) + columns - 1) / columns
	if bins < 3 {
		return false
	}
	var x numbers
	y, lows := make([]numbers, len(p.Curves)), make([]numbers, len(p.Curves))
	for from := 0; from < len(p.X); from += bins {
		to := min(from+bins, len(p.X))
		x = append(x, p.X[from], p.X[(from+to)/2])
		for i, c := range p.Curves {
			low, high := from, from
			for k := from; k < to; k++ {
				if c.Y[k] < c.Y[low] {
					low = k
				}
				if c.Y[k] > c.Y[high] {
					high = k
				}
			}
			if c.Low != nil { // the widest of the band
				least := slices.Min(c.Low[from:to])
				y[i], lows[i] = append(y[i], c.Y[high], c.Y[high]), append(lows[i], least, least)
				continue
			}
			y[i] = append(y[i], c.Y[min(low, high)], c.Y[max(low, high)])
		}
	}
	p.X = x
	for i := range p.Curves {
		p.Curves[i].Y, p.Curves[i].Low = y[i], lows[i]
	}
	return true
}

// shareX leaves out the x of panels that have that of the one above.
func (f *liveFigure) shareX() {
	var above numbers
	for i := range f.Panels {
		p := &f.Panels[i]
		p.Same = above != nil && slices.Equal(p.X, above)
		above = p.X
	}
}

// MarshalJSON leaves out an x that is the same as above.
func (p livePanel) MarshalJSON() ([]byte, error) {
	type plain livePanel
	if p.Same {
		p.X = nil
	}
	return json.Marshal(plain(p))
}

// liveData returns the data of all figures that the script draws, as JSON, at most maxLivePoints of
// them if there are not very many curves, and the least number of columns of each in any case.
func liveData(figures []*liveFigure, least int) (template.JS, error) {
	curves := 0
	for _, f := range figures {
		for _, p := range f.Panels {
			curves += len(p.Curves)
		}
	}
	columns := max(maxLivePoints/(2*max(curves, 1)), least)
	for _, f := range figures {
		for i := range f.Panels {
			if f.Panels[i].thin(columns) {
				f.Thinned = true
			}
		}
		f.shareX()
	}
	data, err := json.Marshal(figures)
	if err != nil {
		return "", fmt.Errorf("write the data of figures: %w", err)
	}
	return template.JS(data), nil
}
