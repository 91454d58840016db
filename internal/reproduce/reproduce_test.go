// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sweep"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// Every figure of the catalogue can be run in each way that it says, and each claim is about a
// scheme and a case that run.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	figures, err := Choose(nil)
	qt.Assert(t, qt.IsNil(err))
	for _, f := range figures {
		for _, quick := range []bool{false, true} {
			for _, engine := range []experiment.Engine{experiment.EngineSim,
				experiment.EngineKernel} {
				name := fmt.Sprintf("%s, %s, quick %v", f.ID(), engine, quick)
				p, err := newPlan(f, engine,
					Options{Load: experiments.Load, Quick: quick, Out: t.TempDir()})
				qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", name))
				if engine == experiment.EngineSim && quick {
					checkDeclared(t, f, p)
				}
				if p != nil && engine == f.decides() {
					checkClaims(t, name, p)
				}
			}
		}
	}
}

// checkDeclared checks that the figure can be run with the declared parameters, in the same cases
// and for the same time.
func checkDeclared(t *testing.T, f *Figure, own *Plan) {
	t.Helper()
	p, err := newPlan(f, experiment.EngineSim, Options{Load: experiments.Load,
		Quick: true, Out: t.TempDir(), Declared: true})
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", f.ID()))
	if own == nil {
		qt.Check(t, qt.IsNil(p))
		return
	}
	qt.Assert(t, qt.HasLen(p.Sweep.Points, len(own.Sweep.Points)))
	for i, point := range p.Sweep.Points {
		before := own.Sweep.Points[i]
		qt.Check(t, qt.Equals(point.Case, before.Case))
		qt.Check(t, qt.DeepEquals(point.Schemes, before.Schemes))
		qt.Check(t, qt.Equals(point.Experiment.Duration, before.Experiment.Duration))
	}
}

// What is declared replaces what was fitted, T is the longest round trip but at least 50 us, and a
// figure keeps what it is about.
func TestDeclared(t *testing.T) {
	t.Parallel()
	plans := map[string]*Plan{}
	for _, c := range []struct{ figure, ofCase, scheme, key, own, want string }{
		{"pcn-fig2", "", "pcn", "T", "50us", "50us"},
		{"pcn-fig2", "", "pcn", "w_min", "0.015625", "0.0078125"},
		{"pcn-fig17", "flows-16", "pcn", "w_min", "0.00625", "0.00625"},
		{"pcn-fig2", "", "pcn", "T_jitter", "0.25", "0"},
		{"pcn-fig2", "", "pcn", "window", "armed", "periodic"},
		{"pcn-fig2", "", "dcqcn", "initial_alpha", "0.21", "1"},
		{"pcn-fig2", "", "dcqcn", "byte_counter", "300MB", "300MB"},
		{"pcn-fig11", "", "pcn", "T", "500us", "500us"},
		{"pcn-fig17", "flows-1024", "pcn", "rate_unit", "1kbps", "1Mbps"},
		{"pcn-fig17", "flows-1024", "pcn", "T", "2ms", "500us"},
		{"pcn-fig13", "min-1-512", "pcn", "w_min", "0.001953125", "0.001953125"},
		{"pcn-fig13", "min-1-512", "pcn", "window", "armed", "periodic"},
		{"pcn-appendix-a", "", "pcn", "w_min", "0.0625", "0.0625"},
		{"ldcp-incast-10000", "long-1000", "ldcp", "gamma", "0.0625", "0.25"},
		{"tcd-fct", "", "dcqcn+tcd", "marking.kmin", "50KB", "5KB"},
		{"tcd-fct", "", "dcqcn+tcd", "initial_alpha", "0.5", "0.5"},
	} {
		for declared, want := range map[bool]string{false: c.own, true: c.want} {
			name := fmt.Sprintf("%s, declared: %v", c.figure, declared)
			p := plans[name]
			if p == nil {
				figures, err := Choose([]string{c.figure})
				qt.Assert(t, qt.IsNil(err))
				p, err = newPlan(figures[0], experiment.EngineSim,
					Options{Load: experiments.Load, Out: t.TempDir(), Declared: declared})
				qt.Assert(t, qt.IsNil(err))
				plans[name] = p
			}
			i := slices.IndexFunc(p.Sweep.Points,
				func(p sweep.Point) bool { return c.ofCase == "" || p.Case == c.ofCase })
			e := p.Sweep.Points[i].Experiment
			s, err := e.Scheme(c.scheme)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(e.Values(s).Get(c.key).String(), want),
				qt.Commentf("%+v, declared: %v", c, declared))
		}
	}
}

