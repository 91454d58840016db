// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// heatmap shows a metric of a sweep over two parameters or more: the first downwards, the second
// across, and a panel for each scheme and the values of the others.
type heatmap struct {
	Title, Caption string
	Panels         []heatPanel
}

type heatPanel struct {
	Label        string
	Down, Across string // the parameters
	Columns      []string
	Rows         []heatRow
}

type heatRow struct {
	Name  string
	Cells []heatCell
}

// heatCell is empty where there is no run.
type heatCell struct {
	Text  string
	Style template.CSS
}

// isMap reports whether points have two parameters or more, each with several values.
func (s Sweep) isMap() bool {
	if len(s.PointHeader) < 2 || len(s.Metrics) == 0 {
		return false
	}
	for i := range s.PointHeader {
		if len(s.Metrics[0].valuesOf(i)) < 2 {
			return false
		}
	}
	return true
}

// valuesOf returns the values of a parameter, in the order of the points.
func (m SweepMetric) valuesOf(parameter int) []string {
	var values []string
	for _, r := range m.Rows {
		if v := r.Columns[parameter]; !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// heatmap returns the map of a metric.
func (s Sweep) heatmap(m SweepMetric) heatmap {
	var values []float64
	for _, r := range m.Rows {
		if r.Values > 0 {
			values = append(values, r.Mean)
		}
	}
	h := heatmap{
		Title:   cmp.Or(s.sentence(m), m.Name) + ".",
		Caption: m.Caption() + ", mean over the seeds",
	}
	if len(values) == 0 {
		return h
	}
	axis := newValueAxis(m.Measure.Metric.Unit(), values, 0)
	if axis.unit != "" {
		h.Caption += ", in " + axis.unit
	}
	if axis.logarithmic {
		h.Caption += "; colours are by logarithm"
	}
	h.Caption += "." + s.noteOnMissing(m, " (*; none: all)")
	low, high := axis.at(slices.Min(values)), axis.at(slices.Max(values))
	cell := func(r SweepRow) heatCell {
		if r.Values == 0 {
			return heatCell{Text: "none"}
		}
		share := 0.0
		if high > low {
			share = (axis.at(r.Mean) - low) / (high - low)
		}
		text := threeDigits(r.Mean * axis.scale)
		if r.Missing() > 0 {
			text += "*"
		}
		return heatCell{text, heatStyle(share)}
	}
	h.Panels = s.heatPanels(m, cell)
	return h
}

// threeDigits writes a number with three digits, or all of those before the point.
func threeDigits(v float64) string {
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func (s Sweep) heatPanels(m SweepMetric, cell func(SweepRow) heatCell) []heatPanel {
	var panels []heatPanel
	down, across := m.valuesOf(0), m.valuesOf(1)
	for _, r := range m.Rows {
		label := s.panelLabel(r)
		at := slices.IndexFunc(panels, func(p heatPanel) bool { return p.Label == label })
		if at < 0 {
			at = len(panels)
			p := heatPanel{
				Label: label, Down: s.PointHeader[0], Across: s.PointHeader[1], Columns: across,
			}
			for _, name := range down {
				p.Rows = append(p.Rows, heatRow{name, make([]heatCell, len(across))})
			}
			panels = append(panels, p)
		}
		row := panels[at].Rows[slices.Index(down, r.Columns[0])]
		row.Cells[slices.Index(across, r.Columns[1])] = cell(r)
	}
	return panels
}

// panelLabel names what is the same in a panel.
func (s Sweep) panelLabel(r SweepRow) string {
	words := []string{strings.ToUpper(r.Scheme)}
	for i, name := range s.PointHeader[2:] {
		words = append(words, name+" "+r.Columns[i+2])
	}
	return strings.Join(words, ", ")
}

// heatStyle colours a cell from pale yellow (0) to dark red (1), with text that can be read on it.
func heatStyle(share float64) template.CSS {
	stops := [][3]float64{{255, 247, 205}, {244, 165, 90}, {190, 45, 35}, {90, 8, 24}}
	at := share * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	var c [3]int
	for k := range c {
		c[k] = int(stops[i][k] + (at-float64(i))*(stops[i+1][k]-stops[i][k]))
	}
	// Black and white have a contrast of at least 4.5 on one side of this luminance each.
	const lightTextBelow = 0.179
	text := "#000"
	if luminance(c) < lightTextBelow {
		text = "#fff"
	}
	return template.CSS(fmt.Sprintf("background:#%02x%02x%02x;color:%s", c[0], c[1], c[2], text))
}

// luminance is how bright a colour is, 0 to 1, as WCAG 2.2 defines it.
func luminance(c [3]int) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(c[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
