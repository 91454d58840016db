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
	qt.Assert(t, qt.IsTrue(judged(code)), qt.Commentf("%s%s", stdout, stderr))
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

// Data and ACKs cross on the links between two switches. ACKs that wait with data make short flows
// several times slower, on Linux as in the simulator: mean completion times of both are within 2%.
func TestClassOfACKs(t *testing.T) {
	t.Parallel()
	const text = `
name: two-way
topology: {kind: dumbbell, senders: 4, rate: 10Gbps, delay: 2us}
schemes: [pfc]
warmup: 0ms
duration: 6ms
flows:
  - {name: there, from: A0..A3, to: B0..B3, start: 100us, size: 300KB, priority: 1}
  - {name: back, from: B0..B3, to: A0..A3, start: 110us, size: 300KB}
  - {name: small, from: A0..A3, to: B0..B3, start: 200us, every: 150us, count: 8, size: 10KB}
metrics:
  - {name: there, metric: fct_mean, flows: [there]}
  - {name: back, metric: fct_mean, flows: [back]}
  - {name: small, metric: fct_mean, flows: [small]}
transport: {cnp: control}
cases:
  - {name: control}
  - {name: data, set: {transport.acks: data}}
`
	dir := t.TempDir()
	file, out := filepath.Join(dir, "two-way.yaml"), filepath.Join(dir, "out")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
	_, stderr, code := run(t, "run", file, "--engine", "kernel,sim", "--out", out)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	groups, err := launch.ReadRuns([]string{out})
	qt.Assert(t, qt.IsNil(err))
	values := map[string]map[string]float64{}
	for _, g := range groups {
		for _, r := range result.Judge(g.Experiment, g.Runs).Runs {
			at := r.Manifest.Case + " on " + string(r.Manifest.RanOn())
			values[at] = map[string]float64{}
			for _, m := range r.Metrics {
				qt.Assert(t, qt.IsNil(m.Err))
				values[at][m.Name] = m.Measured.Value
			}
		}
	}
	for _, name := range []string{"there", "back", "small"} {
		for _, c := range []string{"control", "data"} {
			linux, simulated := values[c+" on kernel"][name], values[c+" on sim"][name]
			t.Logf("%s, %s: %.0f and %.0f ns", name, c, linux, simulated)
			qt.Check(t, qt.IsTrue(math.Abs(linux/simulated-1) < 0.02))
		}
	}
	qt.Check(t, qt.IsTrue(
		values["data on kernel"]["small"] > 4*values["control on kernel"]["small"]))
}
