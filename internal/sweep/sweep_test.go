// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

const net = `name: net
topology: {kind: fig1, burst_hosts: 3}
schemes: [pfc, pcn]
duration: 15ms
flows: [{name: F0, from: H0, to: R0}, {name: F1, from: H1, to: R1}]
bursts: [{name: burst, from: H2..H4, to: R1, size: &size 64KB}, {name: late, from: H2, to: R1, at: 1ms, size: *size}]
expect: [{what: all, metric: lost_packets, max: 0}]
`

const netCases = `cases:
  - {name: slow, set: {flows.F1.initial_rate: 10Gbps, pcn.T: 30us}}
  - {name: short, schemes: [pcn], set: {duration: 12ms}}
`

const small = `name: small
experiment: net.yaml
parameters:
  pcn.T: [25us, 100us]
  bursts.burst.size: [32KB, 64KB, 128KB]
seeds: 1..2
metrics:
  - {name: pause, metric: pause_span, links: [S0->H0, S0->H1], bounds: {pcn: {max: 1us}}}
  - {name: queue, metric: queue_max, ports: [S1->R1], over: min}
`

// parse parses a sweep file that stands beside the experiment.
func parse(t testing.TB, text, experimentText string) (*Sweep, error) {
	t.Helper()
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "net.yaml"), []byte(experimentText),
		0o644)))
	s, err := Parse(filepath.Join(dir, "s.yaml"), []byte(text), experiments.Load)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), dir+"/", ""))
	}
	return s, err
}

func mustParse(t testing.TB, text, experimentText string) *Sweep {
	t.Helper()
	s, err := parse(t, text, experimentText)
	qt.Assert(t, qt.IsNil(err))
	return s
}

// fingerprint stands for the machine's: of the experiment, scheme and seed.
func fingerprint(j job.Job) (string, error) {
	return fmt.Sprintf("%s%d%s%s", j.Scheme, j.Experiment.Seed, j.Experiment.Hash()[:8],
		"0123456789abcdef"), nil
}

func cellsOf(t testing.TB, s *Sweep) []Cell {
	t.Helper()
	cells, err := s.Cells(fingerprint)
	qt.Assert(t, qt.IsNil(err))
	return cells
}

// The matrix is every combination, once, and each has its values and no others.
func TestMatrix(t *testing.T) {
	s := mustParse(t, small, net)
	var labels []string
	for _, p := range s.Points {
		labels = append(labels, p.Label())
		e := p.Experiment
		qt.Check(t, qt.Equals(e.Section("pcn").Get("T").String(), p.Values[0]))
		qt.Check(t, qt.Equals(e.Bursts[0].Size.String(), p.Values[1]))
		qt.Check(t, qt.Equals(e.Bursts[1].Size.String(), "64KB"),
			qt.Commentf("the other of the alias"))
		qt.Check(t, qt.HasLen(e.Expect, 0))
		qt.Check(t, qt.HasLen(e.Metrics, 2))
		again, err := experiment.Parse("again.yaml", e.Source())
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(again.Section("pcn").Get("T"), e.Section("pcn").Get("T")))
	}
	qt.Check(t, qt.DeepEquals(labels, []string{"25us 32KB", "25us 64KB", "25us 128KB", "100us 32KB",
		"100us 64KB", "100us 128KB"}))

	cells := cellsOf(t, s)
	qt.Assert(t, qt.HasLen(cells, 6*2*2))
	ids := map[string]bool{}
	for i, c := range cells {
		ids[c.ID] = true
		qt.Check(t, qt.Equals(c.Point, i/4))
		qt.Check(t, qt.Equals(c.Scheme, []string{"pfc", "pcn"}[i/2%2]))
		qt.Check(t, qt.Equals(c.Seed, uint64(i%2+1)))
		qt.Check(t, qt.Equals(c.job.Experiment.Seed, c.Seed))
	}
	qt.Check(t, qt.HasLen(ids, len(cells)))
}

