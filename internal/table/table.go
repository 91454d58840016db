// SPDX-License-Identifier: Apache-2.0

// Package table is the one table that runs, runs with several seeds, and sweeps leave behind: a row
// for each measured value. docs/results.md describes its columns. What a report of several seeds
// shows is read from it, so no digit may be lost.
package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/result"
)

// File is the name of the table in a folder of results.
const File = "results.csv"

// Kind is the list of an experiment's file that asks for a value.
type Kind string

// The values of [Kind].
const (
	Expect  Kind = "expect"
	Compare Kind = "compare"
	Metrics Kind = "metrics"
	// CompareCase is the value of a comparison in one of several cases.
	CompareCase Kind = "compare_case"
)

// Row is one value, or the reason why there is none.
type Row struct {
	Experiment   string
	Engine       experiment.Engine
	Case, Scheme string // Case is empty if there are none, or if the value is over all of them
	Seed         uint64
	Verdict      result.Verdict // invalid if a run that the value comes from is
	Kind         Kind
	Number       int    // in the list of that kind, from 0 on
	What         string // the value in words; of metrics, the name
	Metric       experiment.Metric
	Object       string // link, port or flow; empty for the whole run
	Unit         string // as in JSON
	// Value is nil if there is none. Then LongerThan may say how long a time is at least, and Error
	// says why there is none.
	Value, LongerThan *float64
	Error             string
	Paper, Min, Max   *float64
	Pass              *bool // nil if nothing judges the value
	// Parameters are those of a sweep's point, in the order of [Table.Parameters].
	Parameters []string
}

// Table is a table of results.
type Table struct {
	Parameters []string // names of a sweep's parameters
	Rows       []Row
}

// columnKind is the type of a column's cells.
type columnKind int

const (
	text columnKind = iota
	number
	whole
	yesNo
)

// column is one of the columns that every table has.
type column struct {
	name string
	kind columnKind
	get  func(*Row) string
	set  func(*Row, string) error // of a cell that is not empty
}

var columns = []column{
	textColumn("experiment", func(r *Row) *string { return &r.Experiment }),
	textColumn("engine", func(r *Row) *string { return (*string)(&r.Engine) }),
	textColumn("case", func(r *Row) *string { return &r.Case }),
	textColumn("scheme", func(r *Row) *string { return &r.Scheme }),
	{"seed", whole, func(r *Row) string { return strconv.FormatUint(r.Seed, 10) },
		func(r *Row, cell string) (err error) {
			r.Seed, err = strconv.ParseUint(cell, 10, 64)
			return err
		}},
	textColumn("verdict", func(r *Row) *string { return (*string)(&r.Verdict) }),
	textColumn("kind", func(r *Row) *string { return (*string)(&r.Kind) }),
	{"number", whole, func(r *Row) string { return strconv.Itoa(r.Number) },
		func(r *Row, cell string) (err error) {
			r.Number, err = strconv.Atoi(cell)
			return err
		}},
	textColumn("what", func(r *Row) *string { return &r.What }),
	textColumn("metric", func(r *Row) *string { return (*string)(&r.Metric) }),
	textColumn("object", func(r *Row) *string { return &r.Object }),
	textColumn("unit", func(r *Row) *string { return &r.Unit }),
	numberColumn("value", func(r *Row) **float64 { return &r.Value }),
	numberColumn("longer_than", func(r *Row) **float64 { return &r.LongerThan }),
	textColumn("error", func(r *Row) *string { return &r.Error }),
	numberColumn("paper", func(r *Row) **float64 { return &r.Paper }),
	numberColumn("min", func(r *Row) **float64 { return &r.Min }),
	numberColumn("max", func(r *Row) **float64 { return &r.Max }),
	{"pass", yesNo, func(r *Row) string {
		if r.Pass == nil {
			return ""
		}
		return strings.ToUpper(strconv.FormatBool(*r.Pass)) // as R reads it
	}, func(r *Row, cell string) error {
		pass, err := strconv.ParseBool(cell)
		r.Pass = &pass
		return err
	}},
}

func textColumn(name string, field func(*Row) *string) column {
	return column{name, text, func(r *Row) string { return *field(r) },
		func(r *Row, cell string) error {
			*field(r) = cell
			return nil
		}}
}

func numberColumn(name string, field func(*Row) **float64) column {
	return column{name, number, func(r *Row) string {
		if v := *field(r); v != nil {
			return formatNumber(*v)
		}
		return ""
	}, func(r *Row, cell string) error {
		v, err := strconv.ParseFloat(cell, 64)
		*field(r) = &v
		return err
	}}
}

// formatNumber returns the shortest text that is read as the same number.
func formatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Columns returns the names of the columns that every table has.
func Columns() []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return names
}

// records returns the table as text, the header first.
func (t Table) records() [][]string {
	all := [][]string{append(Columns(), t.Parameters...)}
	for _, r := range t.Rows {
		var line []string
		for _, c := range columns {
			line = append(line, c.get(&r))
		}
		all = append(all, append(line, r.Parameters...))
	}
	return all
}

