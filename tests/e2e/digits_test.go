// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// amount is a value as JSON has it, with its digits.
type amount struct {
	Value json.Number
	Unit  string
}

// printedResults are those parts of pcn run --json that have values.
type printedResults struct {
	Seed         int
	Expectations []struct {
		Scheme, Case, What string
		Measured           []amount
	}
	Comparisons []struct {
		What   string
		Values []struct {
			Scheme   string
			Measured *amount
		}
	}
	Metrics []struct {
		Scheme, Case, Name string
		Measured           *amount
	}
}

// byName returns the values by what they are of. A comparison's is of all cases.
func (p printedResults) byName() map[string][]amount {
	all := map[string][]amount{}
	for _, e := range p.Expectations {
		all[fmt.Sprint("expect ", e.Case, " ", e.Scheme, " ", e.What)] = e.Measured
	}
	for _, c := range p.Comparisons {
		for _, v := range c.Values {
			if v.Measured != nil {
				all[fmt.Sprint("compare  ", v.Scheme, " ", c.What)] = []amount{*v.Measured}
			}
		}
	}
	for _, m := range p.Metrics {
		if m.Measured != nil {
			all[fmt.Sprint("metrics ", m.Case, " ", m.Scheme, " ", m.Name)] = []amount{*m.Measured}
		}
	}
	return all
}

// JSON and CSV have each seed's values with the same digits. JSON and the report have their
// medians, of which the report has as many digits as it writes.
func TestSeedsToTheDigit(t *testing.T) {
	t.Parallel()
	const seeds = 20
	for _, args := range [][]string{{"hol", "--algo", "pfc,pcn"}, {"swift"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			stdout, stderr, code := run(t, append(append([]string{"run"}, args...), "--engine",
				"sim", "--seeds", fmt.Sprint("1..", seeds), "--json", "--out", out)...)
			qt.Assert(t, qt.IsTrue(judged(code)), qt.Commentf("%s", stderr))
			var printed struct {
				printedResults
				Seeds []printedResults
			}
			qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(stdout), &printed)))
			qt.Assert(t, qt.HasLen(printed.Seeds, seeds))
			rows := csvBySeed(t, out)
			report := string(read(t, out, "report.html"))
			medians := printed.byName()
			qt.Assert(t, qt.IsTrue(len(medians) >= 8), qt.Commentf("%v", medians))
			for name, median := range medians {
				values := make([][]float64, len(median))
				for _, seed := range printed.Seeds {
					of := seed.byName()[name]
					qt.Assert(t, qt.HasLen(of, len(median)), qt.Commentf("%s", name))
					qt.Assert(t, qt.HasLen(rows[seed.Seed][name], len(median)),
						qt.Commentf("%s", name))
					for i, a := range of {
						qt.Check(t, qt.Equals(string(a.Value), rows[seed.Seed][name][i]))
						values[i] = append(values[i], number(t, string(a.Value)))
					}
				}
				for i, m := range median {
					slices.Sort(values[i])
					want := (values[i][seeds/2-1] + values[i][seeds/2]) / 2
					qt.Check(t, qt.Equals(number(t, string(m.Value)), want),
						qt.Commentf("median of %s", name))
				}
				inReport(t, report, name, median)
			}
		})
	}
}

// csvBySeed returns the values of pcn results, by seed and by what they are of.
func csvBySeed(t *testing.T, dir string) map[int]map[string][]string {
	t.Helper()
	stdout, stderr, code := run(t, "results", dir, "--csv")
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	qt.Assert(t, qt.IsNil(err))
	bySeed := map[int]map[string][]string{}
	for _, row := range rows[1:] {
		at := func(column string) string { return row[slices.Index(rows[0], column)] }
		seed, err := strconv.Atoi(at("seed"))
		qt.Assert(t, qt.IsNil(err))
		if bySeed[seed] == nil {
			bySeed[seed] = map[string][]string{}
		}
		name := strings.Join([]string{at("kind"), at("case"), at("scheme"), at("what")}, " ")
		bySeed[seed][name] = append(bySeed[seed][name], at("value"))
	}
	return bySeed
}

// inReport looks for medians in the report's row of an expectation, comparison or metric.
func inReport(t *testing.T, report, name string, medians []amount) {
	t.Helper()
	kind, rest, _ := strings.Cut(name, " ")
	_, rest, _ = strings.Cut(rest, " ") // no case
	scheme, what, _ := strings.Cut(rest, " ")
	who := strings.ToUpper(scheme)
	// before a measured value stands the paper's, or what a metric measures
	cells := cellsBehind(report, who, what)[1:]
	if kind == "compare" {
		_, behind, _ := strings.Cut(report, "<td>"+html.EscapeString(what)+"</td>")
		cells = cellsBehind(behind, who)[1:]
	}
	text := interval.ReplaceAllString(cells[0], "")
	values := strings.Split(text, ", ")
	qt.Assert(t, qt.HasLen(values, len(medians)), qt.Commentf("%s: %q", name, text))
	for i, value := range values {
		m := quantity.FindStringSubmatch(value)
		qt.Assert(t, qt.IsNotNil(m), qt.Commentf("%s: %q", name, value))
		unit := scales[medians[i].Unit][m[3]]
		qt.Assert(t, qt.IsTrue(unit > 0), qt.Commentf("%s: %q in %s", name, value, medians[i].Unit))
		exact := number(t, string(medians[i].Value)) / unit
		half := 0.5 * math.Pow10(-len(strings.TrimPrefix(m[2], ".")))
		// whole numbers have four digits too
		half = max(half, 0.5*math.Pow10(len(m[1])-4))
		qt.Check(t, qt.IsTrue(math.Abs(number(t, m[1]+m[2])-exact) <= half*1.000001),
			qt.Commentf("%s: %s in the report, %s %s in JSON", name, value, medians[i].Value,
				medians[i].Unit))
	}
}

var (
	tableCell = regexp.MustCompile(`<td[^>]*>([^<]*)</td>`)
	interval  = regexp.MustCompile(` \[[^\]]*\]`)
	quantity  = regexp.MustCompile(`^(\d+)(\.\d+)?(\D*)$`)
)

// scales are the units of reports, in those of JSON.
var scales = map[string]map[string]float64{
	"ns":    {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9},
	"bps":   {"bps": 1, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9},
	"bytes": {"B": 1, "KB": 1e3, "MB": 1e6},
	"share": {"%": 0.01}, "count": {"": 1},
}

// cellsBehind returns the texts of a table's row behind its first cells.
func cellsBehind(report string, first ...string) []string {
	row := ""
	for _, cell := range first {
		row += "<td>" + html.EscapeString(cell) + "</td>"
	}
	_, behind, _ := strings.Cut(report, row)
	behind, _, _ = strings.Cut(behind, "</tr>")
	var cells []string
	for _, m := range tableCell.FindAllStringSubmatch(behind, -1) {
		cells = append(cells, html.UnescapeString(m[1]))
	}
	return append(cells, "", "") // of what is not there
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	qt.Assert(t, qt.IsNil(err))
	return v
}
