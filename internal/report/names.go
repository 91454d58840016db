// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"reflect"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
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

// metricTitle names a metric in words: mean_rate is "Mean rate", and queue_p99 "99th percentile of
// the queue".
func metricTitle(m experiment.Metric) string {
	if title, ok := metricTitles[m]; ok {
		return title
	}
	name := strings.Replace(string(m), "fct", "completion_time", 1)
	at := strings.LastIndex(name, "_")
	what, kind := name[:max(at, 0)], name[at+1:]
	if begin, ok := statisticTitles[kind]; ok {
		name = begin + " " + what
	}
	return capital(strings.ReplaceAll(name, "_", " "))
}

// metricTitles has the words of metrics whose names do not say enough.
var metricTitles = map[experiment.Metric]string{
	experiment.PauseSpan:       "Time from first to last PAUSE",
	experiment.PauseTotal:      "Paused time",
	experiment.PauseEnd:        "End of the last PAUSE",
	experiment.Jain:            "Jain's fairness index",
	experiment.QueueMax:        "Longest queue",
	experiment.TierPauseFrames: "PAUSE frames",
	experiment.TierPauseTotal:  "Paused time of all ports",
	experiment.RateStd:         "Standard deviation of the rate",
	experiment.Completed:       "Share of flows that completed",
}

// statisticTitles begin the words of metrics whose names end so.
var statisticTitles = map[string]string{
	"mean": "mean", "p50": "median of the", "p95": "95th percentile of the",
	"p99": "99th percentile of the", "p999": "99.9th percentile of the",
}