func checkClaims(t *testing.T, name string, p *Plan) {
	t.Helper()
	runs := func(scheme, ofCase string) bool {
		for _, point := range p.Sweep.Points {
			for _, s := range point.Schemes {
				if s == scheme && (ofCase == "" || point.Case == ofCase) {
					return true
				}
			}
		}
		return false
	}
	for _, c := range p.Figure.Claims {
		qt.Check(t, qt.IsTrue(runs(c.Scheme, c.Case)), qt.Commentf("%s: %s", name, c.What))
		if c.RelativeTo == nil {
			continue
		}
		for _, s := range c.RelativeTo.Schemes {
			qt.Check(t, qt.IsTrue(runs(s, c.RelativeTo.Case)), qt.Commentf("%s: %s", name, c.What))
		}
	}
}

const small = `paper: small
title: A small paper
figures:
  - name: fig
    title: A figure
    experiment: hol
    cost: 1s
    sim: {seeds: "1..8", schemes: [pfc, pcn]}
    quick: {seeds: "1..5"}
    claims:
      - {what: a, quote: q, paper: p, rule: ours, scheme: pcn, metric: recovery_time, flows: [F1],
         target: 1Gbps, max: 2ms}
      - {what: b, quote: q, paper: p, rule: ours, scheme: pfc, metric: recovery_time, flows: [F1],
         target: 1Gbps, relative_to: {schemes: [pcn]}, min: 2}
      - {what: c, quote: q, paper: p, rule: ours, scheme: pfc, metric: deadlock, statistic: mean,
         max: 0.9}
`