// Chosen cases have their own settings, not those of the cases that were left out.
func TestChosenCases(t *testing.T) {
	s := mustParse(t, `name: chosen
experiment: net.yaml
cases: [short]
seeds: 1..1
metrics: [{name: queue, metric: queue_max, ports: [S1->R1]}]
`, net+netCases)
	qt.Assert(t, qt.HasLen(s.Points, 1))
	qt.Check(t, qt.Equals(s.Points[0].Experiment.Duration, 12*experiment.Millisecond))
}

// Cells that are there already keep their IDs when the file has more of anything.
func TestMoreCellsKeepTheOthers(t *testing.T) {
	ids := func(text, of string) []string {
		var all []string
		for _, c := range cellsOf(t, mustParse(t, text, of)) {
			all = append(all, c.ID)
		}
		return all
	}
	before := ids(small, net)
	for name, text := range map[string]string{
		"seeds":      strings.Replace(small, "1..2", "[2, 1, 5..7]", 1),
		"values":     strings.Replace(small, "[25us, 100us]", "[10us, 25us, 100us]", 1),
		"schemes":    small + "schemes: [dcqcn, pfc, pcn]\n",
		"bounds":     strings.Replace(small, "max: 1us", "max: 2us", 1),
		"their name": strings.Replace(small, "name: small", "name: other", 1),
	} {
		more := ids(text, net)
		for _, id := range before {
			qt.Check(t, qt.SliceContains(more, id), qt.Commentf("more %s", name))
		}
	}
	for name, other := range map[string][]string{
		"the experiment": ids(small, strings.Replace(net, "15ms", "14ms", 1)),
		"a setting":      ids(small+"set: {frame: 1500B}\n", net),
		"a metric":       ids(strings.Replace(small, "queue_max", "queue_mean", 1), net),
	} {
		for _, id := range before {
			qt.Check(t, qt.IsFalse(slices.Contains(other, id)), qt.Commentf("another %s", name))
		}
	}
}

// Each case is a point, with the values of the case unless the sweep has others.
func TestCases(t *testing.T) {
	s := mustParse(t, strings.Replace(small, "  bursts.burst.size: [32KB, 64KB, 128KB]\n", "", 1),
		net+netCases)
	var labels []string
	for _, p := range s.Points {
		labels = append(labels, p.Label())
		qt.Check(t, qt.Equals(p.Experiment.Section("pcn").Get("T").String(), p.Values[0]))
		qt.Check(t, qt.HasLen(p.Experiment.Cases, 0))
	}
	qt.Check(t, qt.DeepEquals(labels, []string{"slow 25us", "slow 100us", "short 25us",
		"short 100us"}))
	qt.Check(t, qt.Equals(s.Points[0].Experiment.Flows[1].InitialRate.String(), "10Gbps"))
	qt.Check(t, qt.Equals(s.Points[2].Experiment.Flows[1].InitialRate.String(), "40Gbps"))
	qt.Check(t, qt.Equals(s.Points[2].Experiment.Duration.String(), "12ms"))
	qt.Check(t, qt.HasLen(cellsOf(t, s), (2*2+2*1)*2))

	s = mustParse(t, small+"cases: [short]\n", net+netCases)
	qt.Check(t, qt.HasLen(s.Points, 6))
	_, err := mustParse(t, strings.Replace(small, ", bounds: {pcn: {max: 1us}}", "",
		1)+"cases: [short]\nschemes: [pfc]\n", net+netCases).Cells(fingerprint)
	qt.Check(t, qt.ErrorMatches(err, "sweep small has no runs: none of its cases has scheme pfc"))
}

