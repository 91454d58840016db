// SPDX-License-Identifier: Apache-2.0

package report

import (
	"image/color"
	"reflect"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// markers distinguish curves for readers who can't see their colours.
var markers = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, ring{},
	draw.SquareGlyph{}, draw.TriangleGlyph{}}

// markerTexts are the same markers as letters, for the script.
var markerTexts = map[draw.GlyphDrawer]string{draw.CircleGlyph{}: "●", draw.BoxGlyph{}: "■",
	draw.PyramidGlyph{}: "▲", ring{}: "○", draw.SquareGlyph{}: "□", draw.TriangleGlyph{}: "△",
	draw.CrossGlyph{}: "×"}

// overCases is a metric over the cases of an experiment.
type overCases struct {
	what   string
	m      experiment.Measure
	curves []*caseCurve
}

// caseCurve is the curve of a scheme and, if there are several, of a link, port or flow.
type caseCurve struct {
	scheme, object string
	values         []caseValue
}

// caseValue is the value of one case, or the reason why there is none.
type caseValue struct {
	name  string // of the case
	value experiment.Quantity
	err   error
}

// curve returns the curve of a scheme and an object. It adds a new one if there is none.
func (o *overCases) curve(scheme, object string) *caseCurve {
	for _, c := range o.curves {
		if c.scheme == scheme && c.object == object {
			return c
		}
	}
	c := &caseCurve{scheme: scheme, object: object}
	o.curves = append(o.curves, c)
	return c
}

// caseFigures draws comparisons and expectations over the cases, if there are at least two. A
// metric that is both compared and expected is drawn once, and one that is 0 everywhere is not. Of
// several engines the first is drawn.
func caseFigures(g groupView) []*figure {
	var outcomes []outcomeView
	var names []string
	for _, c := range g.Cases {
		for _, o := range c.Outcomes {
			if o.Manifest.RanOn() == c.Runs[0].Manifest.RanOn() {
				outcomes = append(outcomes, o)
			}
		}
		names = append(names, c.Name)
	}
	expected := expectedOverCases(outcomes)
	all := append(comparedOverCases(detectorsTogether(g.Compared)), expected...)
	var figures []*figure
	var seen []experiment.Measure
	isSeen := func(m experiment.Measure) bool {
		return slices.ContainsFunc(seen, func(other experiment.Measure) bool {
			return reflect.DeepEqual(other, m)
		})
	}
	for i, o := range all {
		if i == len(all)-len(expected) {
			for _, c := range g.Compared {
				seen = append(seen, c.Compare.Measure) // each detector's
			}
		}
		drawn := o.cases(names)
		if len(drawn) > 1 && !isSeen(o.m) && !o.isNothing() {
			figures = append(figures, o.figure(drawn, g.Experiment.Schemes))
		}
		seen = append(seen, o.m)
	}
	return figures
}

// isNothing reports whether all values are 0, as of packets that are never lost: a table says so.
func (o overCases) isNothing() bool {
	return !slices.ContainsFunc(o.curves, func(c *caseCurve) bool {
		return slices.ContainsFunc(c.values, func(v caseValue) bool {
			return v.err != nil || v.value.Value != 0
		})
	})
}

func comparedOverCases(outcomes []result.CompareOutcome) []overCases {
	var all []overCases
	for _, o := range outcomes {
		over := overCases{what: o.Compare.What, m: o.Compare.Measure}
		for _, v := range o.Values {
			for _, c := range v.Cases {
				curve := over.curve(v.Scheme, "")
				curve.values = append(curve.values, caseValue{c.Case, c.Measured, c.Err})
			}
		}
		all = append(all, over)
	}
	return all
}

// expectedOverCases returns each expectation over the cases. It joins expectations of several
// schemes or cases with the same text and measure. It leaves out those of a whole run or of a
// group.
func expectedOverCases(outcomes []outcomeView) []overCases {
	var all []overCases
	for _, o := range outcomes {
		m, objects := o.Expect.Measure, separateObjects(o.Expect.Measure)
		if len(objects) == 0 || len(o.Measured) > len(objects) {
			continue
		}
		i := slices.IndexFunc(all, func(other overCases) bool {
			return other.what == o.Expect.What && reflect.DeepEqual(other.m, m)
		})
		if i < 0 {
			i, all = len(all), append(all, overCases{what: o.Expect.What, m: m})
		}
		for j, object := range objects {
			v := caseValue{name: o.Manifest.Case, err: o.Err}
			if o.Err == nil {
				v.value = o.Measured[j]
			}
			curve := all[i].curve(o.Scheme, object)
			curve.values = append(curve.values, v)
		}
	}
	return all
}

