// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/table"
)

// Row has the measurements of a cell.
type Row struct {
	Cell
	Engine  experiment.Engine
	Verdict result.Verdict
	Reasons []string
	Values  []Value // in the order of the metrics
}

// Value is a measured quantity, or the reason why there is none.
type Value struct {
	config.Quantity
	Err error
}

// Results are the measurements of a sweep.
type Results struct {
	Sweep  *Sweep
	Rows   []Row
	Groups []Group
}

// Group sums up the cells of one point and scheme, which differ only in the seed.
type Group struct {
	Point     int // index into the sweep's points
	Scheme    string
	Runs      int        // number of cells
	Invalid   int        // how many of them are invalid; their values are not used
	Estimates []Estimate // in the order of the metrics
}

// Collect measures all cells and writes sweep.csv, summary.csv, results.csv, sweep.json and
// report.html. It fails if a cell
// is missing. The files depend only on the bytes of the cells.
func (r *Runner) Collect() (*Results, error) {
	res := &Results{Sweep: r.o.Sweep}
	for _, c := range r.cells {
		row, err := r.measure(c)
		if err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, row)
	}
	res.group()
	for name, write := range map[string]func(io.Writer) error{
		cellsFile: res.writeCells, summaryFile: res.writeSummary, ReportFile: res.writeReport,
		table.File: res.Table().WriteCSV, report.SweepFile: res.Report().WriteJSON,
	} {
		if err := writeFile(filepath.Join(r.o.Out, name), write); err != nil {
			return nil, err
		}
	}
	return res, nil
}

func (r *Runner) measure(c Cell) (Row, error) {
	run, err := result.Read(r.store.path(c.ID))
	if err != nil {
		return Row{}, fmt.Errorf("cell %s: %w", c.ID, err)
	}
	row := Row{Cell: c, Engine: run.Manifest.RanOn(), Verdict: run.Manifest.Verdict,
		Reasons: run.Manifest.Reasons}
	if r.o.Sweep.Keep == KeepAll {
		row.Values = r.values(run)
		return row, nil
	}
	row.Values, err = readValues(r.store.path(c.ID), r.o.Sweep.Metrics)
	return row, err
}

// group makes the groups from the rows. Rows of one point and scheme stand together.
func (res *Results) group() {
	rows := res.Rows
	for len(rows) > 0 {
		first := rows[0]
		other := slices.IndexFunc(rows, func(r Row) bool {
			return r.Point != first.Point || r.Scheme != first.Scheme
		})
		if other < 0 {
			other = len(rows)
		}
		res.Groups = append(res.Groups, groupOf(rows[:other], res.Sweep.Metrics))
		rows = rows[other:]
	}
}

func groupOf(rows []Row, metrics []Metric) Group {
	g := Group{Point: rows[0].Point, Scheme: rows[0].Scheme, Runs: len(rows)}
	values := make([][]float64, len(metrics))
	for _, row := range rows {
		if row.Verdict == result.Invalid {
			g.Invalid++
			continue
		}
		for i, v := range row.Values {
			if v.Err == nil {
				values[i] = append(values[i], v.Value)
			}
		}
	}
	for i, v := range values {
		g.Estimates = append(g.Estimates, estimate(v, metrics[i].Metric))
	}
	return g
}

// Outcome says whether the mean of a metric over the seeds is within a bound of the file.
type Outcome struct {
	Metric string
	Group  Group
	Bound  string
	Mean   string
	Pass   bool
}

// Outcomes checks every bound of the file.
func (res *Results) Outcomes() []Outcome {
	var all []Outcome
	for i, m := range res.Sweep.Metrics {
		for _, g := range res.Groups {
			b, ok := m.Bounds[g.Scheme]
			if !ok {
				continue
			}
			x := g.Estimates[i]
			pass := x.N > 0 &&
				(b.Min == nil || x.Mean >= b.Min.Value) && (b.Max == nil || x.Mean <= b.Max.Value)
			all = append(all, Outcome{
				m.Name, g, result.FormatBound(b.Min, b.Max), res.formatEstimate(i, x), pass,
			})
		}
	}
	return all
}

// Format returns the estimate of the i-th metric in a group, such as "4 ± 1 (3 of 4)" if only 3 of
// 4 runs have a value.
func (res *Results) Format(g Group, i int) string {
	x := g.Estimates[i]
	text := res.formatEstimate(i, x)
	if x.N < g.Runs {
		text += fmt.Sprintf(" (%d of %d)", x.N, g.Runs)
	}
	return text
}

// formatEstimate returns an estimate of the i-th metric: the mean and half the width of the
// interval or, if the mean is not its middle, both ends.
func (res *Results) formatEstimate(i int, x Estimate) string {
	unit := res.Sweep.Metrics[i].Metric.Unit()
	of := func(v float64) string { return config.Quantity{Value: v, Unit: unit}.String() }
	text := of(x.Mean)
	least, most := res.Sweep.Metrics[i].Metric.Range()
	switch {
	case x.N == 0:
		return "-"
	case x.N == 1:
		return text
	case x.Low < x.High && (x.Low == least || x.High == most):
		return fmt.Sprintf("%s [%s to %s]", text, of(x.Low), of(x.High))
	default:
		return text + " ± " + of((x.High-x.Low)/2)
	}
}