func TestErrors(t *testing.T) {
	replace := func(old, new string) string {
		text := strings.Replace(small, old, new, 1)
		qt.Assert(t, qt.IsFalse(text == small), qt.Commentf("%s", old))
		return text
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `s\.yaml:1:1: file is empty \(hint: start with name: and experiment:\)`},
		{"unknown key", replace("seeds:", "seed:"),
			`(?s).*s\.yaml:6:1: unknown key "seed" \(hint: did you mean "seeds"\?\)`},
		{"no name", replace("name: small\n", ""), `s\.yaml:1:1: "name" is missing`},
		{"name", replace("name: small", "name: a/b"),
			`s\.yaml:1:7: "a/b" can't be a name \(hint: .*\)`},
		{"longer name than 64", replace("name: small", "name: "+strings.Repeat("a", 65)),
			`s\.yaml:1:7: "a{65}" can't be a name \(hint: .*\)`},
		{"no experiment", replace("net.yaml", "none.yaml"),
			`s\.yaml:2:13: read experiment file: .*none\.yaml: no such file or directory`},
		{"unknown experiment", replace("net.yaml", "holl"),
			`s\.yaml:2:13: no experiment is named "holl" .*`},
		{"path", replace("pcn.T:", "pcn.X:"), `s\.yaml:4:3: unknown key "X" \(hint: .*\)`},
		{"value", replace("100us]", "100]"), `s\.yaml:4:17: "100": unit is missing .*`},
		{"value out of range", replace("128KB", "0B"), `s\.yaml:5:35: 0B is out of range .*`},
		{"item", replace("bursts.burst.size", "bursts.bust.size"),
			`s\.yaml:5:3: no item of the list is "bust" \(hint: did you mean "burst"\?\)`},
		{"duplicate value", replace("100us", "25us"),
			`s\.yaml:4:17: duplicate value "25us" \(hint: keep one of them\)`},
		{"no value", replace("[25us, 100us]", "[]"),
			`s\.yaml:4:10: the list of values is empty \(hint: write \[25us, 50us\]\)`},
		{"no list", replace("[25us, 100us]", "25us"), `s\.yaml:4:10: want a list.*`},
		{"parameter of all cases", replace("pcn.T", "expect.0.max"),
			`s\.yaml:4:3: "expect" is the same in all cases \(hint: remove it\)`},
		{"seed as parameter", replace("pcn.T: [25us, 100us]", "seed: [1]"),
			`s\.yaml:4:9: the seed can't be a parameter \(hint: .*\)`},
		{"set twice", small + "set: {pcn.T: 5us}\n",
			`s\.yaml:4:10: "pcn.T" is also under "set" \(hint: keep one of them\)`},
		{"set", small + "set: {frame: 1B}\n", `s\.yaml:10:14: 1B is out of range .*`},
		{"seeds", replace("1..2", "2..1"),
			`s\.yaml:6:8: "2\.\.1" is neither a seed nor a range of them .*`},
		{"duplicate seed", replace("1..2", "[1..3, 2]"), `s\.yaml:6:8: duplicate seed 2 .*`},
		{"too many seeds", replace("1..2", "1..18446744073709551615"),
			`s\.yaml:6:8: too many seeds .*`},
		{"metric", replace("queue_max", "queue_mx"),
			`s\.yaml:9:27: unknown metric "queue_mx" \(hint: did you mean "queue_max"\?\)`},
		{"port", replace("S1->R1", "S1->R9"), `s\.yaml:9:46: unknown port "S1->R9".*`},
		{"duplicate metric", replace("name: queue,", "name: pause,"),
			`s\.yaml:9:5: duplicate metric "pause".*`},
		{"metric's name", replace("name: queue,", "name: Q,"),
			`s\.yaml:9:12: "Q" can't be a name.*`},
		{"no metrics", small[:strings.Index(small, "metrics")] + "metrics: []\n",
			`s\.yaml:7:10: "metrics" is empty: want at least one .*`},
		{"bound", replace("max: 1us", "max: 1KB"),
			`s\.yaml:8:\d+: 1KB is a size, but metric "pause_span" is a time`},
		{"no bound", replace("{max: 1us}", "{}"),
			`s\.yaml:8:\d+: the bound has neither min nor max .*`},
		{"bound of a scheme", replace("{pcn: {max", "{pnc: {max"),
			`s\.yaml:8:\d+: the sweep has no scheme "pnc".*`},
		{"scheme", small + "schemes: [pnc]\n", `s\.yaml:10:10: unknown scheme "pnc".*`},
		{"case", small + "cases: [slow]\n",
			`s\.yaml:10:8: experiment net has no case "slow" \(hint: it has no cases\)`},
	} {
		_, err := parse(t, c.text, net)
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.name))
	}
	// errors in the experiment's own values have their line in the experiment file
	_, err := parse(t, strings.Replace(small, "pcn.T: [25us, 100us]", "duration: [5ms, 500us]", 1),
		net)
	qt.Check(t, qt.ErrorMatches(err, `net\.yaml:6:\d+: with 500us 32KB: .*`))
	_, err = parse(t, small, strings.Replace(net, "15ms", "15", 1))
	qt.Check(t, qt.ErrorMatches(err, `net\.yaml:4:11: .*`))
}

