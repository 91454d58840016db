// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

// engineSeeds makes TestEnginesAgree print the rows of the table of bounds anew.
var engineSeeds = flag.Int("engine-seeds", 0,
	"print by how much the engines differ with so many seeds, and hold no bound")

// engineBound is a row of the table of bounds in docs/kernel-and-simulation.md.
type engineBound struct {
	run, label, what string
	// The least and the largest difference of ten seeds: of the simulation's value to Linux's, in
	// per cent.
	low, high float64
}

const engineHeader = "| run | scheme | what | ten seeds |\n|---|---|---|---|\n"

// allows is the rule by which a bound follows from ten seeds: a difference may lie outside of
// theirs by no more than theirs lie apart. Each new build of the guest is a new draw. Were draws
// normal, the bounds would be 4.6 standard deviations from their mean. Where ten seeds are equal,
// each new one must be, too.
func (b engineBound) allows(percent float64) bool {
	apart := b.high - b.low
	return b.low-apart <= percent && percent <= b.high+apart
}

func (b engineBound) String() string {
	return fmt.Sprintf("| `%s` | %s | %s | %+.1f to %+.1f%% |", b.run, b.label, b.what, b.low,
		b.high)
}

// engineBounds reads the table.
func engineBounds(t *testing.T) []engineBound {
	t.Helper()
	text, err := os.ReadFile("../../docs/kernel-and-simulation.md")
	qt.Assert(t, qt.IsNil(err))
	_, table, ok := strings.Cut(string(text), engineHeader)
	qt.Assert(t, qt.IsTrue(ok))
	table, _, _ = strings.Cut(table, "\n\n")
	var bounds []engineBound
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		qt.Assert(t, qt.HasLen(cells, 4), qt.Commentf("%s", row))
		b := engineBound{run: strings.Trim(cells[0], "`"), label: cells[1], what: cells[2]}
		_, err := fmt.Sscanf(cells[3], "%g to %g%%", &b.low, &b.high)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", row))
		qt.Assert(t, qt.Equals(b.String(), strings.TrimSpace(row)))
		bounds = append(bounds, b)
	}
	return bounds
}

func TestEngineBoundAllows(t *testing.T) {
	for _, test := range []struct {
		low, high, percent float64
		want               bool
	}{
		{4.6, 4.7, 4.5, true}, {4.6, 4.7, 4.4, false}, // a gap stays where it is
		{4.6, 4.7, 4.8, true}, {4.6, 4.7, 4.9, false}, {4.6, 4.7, -4.65, false},
		{-1, 2, -4, true}, {-1, 2, -4.1, false}, {-1, 2, 5, true}, {-1, 2, 5.1, false},
		{0, 0, 0, true}, {0, 0, 0.01, false}, {0, 0, math.Inf(1), false},
		{-1, 2, math.NaN(), false},
	} {
		b := engineBound{low: test.low, high: test.high}
		qt.Check(t, qt.Equals(b.allows(test.percent), test.want), qt.Commentf("%+v", test))
	}
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
				switch {
				case b.run != args:
				case *engineSeeds > 0:
					b.measure(t, rows)
				default:
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

// engineRows runs an experiment on both engines and compares them, with each of the seeds.
func engineRows(t *testing.T, args string) (rows []result.EngineRow) {
	t.Helper()
	for seed := 1; seed <= max(1, *engineSeeds); seed++ {
		out := filepath.Join(t.TempDir(), "out")
		engines, folders := "kernel,sim", []string{out}
		if once, ok := sharedRuns[args]; ok && seed == 1 {
			engines, folders = "sim", []string{once(t), out} // Linux first, as in other runs
		}
		stdout, stderr, code := run(t, append([]string{"run", "--engine", engines, "--out", out,
			"--seed", strconv.Itoa(seed)}, strings.Fields(args)...)...)
		if slices.Contains(wholeRuns, args) {
			qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
			qt.Assert(t, qt.Matches(stdout, `(?s).*\nok .*`))
		}
		// a short run does not meet every bound of its file
		qt.Assert(t, qt.IsTrue(judged(code)), qt.Commentf("%s%s", stdout, stderr))
		groups, err := launch.ReadRuns(folders)
		qt.Assert(t, qt.IsNil(err))
		for _, g := range groups {
			rows = append(rows, result.EngineRows(g.Experiment, g.Runs)...)
		}
	}
	return rows
}

// check holds the only seed's difference against the bound.
func (b engineBound) check(t *testing.T, rows []result.EngineRow) {
	t.Helper()
	apart := b.apart(t, rows)
	qt.Assert(t, qt.HasLen(apart, 1), qt.Commentf("rows that measure %q of %s", b.what, b.label))
	qt.Check(t, qt.IsTrue(b.allows(apart[0])),
		qt.Commentf("%+.2f%% apart, too far from those of ten seeds: %s", apart[0], b))
}

// measure prints the row that the seeds' differences make, rounded outwards.
func (b engineBound) measure(t *testing.T, rows []result.EngineRow) {
	t.Helper()
	apart := b.apart(t, rows)
	qt.Assert(t, qt.HasLen(apart, *engineSeeds))
	b.low, b.high = math.Floor(slices.Min(apart)*10)/10, math.Ceil(slices.Max(apart)*10)/10
	fmt.Println(b)
}

// apart returns each seed's difference, in per cent.
func (b engineBound) apart(t *testing.T, rows []result.EngineRow) []float64 {
	t.Helper()
	var apart []float64
	for _, r := range rows {
		if r.What != b.what || result.LabelOf(r.Case, r.Scheme) != b.label {
			continue
		}
		qt.Assert(t, qt.HasLen(r.Values, 2))
		linux, simulated := r.Values[0], r.Values[1]
		qt.Assert(t, qt.IsNil(linux.Err))
		qt.Assert(t, qt.IsNil(simulated.Err))
		t.Logf("%s, %s: %s and %s", b.label, b.what, linux.Text(), simulated.Text())
		percent := (simulated.Measured.Value/linux.Measured.Value - 1) * 100
		if linux.Measured.Value == simulated.Measured.Value {
			percent = 0 // also if both are 0
		}
		apart = append(apart, percent)
	}
	return apart
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