func parse(t *testing.T, text string) *Figure {
	t.Helper()
	p, err := Parse("small.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	return &p.Figures[0]
}

// judged returns the rows for values of pfc and pcn, a pair for each seed; negative ones were not
// reached.
func judged(t *testing.T, f *Figure, pairs ...[2]float64) []Row {
	t.Helper()
	return judgedWith(t, f, result.Valid, pairs...)
}

// judgedWith also has the verdict of the runs of the last seed.
func judgedWith(t *testing.T, f *Figure, last result.Verdict, pairs ...[2]float64) []Row {
	t.Helper()
	p, err := newPlan(f, experiment.EngineSim, Options{Load: experiments.Load, Out: t.TempDir()})
	qt.Assert(t, qt.IsNil(err))
	res := &sweep.Results{Sweep: p.Sweep}
	for i, pair := range pairs {
		for k, scheme := range []string{"pfc", "pcn"} {
			row := sweep.Row{Cell: sweep.Cell{Scheme: scheme, Seed: uint64(i + 1)},
				Verdict: result.Valid}
			if i == len(pairs)-1 {
				row.Verdict = last
			}
			for range p.Sweep.Metrics {
				v := sweep.Value{Quantity: config.Quantity{Value: pair[k]}}
				if pair[k] < 0 {
					v.Err = result.ErrNotReached
				}
				row.Values = append(row.Values, v)
			}
			res.Rows = append(res.Rows, row)
		}
	}
	return judge(f, map[experiment.Engine]*Plan{experiment.EngineSim: p},
		map[experiment.Engine]*sweep.Results{experiment.EngineSim: res})
}

func TestJudge(t *testing.T) {
	f := parse(t, small)
	rows := judged(t, f, [2]float64{4e6, 1e6}, [2]float64{4e6, 1e6}, [2]float64{4e6, 1e6},
		[2]float64{4e6, 1e6}, [2]float64{6e6, 1e6})
	value := func(i int) *Estimate { return rows[i].Results[experiment.EngineSim] }
	qt.Check(t, qt.Equals(rows[0].Verdict, Met))
	qt.Check(t, qt.Equals(value(0).String(), "1ms, n = 5"))
	qt.Check(t, qt.Equals(rows[1].Verdict, Met))
	qt.Check(t, qt.Equals(value(1).String(), "4 [4 to 6], n = 5"))
	qt.Check(t, qt.Equals(rows[0].command(),
		"pcn reproduce small-fig --engine sim --seeds 1..5"), qt.Commentf("seed 6 did not run"))
	few := judged(t, f, [2]float64{4e6, 1e6}, [2]float64{4e6, 1e6})
	qt.Check(t, qt.Equals(few[0].Verdict, TooFew))
}

// Part of the interval outside of the band is enough for "not met", and a time that was not reached
// is longer than any other.
func TestNotMet(t *testing.T) {
	f := parse(t, small)
	rows := judged(t, f, [2]float64{4e6, 1e6}, [2]float64{4e6, 1e6}, [2]float64{4e6, -1},
		[2]float64{4e6, 1e6}, [2]float64{4e6, 1e6}, [2]float64{4e6, 1e6}, [2]float64{4e6, -1},
		[2]float64{4e6, 1e6})
	e := rows[0].Results[experiment.EngineSim]
	qt.Check(t, qt.Equals(rows[0].Verdict, NotMet))
	qt.Check(t, qt.Equals(e.Value, 1e6))
	qt.Check(t, qt.IsTrue(math.IsInf(e.High, 1)))
	qt.Check(t, qt.Equals(e.String(), "1ms [1ms to never], n = 8"))
	qt.Check(t, qt.Equals(rows[0].command(), "pcn reproduce small-fig --engine sim"))
	qt.Check(t, qt.HasLen(judged(t, f), 3))
	qt.Check(t, qt.Equals(judged(t, f)[0].Verdict, NotRun))
}

// Runs that can't be believed are left out of the value, and the rest do not decide for them.
func TestInvalidRunsMeetNothing(t *testing.T) {
	f := parse(t, small)
	pairs := slices.Repeat([][2]float64{{4e6, 1e6}}, 6)
	rows := judgedWith(t, f, result.Invalid, pairs...)
	qt.Check(t, qt.Equals(rows[0].Results[experiment.EngineSim].String(),
		"1ms, n = 5; 1 INVALID"))
	qt.Check(t, qt.Equals(rows[0].Verdict, NotMet))
	rows = judgedWith(t, f, result.Invalid, pairs[:4]...)
	qt.Check(t, qt.Equals(rows[0].Verdict, TooFew))
}

// A ratio of nothing to nothing is no evidence, neither for "the same" nor against "more".
func TestNothingToNothing(t *testing.T) {
	f := parse(t, strings.NewReplacer("relative_to: {schemes: [pcn]}, min: 2", "max: 2ms",
		"max: 0.9", "relative_to: {schemes: [pcn]}, max: 2").Replace(strings.Replace(small,
		"target: 1Gbps, max: 2ms", "target: 1Gbps, relative_to: {schemes: [pfc]}, max: 2", 1)))
	none, some := [2]float64{0, 0}, [2]float64{4e6, 2e6}
	never := [2]float64{-1, -1}
	for _, c := range []struct {
		pairs        [][2]float64
		median, mean string
		verdicts     [2]Verdict
	}{
		{[][2]float64{none, none, none, none, never},
			"5 of nothing to nothing", "5 of nothing to nothing", [2]Verdict{TooFew, TooFew}},
		{[][2]float64{some, some, some, some, some, none},
			"0.5, n = 5; 1 of nothing to nothing", "2, n = 6", [2]Verdict{TooFew, Met}},
		{[][2]float64{some, some, some, some, none},
			"0.5, n = 4; 1 of nothing to nothing", "2, n = 5", [2]Verdict{TooFew, Met}},
		{[][2]float64{{1, 3}, {1, 3}, {1, 3}, {1, 3}, {1, 3}, none},
			"3, n = 5; 1 of nothing to nothing", "0.333, n = 6",
			[2]Verdict{NotMet, Met}},
	} {
		rows := judged(t, f, c.pairs...)
		for i, want := range []string{c.median, c.mean} {
			row := rows[2*i]
			qt.Check(t, qt.Equals(row.Results[experiment.EngineSim].String(), want))
			qt.Check(t, qt.Equals(row.Verdict, c.verdicts[i]), qt.Commentf("%s", want))
		}
	}
}

// A share of few runs is not certain, even if all are the same.
func TestShareHasAnInterval(t *testing.T) {
	f := parse(t, small)
	rows := judged(t, f, [2]float64{0, 1}, [2]float64{0, 1}, [2]float64{0, 1}, [2]float64{0, 1})
	e := rows[2].Results[experiment.EngineSim]
	qt.Check(t, qt.Equals(e.Value, 0.0))
	qt.Check(t, qt.Equals(e.Low, 0.0))
	qt.Check(t, qt.IsTrue(math.Abs(e.High-0.4899) < 1e-4), qt.Commentf("%g", e.High))
}

// A deadlock in a tenth of runs of 15 ms is one in 1 - 0.9^4 of runs of 60 ms: three in four of the
// quarters that have none must go on. The interval is that of the share, as long.
func TestSharesOfLongerRuns(t *testing.T) {
	f := parse(t, strings.NewReplacer("seeds: \"1..8\", schemes", "seeds: 1..20, schemes",
		"statistic: mean,", "statistic: mean, at_length: 60ms,").Replace(small))
	pairs := slices.Repeat([][2]float64{{0, 0}}, 20)
	pairs[3][0], pairs[7][0] = 1, 1
	p, err := newPlan(f, experiment.EngineSim, Options{Load: experiments.Load, Out: t.TempDir()})
	qt.Assert(t, qt.IsNil(err))
	times := 60 / (float64(p.Sweep.Points[0].Experiment.Duration) / 1e6)
	e := judged(t, f, pairs...)[2].Results[experiment.EngineSim]
	qt.Check(t, qt.IsTrue(math.Abs(e.Value-(1-math.Pow(0.9, times))) < 1e-12))
	// Wilson's interval of 2 of 20 is 0.0279 to 0.3010
	qt.Check(t, qt.IsTrue(math.Abs(e.Low-(1-math.Pow(1-0.0279, times))) < 1e-3))
	qt.Check(t, qt.IsTrue(math.Abs(e.High-(1-math.Pow(1-0.3010, times))) < 1e-3))
}

func TestMistakes(t *testing.T) {
	longName := strings.Repeat("a", 65)
	for _, c := range []struct{ from, to, want string }{
		{"max: 2ms", "max: 2KB", ".*2KB is a .*"},
		{", max: 2ms", "", ".*neither min nor max.*"},
		{"name: fig", "name: Fig", `.*"Fig" can't be a name.*`},
		{"name: fig", "name: " + longName, `.*"a{65}" can't be a name.*`},
		{"max: 2ms", "max: 2ms, why", ".*"},
		{"    quick: {seeds: \"1..5\"}\n", "", `.*"quick" is missing.*`},
		{"max: 2ms", "max: 2ms, at_length: 1s", ".*is for shares.*"},
		{"rule: ours", "rule: near", `.*"near" computes the band.*`},
		{"rule: ours", "rule: about", ".*the rule .about. computes the band.*"},
		{"rule: ours, ", "", `.*"rule" is missing.*`},
		{"experiment: hol", "experiment: hol\n    cause_of: fig", `.*no figure before.*`},
		{"max: 2ms", "max: 2ms, missed: m", ".*belong together.*"},
	} {
		_, err := Parse("small.yaml", []byte(strings.Replace(small, c.from, c.to, 1)))
		qt.Check(t, qt.ErrorMatches(err, "(?s)small.yaml:[0-9]+.*"+c.want), qt.Commentf("%+v", c))
	}
	_, err := Choose([]string{"pcn-fig99"})
	qt.Check(t, qt.ErrorMatches(err, `no paper or figure is named "pcn-fig99" .*`))
}

func TestMarkdown(t *testing.T) {
	f := parse(t, small)
	r := &Reproduction{Figures: []*Figure{f},
		Rows: judged(t, f, slices.Repeat([][2]float64{{1e6, 3e6}}, 5)...)}
	var text strings.Builder
	qt.Assert(t, qt.IsNil(r.WriteMarkdown(&text)))
	qt.Check(t, qt.StringContains(text.String(), "0 of 3 claims are met, 3 are not."))
	qt.Check(t, qt.StringContains(text.String(), "| small-fig | a | p (ours: at most 2ms) |"+
		" 3ms, n = 5 | - | - | **not met** |"+
		" `pcn reproduce small-fig --engine sim --seeds 1..5` |"))
	for line := range strings.SplitSeq(text.String(), "\n") {
		qt.Check(t, qt.IsTrue(len(line) <= 100 || strings.HasPrefix(line, "|")))
	}
}

// A reader has to see which values of Linux are of shorter runs or other networks. What the schemes
// are set to makes no other size: Linux may run fewer of them.
func TestOtherSize(t *testing.T) {
	sim := map[string]string{"duration": "1s", "topology.pods": "8", "qcn.qeq": "33KB"}
	for _, test := range []struct {
		kernel map[string]string
		want   string
	}{
		{sim, "0, n = 5"},
		{map[string]string{"duration": "1s", "topology.pods": "8"}, "0, n = 5"},
		{map[string]string{"duration": "9ms", "topology.pods": "8"}, "0, n = 5 (other size)"},
		{map[string]string{"duration": "1s"}, "0, n = 5 (other size)"},
		{nil, "0, n = 5 (other size)"},
	} {
		f := &Figure{Sim: &Part{Set: sim}, Kernel: &Part{Set: test.kernel}}
		row := Row{Figure: f, Claim: &Claim{},
			Results: map[experiment.Engine]*Estimate{experiment.EngineKernel: {Seeds: 5}}}
		qt.Check(t, qt.Equals(row.on(experiment.EngineKernel), test.want))
	}
}

// Whether a number comes back without a cause says the claim of the same thing.
func TestWithoutCause(t *testing.T) {
	f := parse(t, strings.Replace(small, "max: 2ms}", "max: 2ms, missed: m, shows: s, "+
		"removed_by: less}", 1)+`  - name: less
    title: Without it
    cause_of: fig
    experiment: hol
    cost: 1s
    sim: {seeds: "1..8", schemes: [pfc, pcn]}
    quick: {seeds: "1..5"}
    claims:
      - {what: b, quote: q, paper: p, rule: ours, scheme: pcn, metric: recovery_time, flows: [F1],
         target: 1Gbps, max: 1ms}
      - {what: a, quote: q, paper: p, rule: ours, scheme: pcn, metric: recovery_time, flows: [F1],
         target: 1Gbps, max: 3ms}
`)
	less := &f.Paper.Figures[1]
	for _, c := range []struct {
		ns   float64
		want string
	}{
		{2.5e6, "m. Without that (small-less) the number comes back"},
		{4e6, "Open, as the number does not come back without that (small-less): m"},
	} {
		pairs := slices.Repeat([][2]float64{{1e6, c.ns}}, 5)
		r := &Reproduction{Figures: []*Figure{f, less},
			Rows: append(judged(t, f, pairs...), judged(t, less, pairs...)...)}
		qt.Check(t, qt.Equals(r.misses()[0].why, c.want))
	}
}

// A count has three digits, or all that stand before the point.
func TestCountsAsText(t *testing.T) {
	e := Estimate{Seeds: 20, Unit: config.UnitCount, Value: 1209, Low: 1209, High: 1209.5}
	qt.Check(t, qt.Equals(e.String(), "1209 [1209 to 1210], n = 20"))
	e = Estimate{Seeds: 20, Unit: config.UnitCount, Value: 0.97149, Low: 0.97149, High: 0.97149}
	qt.Check(t, qt.Equals(e.String(), "0.971, n = 20"))
}

// Quick says what is smaller than in the whole figure.
func TestQuickIsSmaller(t *testing.T) {
	f := &Figure{
		Sim: &Part{Seeds: experiment.Seeds{1, 2, 3}, Cases: []string{"a", "b"},
			Set: map[string]string{"qcn.qeq": "33KB", "duration": "1s"}},
		Quick: &Part{Seeds: experiment.Seeds{1}, Cases: []string{"a"},
			Set: map[string]string{"qcn.qeq": "33KB", "duration": "140ms"}},
	}
	for quick, want := range map[bool]string{
		true: "1 of 3 seeds; cases a; duration 140ms", false: "",
	} {
		p := Plan{Figure: f, Part: f.part(experiment.EngineSim, quick), Quick: quick}
		qt.Check(t, qt.Equals(p.Smaller(), want))
	}
	same := Plan{Figure: f, Part: f.Sim, Quick: true}
	qt.Check(t, qt.Equals(same.Smaller(), ""))
}