// Aliases of aliases are refused before they are written out.
func TestManyAliases(t *testing.T) {
	text := "x: &a0 [1, 1]\n"
	for i := range 30 {
		text += fmt.Sprintf("y%d: &a%d [*a%d, *a%d]\n", i, i+1, i, i)
	}
	_, err := parse(t, small+text, net)
	qt.Check(t, qt.ErrorMatches(err, `(?s)s\.yaml:10:1: unknown key "x".*`))
	bomb := strings.Replace(small, "links: [S0->H0, S0->H1]", "links: *a29", 1)
	_, err = parse(t, strings.Replace(bomb, "metrics:", text+"metrics:", 1), net)
	qt.Check(t, qt.IsNotNil(err))
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add(small + "set: {pcn.T: 5us}\ncases: [a]\nschemes: [pcn]\n")
	f.Add("name: &a x\nexperiment: *a\nseeds: [1..3, 9]\nmetrics: [{name: *a, metric: jain, flows: [F0]}]")
	f.Add("parameters: {? [a] : [b]}\nmetrics: [&m {bounds: {}}, *m]\nseeds: *m")
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "net.yaml"), []byte(net), 0o644); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(filepath.Join(dir, "s.yaml"), []byte(text), experiments.Load)
		if err != nil {
			qt.Check(t, qt.IsTrue(err.Error() != ""))
			return
		}
		qt.Check(t, qt.IsTrue(len(s.Points) > 0 && len(s.Metrics) > 0 && len(s.Seeds) > 0))
		for _, p := range s.Points {
			_, err := experiment.Parse("again.yaml", p.Experiment.Source())
			qt.Check(t, qt.IsNil(err))
		}
	})
}

// A cell is there as a whole, or not finished.
func TestStore(t *testing.T) {
	s := store{filepath.Join(t.TempDir(), "cells")}
	finished := func() bool {
		t.Helper()
		ok, err := s.finished("a")
		qt.Assert(t, qt.IsNil(err))
		return ok
	}
	write := func(dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{}"), 0o644),
			os.WriteFile(filepath.Join(dir, "x.csv"), []byte("x\n1\n"), 0o644))
	}
	qt.Check(t, qt.IsFalse(finished()))
	qt.Check(t, qt.IsNotNil(s.put("a", func(string) error { return errors.New("no room") })))
	entries, err := os.ReadDir(s.dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(entries, 0))
	for name, damage := range map[string]func(dir string) error{
		"changed": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "x.csv"),
				[]byte("x\n2\n"), 0o644)
		},
		"shorter": func(dir string) error { return os.Truncate(filepath.Join(dir, "x.csv"), 0) },
		"without": func(dir string) error { return os.Remove(filepath.Join(dir, "x.csv")) },
		"no sums": func(dir string) error { return os.Remove(filepath.Join(dir, sumsFile)) },
		"empty sums": func(dir string) error {
			return os.Truncate(filepath.Join(dir, sumsFile),
				0)
		},
		"sums of other files": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, sumsFile), []byte("00  ../../etc\n"), 0o644)
		},
	} {
		qt.Assert(t, qt.IsNil(s.put("a", write)), qt.Commentf("%s", name))
		qt.Assert(t, qt.IsTrue(finished()), qt.Commentf("%s", name))
		qt.Assert(t, qt.IsNil(damage(s.path("a"))))
		qt.Check(t, qt.IsFalse(finished()), qt.Commentf("%s", name))
	}
	qt.Assert(t, qt.IsNil(s.put("a", write)))
	qt.Assert(t, qt.IsNil(os.Mkdir(filepath.Join(s.dir, temporaryPrefix+"1"), 0o755)))
	qt.Assert(t, qt.IsNil(s.clean()))
	entries, err = os.ReadDir(s.dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(entries, 1))
	qt.Check(t, qt.IsTrue(finished()))
}

