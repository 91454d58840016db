// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
)

//go:embed sweep.html.tmpl
var sweepText string

// Sweep is the data of a sweep's report.
type Sweep struct {
	Title, Name string
	About       string // who sends what to whom; may be empty
	Seeds       int
	Duration    string `json:",omitempty"` // of each run; empty if points differ
	Schemes     []string
	Points      []string // their labels
	PointHeader []string // names of the columns of a point
	Metrics     []SweepMetric
	Outcomes    []SweepOutcome // one for each bound
	Invalid     []InvalidCell
}

// SweepMetric is a metric at all points, for all schemes.
type SweepMetric struct {
	Name    string
	Measure experiment.Measure
	Over    experiment.Over
	Rows    []SweepRow
}

// SweepRow is the mean over the seeds of a point and scheme.
type SweepRow struct {
	Point           int
	Columns         []string // of the point
	Scheme          string
	Runs, Values    int       // invalid runs and missing values make Values smaller than Runs
	Mean, Low, High float64   // in the unit of the metric; 0 without any value
	Text            string    // mean and interval
	Seeds           []float64 `json:",omitempty"` // the values; absent in sweeps of older versions
}

// SweepOutcome is the result of checking a bound.
type SweepOutcome struct {
	Metric, Point, Scheme, Mean, Bound string
	Pass                               bool
}

// InvalidCell is an invalid run.
type InvalidCell struct {
	Cell    string
	Reasons []string
}

// SweepFile is the name of the file that has a sweep's [Sweep] in its folder.
const SweepFile = "sweep.json"