// WriteCSV writes the table as CSV, the header first. A cell without a value is empty.
func (t Table) WriteCSV(w io.Writer) error {
	if err := csv.NewWriter(w).WriteAll(t.records()); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// WriteFile writes the table into a folder of results.
func (t Table) WriteFile(dir string) error {
	f, err := os.Create(filepath.Join(dir, File))
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return errors.Join(t.WriteCSV(f), f.Close())
}

// ReadFile reads the table of a folder of results.
func ReadFile(dir string) (Table, error) {
	path := filepath.Join(dir, File)
	f, err := os.Open(path)
	if err != nil {
		return Table{}, fmt.Errorf("read the table: %w", err)
	}
	defer f.Close()
	t, err := readCSV(f)
	if err != nil {
		return Table{}, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func readCSV(from io.Reader) (t Table, err error) {
	in := csv.NewReader(from)
	header, err := in.Read()
	if err != nil {
		return t, fmt.Errorf("read the header: %w", err)
	}
	for i, c := range columns {
		if i >= len(header) || header[i] != c.name {
			return t, fmt.Errorf("line 1: want column %q as number %d: run the experiment again "+
				"with this version of pcn", c.name, i+1)
		}
	}
	t.Parameters = header[len(columns):]
	for {
		line, err := in.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return t, err
		}
		r := Row{Parameters: line[len(columns):]}
		for i, c := range columns {
			if line[i] == "" {
				continue
			}
			if err := c.set(&r, line[i]); err != nil {
				at, _ := in.FieldPos(i)
				return t, fmt.Errorf("line %d, column %s: %w", at, c.name, err)
			}
		}
		t.Rows = append(t.Rows, r)
	}
}

// Join returns one table with the rows of all. A table without a parameter of another has empty
// cells there.
func Join(tables []Table) Table {
	var joined Table
	place := map[string]int{}
	for _, t := range tables {
		for _, name := range t.Parameters {
			if _, ok := place[name]; !ok {
				place[name] = len(joined.Parameters)
				joined.Parameters = append(joined.Parameters, name)
			}
		}
	}
	for _, t := range tables {
		for _, r := range t.Rows {
			cells := make([]string, len(joined.Parameters))
			for i, name := range t.Parameters {
				cells[place[name]] = r.Parameters[i]
			}
			r.Parameters = cells
			joined.Rows = append(joined.Rows, r)
		}
	}
	return joined
}

// Of returns the table of an experiment's runs: those of each seed.
func Of(e *experiment.Experiment, seeds []result.Judged) Table {
	var t Table
	for _, j := range seeds {
		t.Rows = append(t.Rows, rowsOf(e, j)...)
	}
	return t
}

func rowsOf(e *experiment.Experiment, j result.Judged) []Row {
	var rows []Row
	for _, run := range j.Runs {
		m := run.Manifest
		of := Row{Experiment: e.Name, Engine: m.RanOn(), Case: m.Case, Scheme: m.Scheme,
			Seed: m.Seed, Verdict: m.Verdict}
		for _, o := range run.Outcomes {
			rows = append(rows, expectRows(of, o)...)
		}
		for i, v := range run.Metrics {
			rows = append(rows, MetricRow(of, i, v))
		}
	}
	for _, o := range j.Compared {
		for _, v := range o.Values {
			rows = append(rows, compareRows(Row{Experiment: e.Name, Engine: o.Engine,
				Scheme: v.Scheme, Seed: j.Seed, Verdict: verdictOf(j, o.Engine, v.Scheme),
				Kind: Compare, Number: o.Number, What: e.Compare[o.Number].What,
				Metric: o.Compare.Metric}, v)...)
		}
	}
	return rows
}

// MetricRow returns the row of a metric without bounds, the number-th of its list. The other
// columns are those of the given row.
func MetricRow(of Row, number int, v result.MetricValue) Row {
	of.Kind, of.Number, of.What, of.Metric = Metrics, number, v.Name, v.Metric
	of.measure(&v.Measured, v.Err)
	return of
}

// compareRows returns the row of a scheme's value and, of several cases, one for each of them.
func compareRows(of Row, v result.CompareValue) []Row {
	whole := of
	whole.Paper, whole.Min, whole.Max = valueOf(v.Paper), valueOf(v.Min), valueOf(v.Max)
	if v.Judged {
		whole.Pass = new(v.Pass)
	}
	whole.measure(&v.Measured, v.Err)
	rows := []Row{whole}
	if len(v.Cases) < 2 {
		return rows
	}
	for _, c := range v.Cases {
		r := of
		r.Kind, r.Case = CompareCase, c.Case
		r.measure(&c.Measured, c.Err)
		rows = append(rows, r)
	}
	return rows
}

func expectRows(of Row, o result.Outcome) []Row {
	of.Kind, of.Number, of.What, of.Metric = Expect, o.Number, o.Expect.What, o.Expect.Metric
	of.Min, of.Max, of.Pass = valueOf(o.Expect.Min), valueOf(o.Expect.Max), new(o.Pass)
	if o.Err != nil {
		of.measure(nil, o.Err)
		return []Row{of}
	}
	var rows []Row
	for i, v := range o.Measured {
		r := of
		r.Object = o.Objects[i]
		r.measure(&v, nil)
		rows = append(rows, r)
	}
	return rows
}

// measure sets the value and its unit, or why there is none.
func (r *Row) measure(v *experiment.Quantity, err error) {
	r.Unit = jsonout.UnitOf(r.Metric.Unit())
	if err == nil {
		r.Value = valueOf(v)
		return
	}
	r.Error = err.Error()
	if ns, ok := result.LongerThan(err); ok {
		r.LongerThan = new(float64(ns))
	}
}

// verdictOf returns invalid if a run of the scheme is.
func verdictOf(j result.Judged, engine experiment.Engine, scheme string) result.Verdict {
	for _, r := range j.Runs {
		m := r.Manifest
		if m.RanOn() == engine && m.Scheme == scheme && m.Verdict == result.Invalid {
			return result.Invalid
		}
	}
	return result.Valid
}

func valueOf(q *config.Quantity) *float64 {
	if q == nil {
		return nil
	}
	return &q.Value
}