// The interval is that of a textbook: of 5 values, 2.776 standard errors to each side.
func TestEstimate(t *testing.T) {
	qt.Check(t, qt.DeepEquals(estimate(nil, experiment.QueueMax), Estimate{}))
	qt.Check(t, qt.DeepEquals(estimate([]float64{7}, experiment.QueueMax),
		Estimate{N: 1, Mean: 7, Low: 7, High: 7, Seeds: []float64{7}}))
	for _, c := range []struct {
		values []float64
		std, t float64 // of the table of Student's t, two-sided 95%
	}{
		{[]float64{1, 3}, math.Sqrt2, 12.706},
		{[]float64{1, 2, 3, 4, 5}, math.Sqrt(2.5), 2.776},
		{[]float64{4, 4, 4}, 0, 4.303},
		{[]float64{2, 4, 4, 4, 5, 5, 7, 9, 1, 3, 6}, 2.25227, 2.228},
	} {
		x := estimate(c.values, experiment.QueueMax)
		half := c.t * c.std / math.Sqrt(float64(len(c.values)))
		close := func(a, b float64) bool { return math.Abs(a-b) < 2e-3*(1+math.Abs(b)) }
		qt.Check(t, qt.IsTrue(close(x.StdDev, c.std)), qt.Commentf("%+v", x))
		qt.Check(t, qt.IsTrue(close(x.High-x.Mean, half) && close(x.Low, max(x.Mean-half, 0))),
			qt.Commentf("%+v, want %v", x, half))
	}
}

// collected makes up a run of each cell and collects them; change may change a run.
func collected(t *testing.T, s *Sweep, change func(c Cell, run *result.Run)) (*Results, string) {
	t.Helper()
	r := &Runner{o: Options{Sweep: s, Out: t.TempDir()}, cells: cellsOf(t, s)}
	r.store = store{filepath.Join(r.o.Out, cellsDir)}
	for _, c := range r.cells {
		run := resulttest.Fig2(c.job.Experiment, c.Scheme)
		change(c, run)
		qt.Assert(t, qt.IsNil(r.store.put(c.ID,
			func(dir string) error { return launch.SaveIn(dir, run) })))
	}
	res, err := r.Collect()
	qt.Assert(t, qt.IsNil(err))
	return res, r.o.Out
}