// ReadSweep reads what the report of a sweep shows from the sweep's folder.
func ReadSweep(dir string) (s Sweep, err error) {
	path := filepath.Join(dir, SweepFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return s, fmt.Errorf("read the sweep: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// WriteJSON writes what [ReadSweep] reads.
func (s Sweep) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// WriteSweep writes the report of a sweep. The same results give the same bytes.
func WriteSweep(w io.Writer, s Sweep) error {
	var maps []heatmap
	if s.isMap() {
		for _, m := range s.Metrics {
			maps = append(maps, s.heatmap(m))
		}
	}
	drawn := s.figures()
	figures, err := figureViews(fileName(s.Name)+"-", drawn)
	if err != nil {
		return fmt.Errorf("draw sweep %s: %w", s.Name, err)
	}
	t, err := template.New("sweep").Parse(figuresText + sweepText)
	if err != nil {
		return fmt.Errorf("parse template of report: %w", err)
	}
	told := aboutOf(s.About, s.Schemes, scheme.Builtin())
	told.explain(s.Title)
	told.Schemes = append(told.Schemes, parametersOf(s.PointHeader, scheme.Builtin())...)
	err = drawPage(w, t, [][]figureView{figures}, func(code liveCode, _ thrift) any {
		return struct {
			Sweep
			Told    about
			Code    liveCode
			Finding string
			Figures []figureView
			Maps    []heatmap
		}{s, told, code, s.finding(), figures, maps}
	})
	if err != nil {
		return fmt.Errorf("write report of sweep %s: %w", s.Name, err)
	}
	return nil
}

// figures draws each metric, unless the points are shown as a map.
func (s Sweep) figures() []*figure {
	if s.isMap() {
		return nil
	}
	var drawn []*figure
	for _, m := range s.Metrics {
		if f := s.figure(m); f != nil {
			drawn = append(drawn, f)
		}
	}
	return drawn
}

// finding says what the first metric is.
func (s Sweep) finding() string {
	for _, m := range s.Metrics {
		if text := s.sentence(m); text != "" {
			return text + "."
		}
	}
	return ""
}

// Caption returns the metric and its objects as text.
func (m SweepMetric) Caption() string {
	text := measureCaption(m.Measure)
	if len(m.Measure.Objects()) > 1 && !m.Measure.Metric.Together() {
		text += " (" + string(m.Over) + ")"
	}
	return text
}

// figure draws a curve for each scheme over the points or, with one point, a marker for each
// scheme. It returns nil if there is no value.
func (s Sweep) figure(m SweepMetric) *figure {
	var values []float64
	for _, r := range m.Rows {
		if r.Values > 0 {
			values = append(append(values, r.Mean, r.High), r.Seeds...)
		}
	}
	if len(values) == 0 {
		return nil
	}
	names := s.Points
	onePoint := len(names) == 1
	if onePoint {
		names = s.Schemes
	}
	f := named(m.Name, m.Caption()+". Mean over the seeds, and its "+intervalNote+"."+
		s.noteOnMissing(m, ""), names)
	if !onePoint {
		f.xLabel = s.axisTitle()
	}
	axis := newValueAxis(m.Measure.Metric.Unit(), values, 0.08)
	var plotters []plot.Plotter
	dotted := false
	for i, scheme := range s.Schemes {
		look := lookOf(i, 0)
		f.legend = append(f.legend, legendEntry{strings.ToUpper(scheme), look})
		shift := 0.08 * (float64(i) - float64(len(s.Schemes)-1)/2) // keeps intervals apart
		var means []point
		var bars errorBars
		seeds := dots{name: oneSeed, swatch: oneSeedLook}
		for _, r := range m.Rows {
			if r.Scheme != scheme || r.Values == 0 {
				continue
			}
			x := float64(r.Point) + shift
			if onePoint {
				x = float64(i)
			}
			means = append(means, point{x, axis.at(r.Mean)})
			if r.Values > 1 {
				bars.at = append(bars.at, interval{x, axis.at(max(r.Low, 0)), axis.at(r.High)})
				for _, v := range r.Seeds {
					seeds.at = append(seeds.at, point{x, axis.at(v)})
				}
			}
		}
		bars.color, bars.name = look.line, strings.ToUpper(scheme)
		plotters = append(plotters, &bars, &seeds)
		dotted = dotted || seeds.at != nil
		for _, part := range splitAtGaps(means) {
			plotters = append(plotters,
				&curve{points: part, swatch: look, name: strings.ToUpper(scheme)})
		}
	}
	if dotted {
		f.legend = append(f.legend, legendEntry{oneSeed, oneSeedLook})
	}
	f.sentence = s.sentence(m)
	f.add(m.Measure.Metric, axis, plotters...)
	return f
}

// sentence says what each scheme's values are, and where they are least and largest; of many
// schemes only who has the least and the largest of all. It returns "" if there is no value.
func (s Sweep) sentence(m SweepMetric) string {
	all := s.namedValues(m)
	if len(s.Points) == 1 || len(all) == 0 {
		return measureSentence(m.Measure, all)
	}
	var parts []string
	for _, name := range s.Schemes {
		of := slices.DeleteFunc(slices.Clone(all),
			func(v namedValue) bool { return v.who != strings.ToUpper(name) })
		if len(of) > 0 {
			parts = append(parts, overPoints(of, topValue(all))+" with "+of[0].who)
		}
	}
	if len(parts) > maxListed {
		least, most := extremes(all)
		top := most.value
		parts = []string{fmt.Sprintf("%s (%s, %s) to %s (%s, %s)", least.inUnit(top), least.who,
			least.at, most.inUnit(top), most.who, most.at)}
	}
	return measureInWords(m.Measure) + ": " + strings.Join(parts, "; ")
}

// noteOnMissing says in a caption how many runs have no part in the means, and why, if it is known;
// mark shows where. It returns "" if all have.
func (s Sweep) noteOnMissing(m SweepMetric, mark string) string {
	runs, missing := 0, 0
	for _, r := range m.Rows {
		runs, missing = runs+r.Runs, missing+r.Missing()
	}
	if missing == 0 {
		return ""
	}
	text := fmt.Sprintf(" Means leave out %d of %d runs%s", missing, runs, mark)
	if s.Duration != "" && m.Measure.Target != nil && len(s.Invalid) == 0 {
		text += ", which did not reach the target in " + s.Duration
	}
	return text + "."
}

// namedValues returns the means of a metric, each with its scheme and point.
func (s Sweep) namedValues(m SweepMetric) []namedValue {
	var values []namedValue
	for _, r := range m.Rows {
		if r.Values > 0 {
			values = append(values, namedValue{who: strings.ToUpper(r.Scheme),
				at: s.pointInWords(r.Columns), value: r.Mean, unit: m.Measure.Metric.Unit()})
		}
	}
	return values
}

// overPoints says where a scheme's values are least and largest.
func overPoints(values []namedValue, top float64) string {
	least, most := extremes(values)
	switch {
	case len(values) == 1:
		return least.inUnit(top) + " at " + least.at
	case least.value == most.value:
		return least.inUnit(top) + " at every point"
	}
	return fmt.Sprintf("%s (%s) to %s (%s)", least.inUnit(top), least.at, most.inUnit(top), most.at)
}

// pointInWords names a point by its parameters: "burst size 64KB".
func (s Sweep) pointInWords(values []string) string {
	var words []string
	for i, v := range values {
		name := v
		if i < len(s.PointHeader) && s.PointHeader[i] != "case" {
			name = shortKey(s.PointHeader[i]) + " " + v
		}
		words = append(words, name)
	}
	return strings.Join(words, ", ")
}

// axisTitle names what points are of. Each point has its values with their units.
func (s Sweep) axisTitle() string {
	var words []string
	for _, path := range s.PointHeader {
		words = append(words, shortKey(path))
	}
	return strings.Join(words, ", ")
}

// shortKey names a parameter by its key and the one above it: "burst size".
func shortKey(path string) string {
	keys := strings.Split(path, ".")
	return strings.Join(keys[max(0, len(keys)-2):], " ")
}

// splitAtGaps cuts a curve where points have no value.
func splitAtGaps(points []point) [][]point {
	var parts [][]point
	for i, p := range points {
		if i == 0 || p.x-points[i-1].x > 1.5 {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], p)
	}
	return parts
}

// intervalNote tells an interval from its mean.
const intervalNote = "95% confidence interval"

// interval is a vertical line at x.
type interval struct{ x, low, high float64 }

// errorBars draws intervals with a short horizontal line at each end.
type errorBars struct {
	at    []interval
	color color.Color
	name  string // the entry of the legend
}

// Plot implements [plot.Plotter].
func (b *errorBars) Plot(c draw.Canvas, p *plot.Plot) {
	const cap vg.Length = 3
	trX, trY := p.Transforms(&c)
	line := draw.LineStyle{Color: b.color, Width: vg.Points(0.9)}
	for _, i := range b.at {
		x, low, high := trX(i.x), trY(i.low), trY(i.high)
		c.StrokeLine2(line, x, low, x, high)
		c.StrokeLine2(line, x-cap, low, x+cap, low)
		c.StrokeLine2(line, x-cap, high, x+cap, high)
	}
}

// SomeMissing reports whether any run has no value.
func (m SweepMetric) SomeMissing() bool {
	return slices.ContainsFunc(m.Rows, func(r SweepRow) bool { return r.Missing() > 0 })
}

// Missing returns the number of runs without a value.
func (r SweepRow) Missing() int { return r.Runs - r.Values }

// Met returns the number of bounds that are met.
func (s Sweep) Met() int {
	return len(slices.DeleteFunc(slices.Clone(s.Outcomes),
		func(o SweepOutcome) bool { return !o.Pass }))
}
