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

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// markers tell curves apart where colours do not.
var markers = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, ring{}, draw.SquareGlyph{}, draw.TriangleGlyph{}}

// overCases is a metric over the cases of an experiment.
type overCases struct {
	what   string
	m      experiment.Measure
	tracks []*track
}

// track is one curve: of a scheme and, if there are several, of a link, port or flow.
type track struct {
	scheme, object string
	marks          []mark
}

// mark is the value of one case, or the reason why there is none.
type mark struct {
	name  string // of the case
	value experiment.Quantity
	err   error
}

// track returns that of a scheme and an object, and adds it if it is new.
func (o *overCases) track(scheme, object string) *track {
	for _, t := range o.tracks {
		if t.scheme == scheme && t.object == object {
			return t
		}
	}
	t := &track{scheme: scheme, object: object}
	o.tracks = append(o.tracks, t)
	return t
}

// caseFigures draws what is compared, and what is expected, over the cases; none if
// there are no two cases. What is both is drawn once.
func caseFigures(g groupView) []*figure {
	var outcomes []outcomeView
	var names []string
	for _, c := range g.Cases {
		outcomes = append(outcomes, c.Outcomes...)
		names = append(names, c.Name)
	}
	all := append(comparedOverCases(g.Compared), expectedOverCases(outcomes)...)
	var figures []*figure
	for i, o := range all {
		sameMeasure := func(other overCases) bool { return reflect.DeepEqual(other.m, o.m) }
		drawn := o.cases(names)
		if len(drawn) > 1 && !slices.ContainsFunc(all[:i], sameMeasure) {
			figures = append(figures, o.figure(drawn, g.Experiment.Schemes))
		}
	}
	return figures
}

// comparedOverCases returns each comparison over its cases.
func comparedOverCases(outcomes []result.CompareOutcome) []overCases {
	var all []overCases
	for _, o := range outcomes {
		over := overCases{what: o.Compare.What, m: o.Compare.Measure}
		for _, v := range o.Values {
			for _, c := range v.Cases {
				t := over.track(v.Scheme, "")
				t.marks = append(t.marks, mark{c.Case, c.Measured, c.Err})
			}
		}
		all = append(all, over)
	}
	return all
}

// expectedOverCases returns each expectation over the cases. Expectations of the same
// words and measure are one, of several schemes or cases; those of the run as a whole, or of a group, are left out.
func expectedOverCases(outcomes []outcomeView) []overCases {
	var all []overCases
	for _, o := range outcomes {
		m, objects := o.Expect.Measure, oneByOne(o.Expect.Measure)
		if len(objects) == 0 || len(o.Measured) > len(objects) {
			continue
		}
		i := slices.IndexFunc(all, func(other overCases) bool { return other.what == o.Expect.What && reflect.DeepEqual(other.m, m) })
		if i < 0 {
			i, all = len(all), append(all, overCases{what: o.Expect.What, m: m})
		}
		for j, object := range objects {
			made := mark{name: o.Manifest.Case, err: o.Err}
			if o.Err == nil {
				made.value = o.Measured[j]
			}
			t := all[i].track(o.Scheme, object)
			t.marks = append(t.marks, made)
		}
	}
	return all
}

// oneByOne returns what there is a value of each: links, ports or flows. It is one
// without name if there is no other.
func oneByOne(m experiment.Measure) []string {
	objects := objectsOf(m)
	if len(objects) == 1 || len(objects) > 1 && m.Metric.Together() {
		return []string{""}
	}
	return objects
}

// cases returns those of the names that any track has.
func (o overCases) cases(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.ContainsFunc(o.tracks, func(t *track) bool {
			return slices.ContainsFunc(t.marks, func(m mark) bool { return m.name == name })
		})
	})
}

// figure draws a curve for each track over the cases. A scheme looks the same in all figures.
func (o overCases) figure(cases, schemes []string) *figure {
	var values []float64
	objects := oneByOne(o.m)
	for _, t := range o.tracks {
		for _, m := range t.marks {
			if m.err == nil {
				values = append(values, m.value.Value)
			}
		}
	}
	f := named(o.what, inWords(o.m.Metric)+" of "+strings.Join(objectsOf(o.m), ", ")+", in each case.", cases)
	axis := newValueAxis(o.m.Metric.Unit(), values, 0.08)
	var plotters []plot.Plotter
	missing := false
	for i, t := range o.tracks {
		look := lookOf(slices.Index(schemes, t.scheme), slices.Index(objects, t.object))
		f.legend = append(f.legend, legendEntry{strings.TrimSpace(strings.ToUpper(t.scheme) + " " + t.object), look})
		for _, part := range t.parts(cases, axis) {
			plotters = append(plotters, &curve{part, look})
		}
		gone := t.missing(cases)
		missing = missing || len(gone) > 0
		plotters = append(plotters, &crosses{at: gone, color: look.line, shift: 6 * (vg.Length(i) - vg.Length(len(o.tracks)-1)/2)})
	}
	if missing {
		f.legend = append(f.legend, legendEntry{"not reached or not measured", swatch{marker: draw.CrossGlyph{}, line: color.Black, unlined: true}})
	}
	f.add(o.m.Metric, axis, plotters...)
	return f
}

// lookOf tells schemes apart by colour and marker, and objects after the first by dashes.
func lookOf(scheme, object int) swatch {
	look := swatch{line: flowColors[scheme%len(flowColors)], marker: markers[scheme%len(markers)]}
	if object > 0 {
		look.dashes = []vg.Length{vg.Points(float64(6 - 2*(object%3))), vg.Points(2)}
	}
	return look
}

// parts returns the marks that have a value as points, a part for each row of cases without a gap.
func (t *track) parts(cases []string, axis valueAxis) [][]point {
	var parts [][]point
	last := -2
	for x, name := range cases {
		for _, m := range t.marks {
			if m.name != name || m.err != nil {
				continue
			}
			if x > last+1 {
				parts = append(parts, nil)
			}
			i := len(parts) - 1
			parts[i], last = append(parts[i], point{float64(x), axis.at(m.value.Value)}), x
		}
	}
	return parts
}

// missing returns the cases in which there is no value.
func (t *track) missing(cases []string) []int {
	var at []int
	for _, m := range t.marks {
		if m.err != nil {
			at = append(at, slices.Index(cases, m.name))
		}
	}
	return at
}

// crosses are at the upper end of a panel, where names have no value.
type crosses struct {
	at    []int
	shift vg.Length // apart from those of other schemes
	color color.Color
}

// Plot implements [plot.Plotter].
func (x *crosses) Plot(c draw.Canvas, p *plot.Plot) {
	trX, _ := p.Transforms(&c)
	for _, at := range x.at {
		swatch{line: x.color, marker: draw.CrossGlyph{}}.mark(c, vg.Point{X: trX(float64(at)) + x.shift, Y: c.Max.Y - 6})
	}
}