// Values of the cells are summed up over the seeds, but for runs that are invalid.
func TestCollect(t *testing.T) {
	text := strings.Replace(small, "1..2", "1..4", 1)
	text = strings.Replace(text, "metric: queue_max, ports: [S1->R1], over: min",
		"metric: timeouts", 1)
	s := mustParse(t, text, net)
	res, out := collected(t, s, func(c Cell, run *result.Run) {
		run.Flows[0].Timeouts = c.Seed * uint64(c.Point+1)
		if c.Seed == 4 && c.Point == 1 {
			run.Manifest.Verdict, run.Manifest.Reasons = result.Invalid, []string{"late"}
		}
	})
	qt.Assert(t, qt.HasLen(res.Groups, 12))
	g := res.Groups[1]
	qt.Check(t, qt.Equals(g.Scheme, "pcn"))
	qt.Check(t, qt.Equals(g.Runs, 4))
	qt.Check(t, qt.DeepEquals(g.Estimates[1], estimate([]float64{1, 2, 3, 4}, experiment.QueueMax)))
	g = res.Groups[2]
	qt.Check(t, qt.Equals(g.Invalid, 1))
	qt.Check(t, qt.DeepEquals(g.Estimates[1], estimate([]float64{2, 4, 6}, experiment.QueueMax)))
	qt.Check(t, qt.StringContains(res.Format(g, 1), "4 [0 to 8.968] (3 of 4)"))

	lines := func(name string) []string {
		data, err := os.ReadFile(filepath.Join(out, name))
		qt.Assert(t, qt.IsNil(err))
		return strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	cells := lines(cellsFile)
	qt.Assert(t, qt.HasLen(cells, 1+48))
	qt.Check(t,
		qt.Equals(cells[0], "pcn.T,bursts.burst.size,scheme,seed,cell,verdict,pause_ns,queue"))
	qt.Check(t, qt.StringContains(cells[1], "25us,32KB,pfc,1,pfc-s1-"))
	summary := lines(summaryFile)
	qt.Assert(t, qt.HasLen(summary, 1+24))
	qt.Check(t, qt.StringContains(summary[4], "25us,32KB,pcn,queue,1,4,0,4,2.5,0.44"))
	page := strings.Join(lines(ReportFile), "\n")
	for _, want := range []string{
		`class="heat"`, "late", "pcn.T", "invalid, and left out of all means",
	} {
		qt.Check(t, qt.StringContains(page, want))
	}

	var met []bool
	for _, o := range res.Outcomes() {
		qt.Check(t, qt.Equals(o.Bound, "at most 1us"))
		met = append(met, o.Pass)
	}
	qt.Check(t, qt.HasLen(met, 6))

	_, other := collected(t, s, func(c Cell, run *result.Run) {
		run.Flows[0].Timeouts = c.Seed * uint64(c.Point+1)
		run.Manifest.Wall.TotalS = 99
		if c.Seed == 4 && c.Point == 1 {
			run.Manifest.Verdict, run.Manifest.Reasons = result.Invalid, []string{"late"}
		}
	})
	for _, name := range []string{cellsFile, summaryFile, ReportFile} {
		a, err1 := os.ReadFile(filepath.Join(out, name))
		b, err2 := os.ReadFile(filepath.Join(other, name))
		qt.Assert(t, qt.IsNil(errors.Join(err1, err2)))
		qt.Check(t, qt.IsTrue(string(a) == string(b)),
			qt.Commentf("%s depends on the machine", name))
	}
}

func TestTaskCells(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "cells")
	qt.Assert(t, qt.IsNil(os.WriteFile(plan, []byte("a\nb\nc\nd\ne\n"), 0o644)))
	for task, want := range [][]string{{"a", "b"}, {"c", "d"}, {"e"}} {
		got, err := TaskCells(plan, task, 2)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(got, want))
	}
	for _, wrong := range [][2]int{{3, 2}, {-1, 2}, {0, 0}} {
		_, err := TaskCells(plan, wrong[0], wrong[1])
		qt.Check(t, qt.ErrorMatches(err, "no task .* of . cells each: the list .* has 5 cells"))
	}
	_, err := TaskCells(plan+"-none", 0, 1)
	qt.Check(t, qt.ErrorMatches(err, "read the list of cells: .*"))
}

func TestPack(t *testing.T) {
	for _, c := range []struct{ cells, requested, want int }{
		{1, 0, 1}, {63, 0, 1}, {128, 0, 2}, {100_000, 0, 100}, {512, 0, 8}, {2000, 0, 8}, {4, 2, 2},
		{5000, 1, 5},
	} {
		qt.Check(t, qt.Equals(cellsPerTask(c.cells, c.requested), c.want), qt.Commentf("%+v", c))
	}
}

func TestTaskCPUs(t *testing.T) {
	for text, want := range map[string]int{"": 1, "x": 1, "0": 1, "3": 3} {
		t.Setenv("SLURM_CPUS_PER_TASK", text)
		qt.Check(t, qt.Equals(TaskCPUs(), want))
	}
}

// The script is one line of words that a shell takes as they are.
func TestTaskScript(t *testing.T) {
	script, err := Slurm{File: "it's.yaml", Engine: "sim"}.taskScript("/out dir", "/out dir/p", 3)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t,
		qt.StringContains(script,
			`sweep 'it'\''s.yaml' --out '/out dir' --cells '/out dir/p' --pack 3 --engine 'sim' --task "$SLURM_ARRAY_TASK_ID"`))
}

func TestOnly(t *testing.T) {
	s := mustParse(t, small, net)
	cells := cellsOf(t, s)
	r := &Runner{o: Options{Sweep: s, Only: []string{cells[3].ID, cells[5].ID}},
		cells: slices.Clone(cells)}
	qt.Assert(t, qt.IsNil(r.keepOnly()))
	qt.Check(t, qt.HasLen(r.cells, 2))
	r = &Runner{o: Options{Sweep: s, Only: []string{"gone"}}, cells: cells}
	qt.Check(t, qt.ErrorMatches(r.keepOnly(), "the sweep has no cell gone .*"))
}
