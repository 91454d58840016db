// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/netns-lab/report"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// Row is what was measured in a cell.
type Row struct {
	Cell
	Verdict result.Verdict
	Reasons []string
	Values  []Value // of the metrics
}

// Value is a number, or why there is none.
type Value struct {
	config.Quantity
	Err error
}

// Results are all cells of a sweep, and what they come to.
type Results struct {
	Sweep  *Sweep
	Rows   []Row
	Groups []Group
}

// Group is the cells of a point and scheme, which differ in the seed only.
type Group struct {
	Point     int
	Scheme    string
	Runs      int // cells
	Invalid   int // of them, which count for nothing
	Estimates []Estimate
}

// Collect measures all cells, which must be there, and writes sweep.csv, summary.csv and report.html. These depend on
// nothing but the cells' bytes.
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
		CellsFile: res.writeCells, SummaryFile: res.writeSummary, ReportFile: res.writeReport,
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
	row := Row{Cell: c, Verdict: run.Manifest.Verdict, Reasons: run.Manifest.Reasons}
	for _, m := range r.o.Sweep.Metrics {
		q, err := run.MeasureOne(m.Measure, m.Over)
		row.Values = append(row.Values, Value{q, err})
	}
	return row, nil
}

// group sums up the rows, of which those of a point and scheme are one after the other.
func (res *Results) group() {
	for from, to := 0, 0; from < len(res.Rows); from = to {
		first := res.Rows[from]
		g := Group{Point: first.Point, Scheme: first.Scheme}
		values := make([][]float64, len(res.Sweep.Metrics))
		for to = from; to < len(res.Rows) && res.Rows[to].Point == first.Point && res.Rows[to].Scheme == first.Scheme; to++ {
			row := res.Rows[to]
			g.Runs++
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
		for _, of := range values {
			g.Estimates = append(g.Estimates, estimate(of))
		}
		res.Groups = append(res.Groups, g)
	}
}

// Outcome is a bound of a metric held against the mean over the seeds.
type Outcome struct {
	Metric string
	Group  Group
	Bound  string
	Mean   string
	Pass   bool
}

// Outcomes are those of all bounds of the file.
func (res *Results) Outcomes() []Outcome {
	var all []Outcome
	for i, m := range res.Sweep.Metrics {
		for _, g := range res.Groups {
			b, ok := m.Bounds[g.Scheme]
			if !ok {
				continue
			}
			x := g.Estimates[i]
			low, high := b.Min == nil || x.Mean >= b.Min.Value, b.Max == nil || x.Mean <= b.Max.Value
			all = append(all, Outcome{m.Name, g, boundInWords(b.Min, b.Max), res.inWords(i, x), x.N > 0 && low && high})
		}
	}
	return all
}

func boundInWords(low, high *config.Quantity) string {
	switch {
	case low == nil:
		return "at most " + high.String()
	case high == nil:
		return "at least " + low.String()
	default:
		return low.String() + " to " + high.String()
	}
}

// InWords is the estimate of the i-th metric in a group, and how many runs have a value where that is not all.
func (res *Results) InWords(g Group, i int) string {
	x := g.Estimates[i]
	text := res.inWords(i, x)
	if x.N < g.Runs {
		text += fmt.Sprintf(" (%d of %d)", x.N, g.Runs)
	}
	return text
}

// inWords is an estimate of the i-th metric: its mean, and half the width of its interval.
func (res *Results) inWords(i int, x Estimate) string {
	unit := res.Sweep.Metrics[i].Metric.Unit()
	text := config.Quantity{Value: x.Mean, Unit: unit}.String()
	switch {
	case x.N == 0:
		return "-"
	case x.N == 1:
		return text
	default:
		return text + " ± " + config.Quantity{Value: (x.High - x.Low) / 2, Unit: unit}.String()
	}
}

// pointHeader names the columns of a point.
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

// suffixes are of columns, by what is in them.
var suffixes = map[config.Unit]string{
	config.UnitCount: "", config.UnitShare: "", config.UnitTime: "_ns", config.UnitRate: "_bps", config.UnitBytes: "_bytes",
}

// writeCells writes a row a cell. A value that could not be measured is empty.
func (res *Results) writeCells(w io.Writer) error {
	header := append(res.pointHeader(), "scheme", "seed", "cell", "verdict")
	for _, m := range res.Sweep.Metrics {
		header = append(header, m.Name+suffixes[m.Metric.Unit()])
	}
	lines := [][]string{header}
	for _, row := range res.Rows {
		line := append(append([]string(nil), res.pointColumns(row.Point)...), row.Scheme, strconv.FormatUint(row.Seed, 10), row.ID, string(row.Verdict))
		for _, v := range row.Values {
			text := ""
			if v.Err == nil {
				text = number(v.Value)
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// writeSummary writes a row for each point, scheme and metric.
func (res *Results) writeSummary(w io.Writer) error {
	lines := [][]string{append(res.pointHeader(), "scheme", "metric", "unit", "runs", "invalid_runs", "values", "mean", "ci95_low", "ci95_high", "std_dev")}
	for _, g := range res.Groups {
		for i, x := range g.Estimates {
			m := res.Sweep.Metrics[i]
			line := append(append([]string(nil), res.pointColumns(g.Point)...), g.Scheme, m.Name, unitNames[m.Metric.Unit()],
				strconv.Itoa(g.Runs), strconv.Itoa(g.Invalid), strconv.Itoa(x.N), "", "", "", "")
			at := len(line) - 4
			if x.N > 0 {
				line[at] = number(x.Mean)
			}
			if x.N > 1 {
				line[at+1], line[at+2], line[at+3] = number(x.Low), number(x.High), number(x.StdDev)
			}
			lines = append(lines, line)
		}
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// unitNames are those of the numbers in summary.csv.
var unitNames = map[config.Unit]string{
	config.UnitCount: "1", config.UnitShare: "1", config.UnitTime: "ns", config.UnitRate: "bps", config.UnitBytes: "bytes",
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (res *Results) writeReport(w io.Writer) error {
	s := res.Sweep
	page := report.Sweep{Title: s.Title, Name: s.Name, Seeds: len(s.Seeds), Schemes: s.Schemes, PointHeader: res.pointHeader()}
	for _, p := range s.Points {
		page.Points = append(page.Points, p.Label())
	}
	for _, row := range res.Rows {
		if row.Verdict == result.Invalid {
			page.Invalid = append(page.Invalid, report.InvalidCell{Cell: row.ID, Reasons: row.Reasons})
		}
	}
	for i, m := range s.Metrics {
		x := report.SweepMetric{Name: m.Name, Measure: m.Measure, Over: m.Over}
		for _, g := range res.Groups {
			e := g.Estimates[i]
			x.Rows = append(x.Rows, report.SweepRow{
				Point: g.Point, Columns: res.pointColumns(g.Point), Scheme: g.Scheme, Runs: g.Runs, Values: e.N,
				Mean: e.Mean, Low: e.Low, High: e.High, Text: res.inWords(i, e),
			})
		}
		page.Metrics = append(page.Metrics, x)
	}
	for _, o := range res.Outcomes() {
		page.Outcomes = append(page.Outcomes, report.SweepOutcome{
			Metric: o.Metric, Point: s.Points[o.Group.Point].Label(), Scheme: o.Group.Scheme, Mean: o.Mean, Bound: o.Bound, Pass: o.Pass,
		})
	}
	return report.WriteSweep(w, page)
}

// writeFile writes a file as a whole or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sweep-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // there is none once it is renamed
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