// pointHeader returns the names of the columns that describe a point.
func (res *Results) pointHeader() []string {
	header := append([]string(nil), res.Sweep.Parameters...)
	if res.hasCases() {
		header = append([]string{"case"}, header...)
	}
	return header
}

func (res *Results) hasCases() bool { return res.Sweep.Points[0].Case != "" }

func (res *Results) pointColumns(i int) []string {
	p := res.Sweep.Points[i]
	if !res.hasCases() {
		return p.Values
	}
	return append([]string{p.Case}, p.Values...)
}

// columnSuffixes end the names of columns in sweep.csv.
var columnSuffixes = map[config.Unit]string{
	config.UnitCount: "", config.UnitShare: "",
	config.UnitTime: "_ns", config.UnitRate: "_bps", config.UnitBytes: "_bytes",
}

// writeCells writes one row for each cell. A value that could not be measured is empty.
func (res *Results) writeCells(w io.Writer) error {
	header := append(res.pointHeader(), "scheme", "seed", "cell", "verdict")
	for _, m := range res.Sweep.Metrics {
		header = append(header, m.Name+columnSuffixes[m.Metric.Unit()])
	}
	lines := [][]string{header}
	for _, row := range res.Rows {
		line := slices.Concat(res.pointColumns(row.Point), []string{
			row.Scheme, strconv.FormatUint(row.Seed, 10), row.ID, string(row.Verdict),
		})
		for _, v := range row.Values {
			text := ""
			if v.Err == nil {
				text = formatNumber(v.Value)
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// Table returns all values as one table.
func (res *Results) Table() table.Table {
	t := table.Table{Parameters: res.Sweep.Parameters}
	for _, row := range res.Rows {
		p := res.Sweep.Points[row.Point]
		for i, m := range res.Sweep.Metrics {
			v := row.Values[i]
			t.Rows = append(t.Rows, table.MetricRow(table.Row{
				Experiment: p.Experiment.Name, Engine: row.Engine, Case: p.Case,
				Scheme: row.Scheme, Seed: row.Seed, Verdict: row.Verdict, Parameters: p.Values,
			}, i, result.MetricValue{NamedMetric: m.NamedMetric, Measured: v.Quantity,
				Err: v.Err}))
		}
	}
	return t
}

// writeSummary writes a row for each point, scheme and metric.
func (res *Results) writeSummary(w io.Writer) error {
	lines := [][]string{append(res.pointHeader(), "scheme", "metric", "unit",
		"runs", "invalid_runs", "values", "mean", "ci95_low", "ci95_high", "std_dev")}
	for _, g := range res.Groups {
		for i, x := range g.Estimates {
			m := res.Sweep.Metrics[i]
			var mean, low, high, stdDev string
			if x.N > 0 {
				mean = formatNumber(x.Mean)
			}
			if x.N > 1 {
				low, high, stdDev = formatNumber(x.Low), formatNumber(x.High),
					formatNumber(x.StdDev)
			}
			lines = append(lines, slices.Concat(res.pointColumns(g.Point), []string{
				g.Scheme, m.Name, unitNames[m.Metric.Unit()],
				strconv.Itoa(g.Runs), strconv.Itoa(g.Invalid), strconv.Itoa(x.N),
				mean, low, high, stdDev,
			}))
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// unitNames are the units in summary.csv.
var unitNames = map[config.Unit]string{
	config.UnitCount: "1", config.UnitShare: "1",
	config.UnitTime: "ns", config.UnitRate: "bps", config.UnitBytes: "bytes",
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (res *Results) writeReport(w io.Writer) error {
	return report.WriteSweep(w, res.Report())
}

// Report returns the data of the sweep's report.
func (res *Results) Report() report.Sweep {
	s := res.Sweep
	page := report.Sweep{
		Title: s.Title, Name: s.Name, About: s.About, Seeds: len(s.Seeds), Schemes: s.Schemes,
		PointHeader: res.pointHeader(), Duration: s.Points[0].Experiment.Duration.String(),
	}
	for _, p := range s.Points {
		page.Points = append(page.Points, p.Label())
		if p.Experiment.Duration != s.Points[0].Experiment.Duration {
			page.Duration = ""
		}
	}
	for _, row := range res.Rows {
		if row.Verdict == result.Invalid {
			page.Invalid = append(page.Invalid,
				report.InvalidCell{Cell: row.ID, Reasons: row.Reasons})
		}
	}
	for i, m := range s.Metrics {
		x := report.SweepMetric{Name: m.Name, Measure: m.Measure, Over: m.Over}
		for _, g := range res.Groups {
			e := g.Estimates[i]
			x.Rows = append(x.Rows, report.SweepRow{
				Point: g.Point, Columns: res.pointColumns(g.Point), Scheme: g.Scheme,
				Runs: g.Runs, Values: e.N, Seeds: e.Seeds,
				Mean: e.Mean, Low: e.Low, High: e.High, Text: res.formatEstimate(i, e),
			})
		}
		page.Metrics = append(page.Metrics, x)
	}
	for _, o := range res.Outcomes() {
		page.Outcomes = append(page.Outcomes, report.SweepOutcome{
			Metric: o.Metric, Point: s.Points[o.Group.Point].Label(), Scheme: o.Group.Scheme,
			Mean: o.Mean, Bound: o.Bound, Pass: o.Pass,
		})
	}
	return page
}

// writeFile writes a whole file or none: an interrupted write leaves the old one.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sweep-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // fails without harm after the rename
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