// slot returns the width that each name has.
func (f *figure) slot() vg.Length {
	const aboutTheAxis = 60
	return (f.fullWidth() - aboutTheAxis) / vg.Length(len(f.names))
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

// compareFigure draws a bar for each scheme and, beside it, one for the paper's number. Of several
// seeds it also has a dot for each, and the interval of the median.
func compareFigure(o result.CompareOutcome) *figure {
	var names []string
	var values []float64
	for _, v := range o.Values {
		names = append(names, strings.ToUpper(v.Scheme))
		values = append(values, drawnOf(v)...)
	}
	f := named(o.Compare.What, compareCaption(o), names)
	f.sentence = sentenceOf(comparedInWords(o.Compare.What), schemeValues(o))
	axis := newValueAxis(o.Compare.Metric.Unit(), values, 0.1)
	b := &bars{}
	column := *f
	column.width = columnOfTwo
	if b.items = compareBars(o, axis); column.textsAreTooWide(b.items) {
		axis = newValueAxis(o.Compare.Metric.Unit(), values, 0.25)
		b.items = compareBars(o, axis)
	}
	for _, entry := range []legendEntry{{"measured", measuredBar},
		{"measured, out of bounds", failedBar}, {"paper", paperBar}} {
		if slices.ContainsFunc(b.items, func(item bar) bool {
			return !item.failed && reflect.DeepEqual(item.swatch, entry.swatch)
		}) {
			f.legend = append(f.legend, entry)
		}
	}
	plotters := []plot.Plotter{b}
	if o.OverSeeds() {
		seeds, spread := seedsOver(o, axis)
		f.legend = append(f.legend, legendEntry{seeds.name, seeds.swatch},
			legendEntry{spread.name, swatch{line: spread.color}})
		plotters = append(plotters, seeds, spread)
	}
	f.add(o.Compare.Metric, axis, plotters...)
	return f
}

// detectorsTogether makes one comparison of those that differ in their detector alone, if each has
// one scheme. What is compared then is the detectors: they stand in the place of schemes.
func detectorsTogether(outcomes []result.CompareOutcome) (together []result.CompareOutcome) {
	alike := func(a, b result.CompareOutcome) bool {
		a.Compare.Detector = b.Compare.Detector
		return a.Engine == b.Engine && a.Compare.Over == b.Compare.Over &&
			reflect.DeepEqual(a.Compare.Measure, b.Compare.Measure)
	}
	for i := 0; i < len(outcomes); {
		first, last := outcomes[i], i+1
		for one(first) && last < len(outcomes) && one(outcomes[last]) &&
			alike(first, outcomes[last]) {
			last++
		}
		if last > i+1 {
			first.Compare.What = fmt.Sprintf("%s of %d detectors with %s",
				metricTitle(first.Compare.Metric), last-i, strings.ToUpper(first.Values[0].Scheme))
			first.Compare.Detector, first.Values = "", nil
			for _, o := range outcomes[i:last] {
				v := o.Values[0]
				v.Scheme = string(o.Compare.Detector)
				first.Values = append(first.Values, v)
			}
		}
		together, i = append(together, first), last
	}
	return together
}

// one reports whether a comparison is of one scheme's detector.
func one(o result.CompareOutcome) bool { return len(o.Values) == 1 && o.Compare.Detector != "" }

// drawnOf returns all values of a scheme that a figure has to show.
func drawnOf(v result.CompareValue) []float64 {
	var values []float64
	if v.Err == nil {
		values = append(values, v.Measured.Value)
	}
	if v.Paper != nil {
		values = append(values, v.Paper.Value)
	}
	for _, seed := range v.Seeds {
		values = append(values, seed.Value)
	}
	return values
}

// halfBar is half the room of the bars over a name.
const halfBar = 0.38

// compareBars returns the bars of a comparison. A scheme without a number of the paper has one bar,
// over its name.
func compareBars(o result.CompareOutcome, axis valueAxis) []bar {
	var items []bar
	for i, v := range o.Values {
		from, to := measuredAt(v, i)
		measured := bar{from: from, to: to, text: formatShort(v.Measured), swatch: measuredBar}
		if !v.Pass {
			measured.swatch = failedBar
		}
		switch {
		case v.Err != nil:
			measured.text, measured.failed = v.Short(), true
		default:
			measured.value = axis.at(v.Measured.Value)
			for _, seed := range v.Seeds {
				measured.above = max(measured.above, axis.at(seed.Value))
			}
		}
		items = append(items, measured)
		if v.Paper != nil {
			items = append(items, bar{from: to, to: to + halfBar, value: axis.at(v.Paper.Value),
				text: formatShort(*v.Paper), swatch: paperBar})
		}
	}
	return items
}

// measuredAt returns where the bar of the i-th scheme's measured value begins and ends.
func measuredAt(v result.CompareValue, i int) (from, to float64) {
	if v.Paper == nil {
		return float64(i) - halfBar/2, float64(i) + halfBar/2
	}
	return float64(i) - halfBar, float64(i)
}

// textsAreTooWide reports whether a text over a bar is wider than the bar: it may then cover its
// neighbour's.
func (f *figure) textsAreTooWide(items []bar) bool {
	return slices.ContainsFunc(items, func(b bar) bool {
		return !b.failed && labelStyle(barText).Width(b.text) > vg.Length(b.to-b.from)*f.slot()
	})
}

// seedsOver returns the dots and the interval over each scheme's bar.
func seedsOver(o result.CompareOutcome, axis valueAxis) (*dots, *errorBars) {
	seeds := &dots{name: oneSeed, swatch: oneSeedLook}
	spread := &errorBars{name: intervalNote, color: color.Black}
	for i, v := range o.Values {
		if v.Spread == nil {
			continue
		}
		from, to := measuredAt(v, i)
		for k, seed := range v.Seeds {
			share := (float64(k) + 0.5) / float64(len(v.Seeds)) // in the order of the seeds
			seeds.at = append(seeds.at, point{from + share*(to-from), axis.at(seed.Value)})
		}
		spread.at = append(spread.at, interval{(from + to) / 2, axis.at(v.Spread.Low.Value),
			axis.at(v.Spread.High.Value)})
	}
	return seeds, spread
}

// oneSeed is the legend's entry of dots, and oneSeedLook how they look.
const oneSeed = "one seed"

var oneSeedLook = swatch{line: color.Gray{Y: 0x55}, marker: ring{}, unlined: true}

// dots are single values over names.
type dots struct {
	at   []point
	name string // the entry of the legend
	swatch
}

// Plot implements [plot.Plotter].
func (d *dots) Plot(c draw.Canvas, p *plot.Plot) {
	for _, at := range transformed(d.at, c, p) {
		c.DrawGlyph(draw.GlyphStyle{Color: d.line, Radius: vg.Points(1.4), Shape: d.marker}, at)
	}
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

// measureCaption names a metric, its objects, and the sizes and times that it covers.
func measureCaption(m experiment.Measure) string {
	caption := metricTitle(m.Metric)
	if objects := m.Objects(); len(objects) > 0 {
		caption += " of " + strings.Join(objects, ", ")
	}
	if m.Sizes != (experiment.Sizes{}) {
		caption += ", sizes " + m.Sizes.String()
	}
	switch {
	case m.To != 0:
		caption += fmt.Sprintf(", from %s to %s", m.From, m.To)
	case m.From != 0:
		caption += fmt.Sprintf(", from %s on", m.From)
	}
	return caption
}

// compareCaption names the metric, its objects, and how they are reduced to one value.
func compareCaption(o result.CompareOutcome) string {
	m := o.Compare.Measure
	caption := measureCaption(m)
	over := map[experiment.Over]string{
		experiment.OverMin: "least", experiment.OverMean: "mean", experiment.OverP50: "median",
		experiment.OverP99: "99th percentile",
	}[o.Compare.Over]
	cases := len(o.Values[0].Cases)
	switch {
	case len(m.Objects()) <= 1 && cases == 1 && over == "": // a group is one object, too
		return caption + "."
	case cases == 1:
		return caption + ", the " + cmp.Or(over, "largest") + " of them."
	default:
		return fmt.Sprintf("%s, the %s of %d cases.", caption, cmp.Or(over, "largest"), cases)
	}
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
	above           float64 // the text stands above this height, too
	failed          bool    // there is no value, and the text says why
	swatch
}

// barText is the size of texts over bars.
const barText = 7.5

// bars draws bars with a text above each.
type bars struct {
	items   []bar
	upwards bool // rotate the texts, also if they are not too wide
}

// Plot implements [plot.Plotter].
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	upwards := b.upwards || slices.ContainsFunc(b.items, func(item bar) bool {
		return !item.failed && labelStyle(barText).Width(item.text) > trX(item.to)-trX(item.from)
	})
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
		style := labelStyle(barText)
		style.XAlign, style.YAlign = text.XCenter, text.YBottom
		if upwards || item.failed {
			style.Rotation, style.XAlign, style.YAlign = math.Pi/2, text.XLeft, text.YCenter
		}
		if item.failed {
			style.Color = failedBar.fill
		}
		textFoot := top
		if item.above > item.value {
			textFoot = trY(item.above)
		}
		c.FillText(style, vg.Point{X: (left + right) / 2, Y: textFoot + 2.5}, item.text)
	}
}
