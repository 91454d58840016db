// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// Figures in this file have names of schemes or cases on the horizontal axis, not time.

// namedHeight is the height of their panel, in points.
const namedHeight vg.Length = 170

// Styles of bars.
var (
	measuredBar = swatch{fill: color.RGBA{R: 0x3b, G: 0x6f, B: 0xb6, A: 0xff}}
	failedBar   = swatch{fill: color.RGBA{R: 0xc0, G: 0x2a, B: 0x2a, A: 0xff}}
	paperBar    = swatch{line: color.RGBA{R: 0x66, G: 0x66, B: 0x66, A: 0xff},
		spacing: vg.Points(3)}
)

// named returns an empty figure with a place for each name.
func named(title, caption string, names []string) *figure {
	return &figure{title: title, caption: caption, names: names, xMin: -0.5,
		xMax: float64(len(names)) - 0.5}
}

// add adds the one panel of a figure of names.
func (f *figure) add(what experiment.Metric, axis valueAxis, plotters ...plot.Plotter) {
	p := f.newPlot(axis.label(metricTitle(what)), axis.low, axis.high)
	p.Y.Tick.Marker, p.logarithmic = axis.ticks(), axis.logarithmic
	p.Add(plotters...)
	f.panels = append(f.panels, panel{plot: p, height: namedHeight})
}

// metricTitle turns mean_rate into "Mean rate".
func metricTitle(m experiment.Metric) string {
	words := strings.Replace(strings.ReplaceAll(string(m), "_", " "), "fct", "completion time", 1)
	return capital(words)
}

// slot returns the width that each name has.
func (f *figure) slot() vg.Length {
	const aboutTheAxis = 60
	return (figureWidth - aboutTheAxis) / vg.Length(len(f.names))
}

// namesAreTooWide reports whether the names do not fit side by side.
func (f *figure) namesAreTooWide() bool {
	for _, name := range f.names {
		if labelStyle(8.5).Width(name)+3 > f.slot() {
			return true
		}
	}
	return false
}

// compareFigure draws two bars for each scheme: measured, and from the paper.
func compareFigure(o result.CompareOutcome) *figure {
	var names []string
	var values []float64
	for _, v := range o.Values {
		names = append(names, strings.ToUpper(v.Scheme))
		if v.Err == nil {
			values = append(values, v.Measured.Value)
		}
		if v.Paper != nil {
			values = append(values, v.Paper.Value)
		}
	}
	f := named(o.Compare.What, captionOf(o.Compare.What, compareCaption(o)), names)
	f.sentence = measureSentence(o.Compare.Measure, schemeValues(o))
	// Texts over bars that are too narrow for them are rotated.
	const widest = 34 // width of a text, in points
	upwards := f.slot() < 2*widest
	room := 0.1
	if upwards {
		room = 0.25
	}
	axis := newValueAxis(o.Compare.Metric.Unit(), values, room)
	b := &bars{upwards: upwards}
	used := make(map[*swatch]bool)
	for i, v := range o.Values {
		kind := &measuredBar
		if !v.Pass {
			kind = &failedBar
		}
		left := bar{from: float64(i) - 0.38, to: float64(i), text: formatShort(v.Measured),
			swatch: *kind}
		if v.Err != nil {
			left.text, left.failed = v.Short(), true
		} else {
			left.value = axis.at(v.Measured.Value)
			used[kind] = true
		}
		b.items = append(b.items, left)
		if v.Paper != nil {
			b.items = append(b.items, bar{from: float64(i), to: float64(i) + 0.38,
				value: axis.at(v.Paper.Value), text: formatShort(*v.Paper), swatch: paperBar})
			used[&paperBar] = true
		}
	}
	for _, entry := range []struct {
		text string
		*swatch
	}{{"measured", &measuredBar}, {"measured, out of bounds", &failedBar}, {"paper", &paperBar}} {
		if used[entry.swatch] {
			f.legend = append(f.legend, legendEntry{entry.text, *entry.swatch})
		}
	}
	f.add(o.Compare.Metric, axis, b)
	return f
}

// schemeValues returns what was measured with each scheme.
func schemeValues(o result.CompareOutcome) []namedValue {
	var values []namedValue
	for _, v := range o.Values {
		if v.Err != nil {
			values = append(values, namedValue{who: strings.ToUpper(v.Scheme), none: true})
			continue
		}
		values = append(values, namedValue{who: strings.ToUpper(v.Scheme),
			value: v.Measured.Value, unit: v.Measured.Unit})
	}
	return values
}

// compareCaption names the metric, its objects, and how they are reduced to one value.
func compareCaption(o result.CompareOutcome) string {
	m := o.Compare.Measure
	caption := metricTitle(m.Metric)
	if objects := objectsOf(m); len(objects) > 0 {
		caption += " of " + strings.Join(objects, ", ")
	}
	if m.Sizes != (experiment.Sizes{}) {
		caption += ", sizes " + m.Sizes.String()
	}
	over := map[experiment.Over]string{
		experiment.OverMin: "least", experiment.OverMean: "mean", experiment.OverP50: "median",
		experiment.OverP99: "99th percentile",
	}[o.Compare.Over]
	cases := len(o.Values[0].Cases)
	switch {
	case len(objectsOf(m)) <= 1 && cases == 1 && over == "": // a group is one object, too
		return caption + "."
	case cases == 1:
		return caption + ", the " + cmp.Or(over, "largest") + " of them."
	default:
		return fmt.Sprintf("%s, the %s of %d cases.", caption, cmp.Or(over, "largest"), cases)
	}
}

// objectsOf returns the flows, ports, tiers or links that are measured. A metric of flows or ports
// may have links too, but only for its "since".
func objectsOf(m experiment.Measure) []string {
	for _, objects := range [][]string{m.Flows, m.Ports, m.Tiers} {
		if len(objects) > 0 {
			return objects
		}
	}
	return m.Links
}

// formatShort returns a quantity with 3 significant digits.
func formatShort(q experiment.Quantity) string {
	if q.Value == 0 {
		return "0"
	}
	power := math.Pow(10, math.Floor(math.Log10(math.Abs(q.Value)))-2)
	q.Value = math.Round(q.Value/power) * power
	return q.String()
}

// bar is one bar. It extends from one position on the horizontal axis to another.
type bar struct {
	from, to, value float64
	stacked         bool
	foot            float64 // lower end of a stacked bar
	text            string
	failed          bool // there is no value, and the text says why
	swatch
}

// bars draws bars with a text above each.
type bars struct {
	items   []bar
	upwards bool // rotate the texts
}

// Plot implements [plot.Plotter].
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	for _, item := range b.items {
		foot, top := c.Min.Y, c.Min.Y
		if item.stacked {
			foot = trY(item.foot)
		}
		left, right := trX(item.from), trX(item.to)
		if !item.failed {
			top = trY(item.value)
		}
		if top > foot {
			item.draw(c, vg.Rectangle{Min: vg.Point{X: left, Y: foot},
				Max: vg.Point{X: right, Y: top}})
		}
		style := labelStyle(7.5)
		style.XAlign, style.YAlign = text.XCenter, text.YBottom
		if b.upwards || item.failed {
			style.Rotation, style.XAlign, style.YAlign = math.Pi/2, text.XLeft, text.YCenter
		}
		if item.failed {
			style.Color = failedBar.fill
		}
		c.FillText(style, vg.Point{X: (left + right) / 2, Y: top + 2.5}, item.text)
	}
}
