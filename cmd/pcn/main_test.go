// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

const small = resulttest.Small

// compared is what small expects and compares.
const compared = `
expect:
  - {what: no packet is lost, metric: lost_packets, max: 0, paper: lossless}
  - {what: F0 goes on, scheme: pcn, metric: mean_rate, flows: [F0], from: 1ms, to: 2.8ms, min: 30Gbps}
compare:
  - what: throughput loss lasts
    metric: recovery_time
    flows: [F0+F1]
    target: 38Gbps
    paper: {pfc: 3.1ms, pcn: 1.4ms}
    within: 0.5
    bounds: {pcn: {max: 1.5ms}}
    order: true
    ratios: {to: pcn, min: 1.5}
`

const cases = `
cases:
  - {name: fast}
  - {name: slow, set: {flows.F1.limit_rate: 10Gbps}}
`

func parse(t *testing.T, text string) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("small.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	return e
}

// fig2 makes up runs of all cases, spoils them, and leaves them in dir.
func fig2(t *testing.T, e *experiment.Experiment, dir string, spoil func(r *result.Run)) {
	t.Helper()
	for _, name := range e.CaseNames() {
		c, err := e.Case(name)
		qt.Assert(t, qt.IsNil(err))
		for _, scheme := range e.Schemes {
			r := resulttest.Fig2(c, scheme)
			spoil(r)
			qt.Assert(t, qt.IsNil(r.Write(filepath.Join(dir, r.Manifest.Label()))))
		}
	}
}

func asIs(*result.Run) {}

// recovered makes the sum of both flows be back at a time.
func recovered(scheme string, atNs int64) func(r *result.Run) {
	return func(r *result.Run) {
		if r.Manifest.Scheme != scheme {
			return
		}
		for i, s := range r.Series {
			if s.Kind == result.KindFlow && s.TimeNs >= 0 {
				r.Series[i].RateBps = 20e9
				if s.TimeNs < atNs {
					r.Series[i].RateBps = map[string]uint64{"F0": 31e9, "F1": 5e9}[s.Name]
				}
			}
		}
	}
}

