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

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

//go:embed sweep.html.tmpl
var sweepText string

// Sweep is the data of a sweep's report.
type Sweep struct {
	Title, Name string
	Seeds       int
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
	Runs, Values    int     // invalid runs and missing values make Values smaller than Runs
	Mean, Low, High float64 // in the unit of the metric; 0 without any value
	Text            string  // mean and interval
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
	views := [][]figureView{figures}
	noPDF, err := addDownloads(views)
	if err != nil {
		return fmt.Errorf("draw sweep %s: %w", s.Name, err)
	}
	t, err := template.New("sweep").Parse(figuresText + sweepText)
	if err != nil {
		return fmt.Errorf("parse template of report: %w", err)
	}
	err = writeSmall(w, func(w io.Writer, thrift thrift) error {
		code, err := pageCode(views, noPDF, thrift)
		if err != nil {
			return err
		}
		return t.Execute(w, struct {
			Sweep
			Code    liveCode
			Finding string
			Figures []figureView
			Maps    []heatmap
		}{s, code, s.finding(), figures, maps})
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
		if text := measureSentence(m.Measure, s.namedValues(m)); text != "" {
			return text + "."
		}
	}
	return ""
}

// Caption returns the metric and its objects as text.
func (m SweepMetric) Caption() string {
	text := measureCaption(m.Measure)
	if len(m.Measure.Objects()) > 1 && m.Measure.Metric != experiment.Jain {
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
			values = append(values, r.Mean, r.High)
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
	f := named(m.Name, m.Caption()+". Mean over the seeds, and its "+intervalNote+".", names)
	axis := newValueAxis(m.Measure.Metric.Unit(), values, 0.08)
	var plotters []plot.Plotter
	for i, scheme := range s.Schemes {
		look := lookOf(i, 0)
		f.legend = append(f.legend, legendEntry{strings.ToUpper(scheme), look})
		shift := 0.08 * (float64(i) - float64(len(s.Schemes)-1)/2) // keeps intervals apart
		var means []point
		var bars errorBars
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
			}
		}
		bars.color, bars.name = look.line, strings.ToUpper(scheme)
		plotters = append(plotters, &bars)
		for _, part := range splitAtGaps(means) {
			plotters = append(plotters,
				&curve{points: part, swatch: look, name: strings.ToUpper(scheme)})
		}
	}
	f.sentence = measureSentence(m.Measure, s.namedValues(m))
	f.add(m.Measure.Metric, axis, plotters...)
	return f
}

// namedValues returns the means of a metric, each with its scheme and point.
func (s Sweep) namedValues(m SweepMetric) []namedValue {
	var values []namedValue
	for _, r := range m.Rows {
		if r.Values == 0 {
			continue
		}
		who := strings.ToUpper(r.Scheme)
		if len(s.Points) > 1 {
			who += ", " + strings.Join(r.Columns, ", ")
		}
		values = append(values, namedValue{who: who, value: r.Mean, unit: m.Measure.Metric.Unit()})
	}
	return values
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

// Missing returns the number of runs without a value.
func (r SweepRow) Missing() int { return r.Runs - r.Values }

// Met returns the number of bounds that are met.
func (s Sweep) Met() int {
	return len(slices.DeleteFunc(slices.Clone(s.Outcomes),
		func(o SweepOutcome) bool { return !o.Pass }))
}
