// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// engineBound is a row of the table of bounds in docs/kernel-and-simulation.md.
type engineBound struct {
	run, label, what string
	percent          float64
}

// engineBounds reads the table.
func engineBounds(t *testing.T) []engineBound {
	t.Helper()
	text, err := os.ReadFile("../../docs/kernel-and-simulation.md")
	qt.Assert(t, qt.IsNil(err))
	_, table, ok := strings.Cut(string(text),
		"| run | scheme | what | at most apart |\n|---|---|---|---|\n")
	qt.Assert(t, qt.IsTrue(ok))
	table, _, _ = strings.Cut(table, "\n\n")
	var bounds []engineBound
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		qt.Assert(t, qt.HasLen(cells, 4), qt.Commentf("%s", row))
		percent, err := strconv.ParseFloat(strings.TrimSuffix(cells[3], "%"), 64)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", row))
		bounds = append(bounds,
			engineBound{strings.Trim(cells[0], "`"), cells[1], cells[2], percent})
	}
	return bounds
}

// wholeRuns are experiments that hold a figure against packets, and are not shortened: as those of
// TestExperiments, they meet all bounds of their files.
var wholeRuns = []string{"increase-law", "rate-principle --case f1-10g"} // Fig. 10 and Fig. 5

// TestEnginesAgree runs experiments on Linux and in the simulator. What they measure is not further
// apart than the document says.
func TestEnginesAgree(t *testing.T) {
	t.Parallel()
	bounds := engineBounds(t)
	var runs []string
	for _, b := range bounds {
		if !slices.Contains(runs, b.run) {
			runs = append(runs, b.run)
		}
	}
	for _, args := range slices.Concat(wholeRuns, slices.Collect(maps.Keys(sharedRuns))) {
		qt.Assert(t, qt.SliceContains(runs, args))
	}
	for _, args := range runs {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			rows := engineRows(t, args)
			for _, b := range bounds {
				if b.run == args {
					b.check(t, rows)
				}
			}
		})
	}
}

// sharedRuns are experiments whose run on Linux other tests want too.
var sharedRuns = map[string]func(t *testing.T) (folder string){
	strings.Join(demoArgs, " "):  demoOnce,
	strings.Join(burstArgs, " "): burstOnce,
}

// engineRows runs an experiment on both engines and compares them.
func engineRows(t *testing.T, args string) []result.EngineRow {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	engines, folders := "kernel,sim", []string{out}
	if once, ok := sharedRuns[args]; ok {
		engines, folders = "sim", []string{once(t), out} // Linux first, as in other runs
	}
	stdout, stderr, code := run(t, append([]string{"run", "--engine", engines, "--out", out},
		strings.Fields(args)...)...)
	if slices.Contains(wholeRuns, args) {
		qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
		qt.Assert(t, qt.Matches(stdout, `(?s).*\nok .*`))
	}
	// a short run does not meet every bound of its file
	qt.Assert(t, qt.IsTrue(code == 0 || code == exitExpect), qt.Commentf("%s%s", stdout, stderr))
	groups, err := launch.ReadRuns(folders)
	qt.Assert(t, qt.IsNil(err))
	var rows []result.EngineRow
	for _, g := range groups {
		rows = append(rows, result.EngineRows(g.Experiment, g.Runs)...)
	}
	return rows
}

func (b engineBound) check(t *testing.T, rows []result.EngineRow) {
	t.Helper()
	i := slices.IndexFunc(rows, func(r result.EngineRow) bool {
		return r.What == b.what && result.LabelOf(r.Case, r.Scheme) == b.label
	})
	qt.Assert(t, qt.IsTrue(i >= 0), qt.Commentf("nothing measures %q of %s", b.what, b.label))
	r := rows[i]
	qt.Assert(t, qt.HasLen(r.Values, 2))
	linux, simulated := r.Values[0], r.Values[1]
	qt.Assert(t, qt.IsNil(linux.Err))
	qt.Assert(t, qt.IsNil(simulated.Err))
	apart := math.Abs(simulated.Measured.Value-linux.Measured.Value) / linux.Measured.Value * 100
	if linux.Measured.Value == simulated.Measured.Value {
		apart = 0 // also if both are 0
	}
	t.Logf("%s, %s: %s and %s", b.label, b.what, linux.Text(), simulated.Text())
	qt.Check(t, qt.IsTrue(apart <= b.percent), qt.Commentf("%s of %s: %s on Linux and %s in the "+
		"simulation, want at most %g%% apart", b.what, b.label, linux.Text(), simulated.Text(),
		b.percent))
}
