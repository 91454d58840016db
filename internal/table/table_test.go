// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/parquet-go/parquet-go"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

const file = `name: t
topology: {kind: star, hosts: 3, rate: 10Gbps, delay: 1us}
schemes: [pcn, pfc]
flows: [{name: A, from: H0, to: H2}, {name: B, from: H1, to: H2}]
duration: 2ms
expect:
  - {what: two flows, metric: mean_rate, flows: [A, B], min: 1Gbps, max: 6Gbps}
  - {what: of pcn only, scheme: pcn, metric: lost_packets, max: 0}
compare:
  - {what: both, metric: mean_rate, flows: [A, B], over: min}
metrics:
  - {name: jain, metric: jain, flows: [A, B]}
`

func parsed(t *testing.T) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("t.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	return e
}

func rate(gbps float64) experiment.Quantity {
	return experiment.Quantity{Value: gbps * 1e9, Unit: experiment.UnitRate}
}

// judged is what two runs with a seed came to: values that no short text holds, and one that was
// not reached.
func judged(e *experiment.Experiment, seed uint64) result.Judged {
	j := result.Judged{Seed: seed}
	compared := result.CompareOutcome{Compare: e.Compare[0], Engine: experiment.EngineSim}
	for i, scheme := range e.Schemes {
		value := rate(1.0/3 + float64(i) + float64(seed))
		run := result.JudgedRun{Manifest: result.Manifest{Scheme: scheme, Seed: seed,
			Engine: "sim", Verdict: result.Valid}}
		for k, x := range e.Expect {
			if !x.Of(scheme, "") {
				continue
			}
			o := result.Outcome{Expect: x, Number: k, Scheme: scheme,
				Measured: []experiment.Quantity{value, value}, Objects: []string{"A", "B"}}
			if k == 1 {
				o.Measured, o.Objects = []experiment.Quantity{{Unit: experiment.UnitCount}},
					[]string{""}
			}
			o.Judge()
			run.Outcomes = append(run.Outcomes, o)
		}
		m := result.MetricValue{NamedMetric: e.Metrics[0],
			Err: result.NotReached(1500, `A: not reached, "quoted"`)}
		m.Measured.Unit = experiment.UnitCount
		run.Metrics = append(run.Metrics, m)
		j.Runs = append(j.Runs, run)
		compared.Values = append(compared.Values, result.CompareValue{Scheme: scheme,
			Measured: value, Cases: []result.CaseValue{{Measured: value}}})
	}
	compared.Judge()
	j.Compared = []result.CompareOutcome{compared}
	return j
}

func csvOf(t *testing.T, table Table) string {
	t.Helper()
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(table.WriteCSV(&buf)))
	return buf.String()
}

// What is written is read back to the digit: values, objects, bounds, and errors with how long was
// waited.
func TestRoundTrip(t *testing.T) {
	e := parsed(t)
	seeds := []result.Judged{judged(e, 1), judged(e, 2)}
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(Of(e, seeds).WriteFile(dir)))
	read, err := ReadFile(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(read.Rows, 2*(2+1+2+2+2)))
	again, err := read.Judged(e, experiment.EngineSim)
	qt.Assert(t, qt.IsNil(err))
	describe := func(all []result.Judged) (lines []string) {
		for _, j := range all {
			lines = append(lines, fmt.Sprintf("%+v", j.Runs), fmt.Sprintf("%+v", j.Compared))
		}
		return lines
	}
	qt.Check(t, qt.DeepEquals(describe(again), describe(seeds)))
	ns, ok := result.LongerThan(again[0].Runs[0].Metrics[0].Err)
	qt.Check(t, qt.IsTrue(ok))
	qt.Check(t, qt.Equals(ns, 1500))
	none, err := read.Judged(e, experiment.EngineKernel)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(none, 0))
}

// Parquet has the columns of the CSV file, in their order, with the same values.
func TestParquetIsTheCSV(t *testing.T) {
	e := parsed(t)
	table := Join([]Table{Of(e, []result.Judged{judged(e, 7)}), {Parameters: []string{"T"},
		Rows: []Row{{What: "of a sweep", Metric: experiment.Jain, Parameters: []string{"5us"}}}}})
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(table.WriteParquet(&buf)))
	in := parquet.NewReader(bytes.NewReader(buf.Bytes()))
	var names []string
	for _, c := range in.Schema().Columns() {
		names = append(names, strings.Join(c, "."))
	}
	want, err := csv.NewReader(strings.NewReader(csvOf(t, table))).ReadAll()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(names, want[0]))
	rows := make([]parquet.Row, len(want))
	n, _ := in.ReadRows(rows)
	qt.Assert(t, qt.Equals(n, len(want)-1))
	for i, row := range rows[:n] {
		for k, v := range row {
			cell := want[i+1][k]
			switch {
			case v.IsNull():
				qt.Check(t, qt.Equals(cell, ""), qt.Commentf("row %d, %s", i, names[k]))
			case v.Kind() == parquet.Double:
				qt.Check(t, qt.Equals(formatNumber(v.Double()), cell))
			case v.Kind() == parquet.Boolean:
				qt.Check(t, qt.Equals(strings.ToUpper(v.String()), cell))
			default:
				qt.Check(t, qt.Equals(v.String(), cell))
			}
		}
	}
	qt.Check(t, qt.Equals(want[len(want)-1][len(want[0])-1], "5us"))
}

// Wrong tables are refused, with the line.
func TestWrongTables(t *testing.T) {
	e := parsed(t)
	good := csvOf(t, Of(e, []result.Judged{judged(e, 1)}))
	for name, c := range map[string]struct{ old, new, want string }{
		"header": {"experiment,engine", "name,engine",
			`.*line 1: want column "experiment" as number 1: .*`},
		"seed":  {",pcn,1,", ",pcn,one,", `.*line 2, column seed: .*"one".*`},
		"value": {"1333333333.3333333", "fast", `.*line 2, column value: .*"fast".*`},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(good, c.old, c.new, 1)
			qt.Assert(t, qt.Not(qt.Equals(changed, good)))
			dir := t.TempDir()
			qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, File), []byte(changed), 0o600)))
			_, err := ReadFile(dir)
			qt.Check(t, qt.ErrorMatches(err, c.want))
		})
	}
	_, err := ReadFile(t.TempDir())
	qt.Check(t, qt.IsTrue(errors.Is(err, os.ErrNotExist)))
	other := Of(e, []result.Judged{judged(e, 1)})
	other.Rows[0].Number = 9
	_, err = other.Judged(e, experiment.EngineSim)
	qt.Check(t, qt.ErrorMatches(err, `expect 9 of t, seed 1: .* has 2: .* is of another file`))
	other.Rows[0].Kind = "guess"
	_, err = other.Judged(e, experiment.EngineSim)
	qt.Check(t, qt.ErrorMatches(err, `.*unknown kind "guess"`))
}

// The documentation has every column, in order.
func TestDocumentedColumns(t *testing.T) {
	page, err := os.ReadFile("../../docs/results.md")
	qt.Assert(t, qt.IsNil(err))
	_, columns, found := strings.Cut(string(page), "## Columns")
	qt.Assert(t, qt.IsTrue(found))
	documented := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")
	var names []string
	for _, m := range documented.FindAllStringSubmatch(columns, -1) {
		names = append(names, m[1])
	}
	qt.Check(t, qt.DeepEquals(names, Columns()))
}