// separateObjects returns the links, ports or flows that each have a value. For a single value it
// returns one empty name.
func separateObjects(m experiment.Measure) []string {
	objects := m.Objects()
	if len(objects) == 1 || len(objects) > 1 && m.Metric.Together() {
		return []string{""}
	}
	return objects
}

// cases returns the names of cases that any curve has.
func (o overCases) cases(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(o.curves, func(c *caseCurve) bool {
			return slices.ContainsFunc(c.values, func(v caseValue) bool { return v.name == name })
		})
	})
}

// figure draws the curves over the cases. A scheme looks the same in all figures.
func (o overCases) figure(cases, schemes []string) *figure {
	var values []float64
	objects := separateObjects(o.m)
	for _, c := range o.curves {
		for _, v := range c.values {
			if v.err == nil {
				values = append(values, v.value.Value)
			}
		}
	}
	f := named(o.what, captionOf(o.what, measureCaption(o.m))+", in each case.", cases)
	f.sentence = measureSentence(o.m, o.namedValues())
	axis := newValueAxis(o.m.Metric.Unit(), values, 0.08)
	var plotters []plot.Plotter
	missing := false
	for i, c := range o.curves {
		scheme := slices.Index(schemes, c.scheme)
		if scheme < 0 {
			scheme = i // a detector
		}
		look := lookOf(scheme, slices.Index(objects, c.object))
		name := strings.TrimSpace(strings.ToUpper(c.scheme) + " " + c.object)
		f.legend = append(f.legend, legendEntry{name, look})
		for _, part := range c.parts(cases, axis) {
			plotters = append(plotters, &curve{points: part, swatch: look, name: name})
		}
		without := c.missing(cases)
		missing = missing || len(without) > 0
		plotters = append(plotters, &crosses{
			at: without, color: look.line, name: name,
			shift: 6 * (vg.Length(i) - vg.Length(len(o.curves)-1)/2),
		})
	}
	if missing {
		cross := swatch{marker: draw.CrossGlyph{}, line: color.Black, unlined: true}
		f.legend = append(f.legend, legendEntry{"not reached or not measured", cross})
	}
	f.add(o.m.Metric, axis, plotters...)
	return f
}

// namedValues returns all values, each with its scheme, object and case.
func (o overCases) namedValues() []namedValue {
	var values []namedValue
	for _, c := range o.curves {
		for _, v := range c.values {
			who := result.LabelOf(v.name, strings.TrimSpace(strings.ToUpper(c.scheme)+" "+c.object))
			values = append(values, namedValue{who: who, value: v.value.Value, unit: v.value.Unit,
				none: v.err != nil})
		}
	}
	return values
}

// lookOf gives each scheme a colour and a marker, and each object after the first its own dashes.
func lookOf(scheme, object int) swatch {
	look := swatch{line: flowColors[scheme%len(flowColors)], marker: markers[scheme%len(markers)]}
	if object > 0 {
		look.dashes = []vg.Length{vg.Points(float64(6 - 2*(object%3))), vg.Points(2)}
	}
	return look
}

// parts returns the values as points. Cases without a value cut the curve into parts.
func (c *caseCurve) parts(cases []string, axis valueAxis) [][]point {
	var parts [][]point
	last := -2
	for x, name := range cases {
		for _, v := range c.values {
			if v.name != name || v.err != nil {
				continue
			}
			if x > last+1 {
				parts = append(parts, nil)
			}
			i := len(parts) - 1
			parts[i], last = append(parts[i], point{float64(x), axis.at(v.value.Value)}), x
		}
	}
	return parts
}

// missing returns the indices of cases without a value.
func (c *caseCurve) missing(cases []string) []int {
	var at []int
	for _, v := range c.values {
		if v.err != nil {
			at = append(at, slices.Index(cases, v.name))
		}
	}
	return at
}

// crosses mark cases without a value, at the top of a panel.
type crosses struct {
	at    []int     // indices of the cases
	shift vg.Length // keeps the crosses of several schemes apart
	color color.Color
	name  string // the entry of the legend
}

// Plot implements [plot.Plotter].
func (x *crosses) Plot(c draw.Canvas, p *plot.Plot) {
	trX, _ := p.Transforms(&c)
	for _, at := range x.at {
		swatch{line: x.color, marker: draw.CrossGlyph{}}.mark(c,
			vg.Point{X: trX(float64(at)) + x.shift, Y: c.Max.Y - 6})
	}
}