// pcn runs the program in this process. A run of the program that tells an error has none of its
// own code.
func pcn(t *testing.T, args ...string) (stdout string, code int, err error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	err = root.ExecuteContext(t.Context())
	var exit exitCode
	if errors.As(err, &exit) {
		return out.String(), int(exit), nil
	}
	return out.String(), 0, err
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name  string
		text  string
		spoil func(r *result.Run)
		code  int
		want  string
	}{
		{"nothing is expected", small, asIs, 0, `
pfc: valid, kernel no kernel, boot 4.0 s, 56 s in all
pcn: valid, kernel no kernel, boot 4.0 s, 56 s in all
`},
		{"all is met", small + compared, asIs, 0, `
pfc
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0

pcn
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0
ok  F0 goes on                   38.5Gbps  at least 30Gbps

throughput loss lasts
    scheme  paper  measured  to the paper  bound
ok  pfc     3.1ms  3.3ms     1.06          1.55ms to 4.65ms
ok  pcn     1.4ms  1.1ms     0.786         at most 1.5ms
ok  order: pcn < pfc (pcn 1.1ms, pfc 3.3ms)
ok  ratios: each at least 1.5 times pcn (pfc 3 times)

pfc: valid, kernel no kernel, boot 4.0 s, 56 s in all
pcn: valid, kernel no kernel, boot 4.0 s, 56 s in all
`},
		{"cases", small + strings.NewReplacer("pfc: 3.1ms, ", "", "    order: true\n", "").Replace(compared) + cases, recovered("pfc", 1e6), 0, `
fast/pfc
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0

fast/pcn
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0
ok  F0 goes on                   38.5Gbps  at least 30Gbps

slow/pfc
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0

slow/pcn
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0
ok  F0 goes on                   38.5Gbps  at least 30Gbps

throughput loss lasts
    scheme  paper  measured  to the paper  bound
    pfc            1ms       -             
ok  pcn     1.4ms  1.1ms     0.786         at most 1.5ms

fast/pfc: valid, kernel no kernel, boot 4.0 s, 56 s in all
fast/pcn: valid, kernel no kernel, boot 4.0 s, 56 s in all
slow/pfc: valid, kernel no kernel, boot 4.0 s, 56 s in all
slow/pcn: valid, kernel no kernel, boot 4.0 s, 56 s in all
`},
		{"a comparison is not met", small + compared, recovered("pcn", 5e6), exitExpect, `
pfc
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0

pcn
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0
ok  F0 goes on                   31Gbps    at least 30Gbps

throughput loss lasts
         scheme  paper  measured  to the paper  bound
ok       pfc     3.1ms  3.3ms     1.06          1.55ms to 4.65ms
NOT MET  pcn     1.4ms  5ms       3.57          at most 1.5ms
NOT MET  order: pcn < pfc (pfc 3.3ms, pcn 5ms)
NOT MET  ratios: each at least 1.5 times pcn (pfc 0.66 times)

pfc: valid, kernel no kernel, boot 4.0 s, 56 s in all
pcn: valid, kernel no kernel, boot 4.0 s, 56 s in all
`},
		{"an expectation is not met", strings.Replace(small+compared, "min: 30Gbps", "min: 40Gbps", 1), asIs, exitExpect, `
pfc
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0

pcn
         what               paper     measured  bound
ok       no packet is lost  lossless  0         at most 0
NOT MET  F0 goes on                   38.5Gbps  at least 40Gbps

throughput loss lasts
    scheme  paper  measured  to the paper  bound
ok  pfc     3.1ms  3.3ms     1.06          1.55ms to 4.65ms
ok  pcn     1.4ms  1.1ms     0.786         at most 1.5ms
ok  order: pcn < pfc (pcn 1.1ms, pfc 3.3ms)
ok  ratios: each at least 1.5 times pcn (pfc 3 times)

pfc: valid, kernel no kernel, boot 4.0 s, 56 s in all
pcn: valid, kernel no kernel, boot 4.0 s, 56 s in all
`},
		{"invalid", small, func(r *result.Run) {
			r.Manifest.Verdict, r.Manifest.Reasons = result.Invalid,
				[]string{"late", r.Manifest.Scheme}
		}, exitInvalid, `
pfc: invalid, kernel no kernel, boot 4.0 s, 56 s in all
pcn: invalid, kernel no kernel, boot 4.0 s, 56 s in all
INVALID: pfc: late
INVALID: pfc: pfc
INVALID: pcn: late
INVALID: pcn: pcn
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			page := filepath.Join(dir, "page.html")
			fig2(t, parse(t, c.text), dir, c.spoil)
			out, code, err := pcn(t, "report", "--out", page, dir)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(code, c.code))
			qt.Check(t, qt.Equals(out, c.want+"\nReport: "+page+"\n"))
		})
	}
}

// Runs of several experiments are told apart, and the worst of all counts.
func TestSummaryOfExperiments(t *testing.T) {
	invalid := resulttest.Fig2(parse(t, small), "pcn")
	invalid.Manifest.Verdict, invalid.Manifest.Reasons = result.Invalid, []string{"late"}
	unmet := parse(t, strings.Replace(small+compared, "name: small", "name: other", 1))
	notMet := resulttest.Fig2(unmet, "pcn")
	recovered("pcn", 5e6)(notMet)
	var out bytes.Buffer
	code := summarise(&out, []report.Group{
		{Experiment: parse(t, small), Runs: []*result.Run{invalid}},
		{Experiment: unmet, Runs: []*result.Run{notMet}},
	})
	qt.Check(t, qt.Equals(code, exitInvalid))
	qt.Check(t, qt.Equals(out.String(), `
== small: Two flows and a burst

pcn: invalid, kernel no kernel, boot 4.0 s, 56 s in all
INVALID: pcn: late

== other: Two flows and a burst

pcn
    what               paper     measured  bound
ok  no packet is lost  lossless  0         at most 0
ok  F0 goes on                   31Gbps    at least 30Gbps

throughput loss lasts
         scheme  paper  measured  to the paper  bound
NOT MET  pcn     1.4ms  5ms       3.57          at most 1.5ms

pcn: valid, kernel no kernel, boot 4.0 s, 56 s in all
`))
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"compared": small + compared, "cases": small +
		compared + cases, "nothing": small} {
		fig2(t, parse(t, text), filepath.Join(dir, name), asIs)
	}
	fig2(t, parse(t, small), filepath.Join(dir, "invalid"), func(r *result.Run) {
		r.Manifest.Verdict, r.Manifest.Reasons = result.Invalid, []string{"late"}
	})
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"to pcn", []string{"compared"}, 0, `small: throughput loss lasts: recovery_time of F0+F1, target 38Gbps since start
scheme  measured  to pcn  paper  to pcn
pfc     3.3ms     3       3.1ms  2.21
pcn     1.1ms     1       1.4ms  1

small: lost_packets
scheme  measured  to pcn
pfc     0         -
pcn     0         -

small: mean_rate of F0, from 1ms to 2.8ms
scheme  measured  to pcn
pfc     2.61Gbps  0.0678
pcn     38.5Gbps  1

`},
		{"to another", []string{"compared", "--to", "pfc"}, 0, `small: throughput loss lasts: recovery_time of F0+F1, target 38Gbps since start
scheme  measured  to pfc  paper  to pfc
pfc     3.3ms     1       3.1ms  1
pcn     1.1ms     0.333   1.4ms  0.452

small: lost_packets
scheme  measured  to pfc
pfc     0         -
pcn     0         -

small: mean_rate of F0, from 1ms to 2.8ms
scheme  measured  to pfc
pfc     2.61Gbps  1
pcn     38.5Gbps  14.8

`},
		{"without pcn, to the first", []string{"cases/fast/pfc"}, 0, `small: throughput loss lasts: recovery_time of F0+F1, target 38Gbps since start
scheme  measured  to pfc  paper  to pfc
pfc     3.3ms     1       3.1ms  1

small: lost_packets
scheme  measured  to pfc
pfc     0         -

small: mean_rate of F0, from 1ms to 2.8ms
scheme  measured  to pfc
pfc     2.61Gbps  1

`},
		{"nothing", []string{"nothing"}, 0,
			"small: nothing to compare: the file has neither compare: nor expect:\n"},
		{"invalid", []string{"invalid"}, exitInvalid,
			"small: nothing to compare: the file has neither compare: nor expect:\nINVALID: pfc: late\nINVALID: pcn: late\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"compare", filepath.Join(dir, c.args[0])}, c.args[1:]...)
			out, code, err := pcn(t, args...)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(code, c.code))
			qt.Check(t, qt.Equals(out, c.want))
		})
	}

	_, _, err := pcn(t, "compare", filepath.Join(dir, "compared"), "--to", "bbr")
	qt.Check(t, qt.ErrorAs(err, new(usageError)))
	qt.Check(t, qt.ErrorMatches(err,
		`--to: experiment small has no run of scheme "bbr" \(hint: it has pfc, pcn\)`))
}

// What a comparison measures is said in full: two that differ do not read the same.
func TestMeasureInWords(t *testing.T) {
	e := parse(t, small+`
expect:
  - {what: a, metric: pause_count, links: [S1->S0, S0->H0], max: 3}
  - {what: the same again, metric: pause_count, links: [S1->S0, S0->H0], max: 4}
  - {what: b, metric: queue_max, ports: [S0->S1], from: 1ms, max: 1MB}
  - {what: c, metric: recovery_time, links: [S1->S0], flows: [F0], since: pause_end, target: 5Gbps, max: 1ms}
  - {what: d, metric: mean_rate, flows: [F0], to: 2ms, min: 1Gbps}
  - {what: d in a case, case: slow, metric: mean_rate, flows: [F0], to: 2ms, min: 1Gbps}
compare:
  - {what: said so, metric: mean_rate, flows: [F0, F1], over: min, cases: [slow, fast], order: true, paper: {pfc: 1Gbps, pcn: 2Gbps}}
`+cases)
	var got []string
	for _, c := range comparisons(e) {
		got = append(got, c.What)
	}
	qt.Check(t, qt.DeepEquals(got, []string{
		"said so: mean_rate of F0, F1 (min), cases slow, fast",
		"pause_count of S1->S0, S0->H0 (max)",
		"queue_max of S0->S1, from 1ms",
		"recovery_time of F0, target 5Gbps since pause_end",
		"mean_rate of F0, from 0ns to 2ms",
		"mean_rate of F0, from 0ns to 2ms, cases slow",
	}))
	qt.Check(t, qt.Equals(e.Compare[0].What, "said so"))
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	plain, inCases := parse(t, small), parse(t, small+cases)
	for name, e := range map[string]*experiment.Experiment{"a": plain, "cases/a": inCases} {
		fig2(t, e, filepath.Join(dir, name), asIs)
	}
	cost := func(r *result.Run) { r.Manifest.Wall = result.Wall{TotalS: 99, Host: "there"} }
	fig2(t, plain, filepath.Join(dir, "same"), cost)
	seed := func(r *result.Run) {
		if r.Manifest.Scheme == "pcn" && r.Manifest.Case != "fast" {
			r.Manifest.Seed = 7
			r.PFC[3].EffectNs++
		}
	}
	fig2(t, plain, filepath.Join(dir, "seed"), seed)
	fig2(t, inCases, filepath.Join(dir, "cases/seed"), seed)
	const parted = `  seed: 1 / 7
  at 107us: S1->S0 in pfc.csv: effect_ns 112000 / effect_ns 112001
`
	for _, c := range []struct {
		a, b string
		code int
		want string
	}{
		{"a", "same", 0, "small pfc: same\nsmall pcn: same\n"},
		{"a/pcn", "same/pcn", 0, "small pcn: same\n"},
		{"a/pcn", "seed/pcn", exitDiffer, "small pcn: different\n" + parted},
		{"a", "seed", exitDiffer, "small pfc: same\nsmall pcn: different\n" + parted},
		{"cases/a", "cases/a", 0,
			"small fast/pfc: same\nsmall fast/pcn: same\nsmall slow/pfc: same\nsmall slow/pcn: same\n"},
		{"cases/a", "cases/seed", exitDiffer,
			"small fast/pfc: same\nsmall fast/pcn: same\nsmall slow/pfc: same\nsmall slow/pcn: different\n" + parted},
	} {
		out, code, err := pcn(t, "diff", filepath.Join(dir, c.a), filepath.Join(dir, c.b))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(code, c.code), qt.Commentf("%s %s", c.a, c.b))
		qt.Check(t, qt.Equals(out, c.want), qt.Commentf("%s %s", c.a, c.b))
	}

	out, code, err := pcn(t, "diff", filepath.Join(dir, "a/pfc"), filepath.Join(dir, "a/pcn"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, exitDiffer))
	qt.Check(t, qt.StringContains(out, "\n  scheme: pfc / pcn\n"))

	for _, c := range []struct {
		a, b, want string
	}{
		{"a", "a/pcn", ".*/a/pcn has no run small pfc, but .*/a has one"},
		{"a/pcn", "a", ".*/a/pcn has no run small pfc, but .*/a has one"},
		{"a", "cases/a", ".*/cases/a has no run small pfc, but .*/a has one"},
		{"cases", "a",
			`.*/cases has two runs named "small fast/pfc": give the folder of one of them`},
		{"a", "nowhere", "look for runs: .*nowhere.*"},
	} {
		_, _, err := pcn(t, "diff", filepath.Join(dir, c.a), filepath.Join(dir, c.b))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s %s", c.a, c.b))
	}
}

func TestChanges(t *testing.T) {
	e := parse(t, small+cases)
	given := func(flags ...string) func(string) bool {
		return func(flag string) bool {
			return strings.Contains(" "+strings.Join(flags, " ")+" ",
				" "+flag+" ")
		}
	}
	all := changes{algos: []string{"bbr", "pcn"}, cases: []string{"slow"}, seed: 7, duration: "5ms",
		dilation: 8}
	got, err := all.apply(e, given())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals([]any{got.Schemes, got.CaseNames(), got.Seed},
		[]any{e.Schemes, e.CaseNames(), e.Seed}))

	got, err = all.apply(e, given("algo", "case", "seed", "duration", "dilation"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals([]any{got.Schemes, got.CaseNames(), got.Seed, got.Duration,
		got.Dilation.Shift},
		[]any{all.algos, all.cases, uint64(7), 5 * experiment.Millisecond, uint(8)}))

	for _, c := range []struct {
		flag string
		changes
		want string
	}{
		{"algo", changes{algos: []string{"bbx"}},
			`.*unknown scheme "bbx" \(hint: did you mean "bbr"\?\).*`},
		{"case", changes{cases: []string{"quick"}},
			`experiment small has no case "quick" \(hint: it has fast, slow\)`},
		{"duration", changes{duration: "15"}, `--duration: .*unit is missing.*`},
	} {
		_, err := c.apply(e, given(c.flag))
		qt.Check(t, qt.ErrorMatches(err, "(?s)"+c.want))
	}
}

func TestList(t *testing.T) {
	out, code, err := pcn(t, "list")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, 0))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	qt.Check(t, qt.DeepEquals(strings.Fields(lines[0]),
		[]string{"NAME", "CASES", "LINUX", "SIMULATION", "SCHEMES", "TITLE"}))
	qt.Assert(t, qt.HasLen(lines[1:], len(experiments.Names())))
	for i, name := range experiments.Names() {
		e, err := experiments.Load(name)
		qt.Assert(t, qt.IsNil(err))
		cells := strings.Fields(lines[i+1])
		qt.Check(t, qt.Equals(cells[1], strconv.Itoa(len(e.CaseNames()))))
		qt.Check(t, qt.DeepEquals([]string{cells[0], cells[4]},
			[]string{name, strings.Join(e.Schemes, ",")}))
	}
}

// The help names every scheme that there is.
func TestRunHelp(t *testing.T) {
	out, _, err := pcn(t, "run", "--help")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(out, strings.Join(scheme.Builtin().Names(), ", ")))
	qt.Check(t, qt.StringContains(out, strings.Join(scheme.KernelControls(), ", ")))
}

func TestCPUTimeGrows(t *testing.T) {
	before, err := cpuTime()
	qt.Assert(t, qt.IsNil(err))
	for after := before; after == before; {
		after, err = cpuTime()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsTrue(after >= before))
	}
}
