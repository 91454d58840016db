// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func parseSweep(t *testing.T) *Experiment {
	t.Helper()
	e, err := Parse("sweep.yaml", []byte(sweep))
	qt.Assert(t, qt.IsNil(err))
	return e
}

func getCase(t *testing.T, e *Experiment, name string) *Experiment {
	t.Helper()
	c, err := e.Case(name)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(c.CaseName, name))
	qt.Assert(t, qt.DeepEquals(c.CaseNames(), []string{name}))
	return c
}

func TestCasesAreRead(t *testing.T) {
	e := parseSweep(t)
	qt.Assert(t, qt.DeepEquals(e.Cases, []Case{
		{Name: "plain"},
		{Name: "f1-9.5", Set: map[string]string{"flows.F1.limit_rate": "9.5Gbps"}},
		{Name: "late", Set: map[string]string{
			"flows.0.start": "1ms", "bursts.burst.every": "2ms", "pcn.T": "25us", "warmup": "2ms",
		}},
	}))
	qt.Assert(t, qt.DeepEquals(e.CaseNames(), []string{"plain", "f1-9.5", "late"}))
	qt.Assert(t, qt.Equals(e.Expect[0].Case, "late"))
	qt.Assert(t, qt.DeepEquals(e.Compare[0].Cases, []string{"plain", "late"}))
}

func TestCaseHasItsValues(t *testing.T) {
	e := parseSweep(t)

	f1 := getCase(t, e, "f1-9.5").Flows[1]
	qt.Assert(t, qt.Equals(f1.LimitRate, 9.5e9))
	qt.Assert(t, qt.Equals(f1.InitialRate, 9.5e9)) // follows the limit

	late := getCase(t, e, "late")
	qt.Assert(t, qt.Equals(late.Flows[0].Start, Millisecond))
	qt.Assert(t, qt.Equals(late.Flows[1].Start, -2*Millisecond)) // follows the warm-up
	qt.Assert(t, qt.Equals(late.Bursts[0].Every, 2*Millisecond))
	qt.Assert(t, qt.Equals(late.Section("pcn").Get("T").String(), "25us"))
	qt.Assert(t, qt.Equals(late.Warmup, 2*Millisecond))
	qt.Assert(t, qt.Equals(late.Hash(), e.Hash()))
	qt.Assert(t, qt.Equals(string(late.Source()), sweep))

	// A case that sets nothing is the experiment itself.
	plain := getCase(t, e, "plain")
	qt.Assert(t, qt.CmpEquals(*plain, *e, allFields,
		cmpopts.IgnoreFields(Experiment{}, "Cases", "CaseName", "variants")))
	qt.Assert(t, qt.Equals(e.CaseName, ""))
}

func TestCaseOfFileWithoutCases(t *testing.T) {
	e, err := Parse("small.yaml", []byte(smallest))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(e.CaseNames(), []string{""}))
	c := getCase(t, e, "")
	qt.Assert(t, qt.CmpEquals(*c, *e, allFields))
}

// An alias is the same node twice, and a case changes one of them.
func TestCaseChangesOneOfTwoAliases(t *testing.T) {
	file := strings.Replace(smallest, "topology: {kind: fig1}", "topology: {kind: fig1, rate: &r 40Gbps}", 1) + `bursts:
  - &b {name: b0, from: H2, to: R1, size: 1KB}
links:
  - &l {at: 0ms, link: S0->S1, rate: *r}
  - {at: 1ms, link: S0->S1, rate: *r}
  - {at: 2ms, link: S0->S1, rate: *r}
cases:
  - {name: a, set: {links.1.rate: 1Gbps}}
`
	e, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	c := getCase(t, e, "a")
	qt.Assert(t, qt.Equals(c.LinkEvents[0].Rate, 40e9))
	qt.Assert(t, qt.Equals(c.LinkEvents[1].Rate, 1e9))
	qt.Assert(t, qt.Equals(c.LinkEvents[2].Rate, 40e9))
	qt.Assert(t, qt.Equals(c.Topology.Rate, 40e9))
	qt.Assert(t, qt.Equals(e.LinkEvents[1].Rate, 40e9))
}

// A whole mapping that is an alias is changed where the path leads, and not at its anchor.
func TestCaseChangesAliasedMapping(t *testing.T) {
	file := smallest + `ldcp: {marking: &m {kmin: 1KB, kmax: 2KB, pmax: 0.5}}
dctcp: {marking: *m}
cases:
  - {name: a, set: {dctcp.marking.kmax: 3KB}}
`
	e, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	c := getCase(t, e, "a")
	qt.Assert(t, qt.Equals(markingIn(c.Section("dctcp")), Marking{KMin: 1e3, KMax: 3e3, PMax: 0.5}))
	qt.Assert(t, qt.Equals(markingIn(c.Section("ldcp")), Marking{KMin: 1e3, KMax: 2e3, PMax: 0.5}))
}

// What the file does not have is added on the way to the value.
func TestCaseAddsMappings(t *testing.T) {
	file := smallest + "cases:\n  - {name: a, set: {switch.pfc.dynamic.alpha: 1/8}}\n"
	e, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(e.Switch.PFC.Dynamic))
	qt.Assert(t, qt.Equals(getCase(t, e, "a").Switch.PFC.Dynamic.Alpha, 1./8))
}

func TestUnknownCase(t *testing.T) {
	_, err := parseSweep(t).Case("f1")
	qt.Assert(t, qt.ErrorMatches(err,
		`experiment sweep has no case "f1" \(hint: it has plain, f1-9.5, late\)`))
	_, err = parseSweep(t).Case("")
	qt.Assert(t, qt.ErrorMatches(err, `experiment sweep has no case "" \(hint: .*\)`))

	e, err := Parse("small.yaml", []byte(smallest))
	qt.Assert(t, qt.IsNil(err))
	_, err = e.Case("f1")
	qt.Assert(t,
		qt.ErrorMatches(err, `experiment small has no case "f1" \(hint: it has no cases\)`))
}

func TestChangesOfCases(t *testing.T) {
	e := parseSweep(t)
	o, err := e.With(Changes{Seed: new(uint64(9)), Cases: []string{"late", "plain"},
		Schemes: []string{"cubic"}})
	qt.Assert(t, qt.IsNil(err))
	// in the order of the file
	qt.Assert(t, qt.DeepEquals(o.CaseNames(), []string{"plain", "late"}))
	late := getCase(t, o, "late")
	qt.Assert(t, qt.Equals(late.Seed, 9))
	qt.Assert(t, qt.DeepEquals(late.Schemes, []string{"cubic"}))
	qt.Assert(t, qt.Equals(late.Warmup, 2*Millisecond))
	_, err = o.Case("f1-9.5")
	qt.Assert(t, qt.ErrorMatches(err, `experiment sweep has no case "f1-9.5" .*`))

	// A case can be changed like an experiment, and stays that case.
	again, err := late.With(Changes{Seed: new(uint64(10)), Cases: []string{"late"}})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(again.Seed, 10))
	qt.Assert(t, qt.Equals(again.CaseName, "late"))

	// The original is as it was.
	qt.Assert(t, qt.HasLen(e.Cases, 3))
	qt.Assert(t, qt.Equals(getCase(t, e, "late").Seed, 1))
}

func TestChangesOfCasesErrors(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    Changes
		want string
	}{
		{"unknown", Changes{Cases: []string{"plain", "f9"}},
			`experiment sweep has no case "f9" \(hint: it has plain, f1-9.5, late\)`},
		{"none", Changes{Cases: []string{}},
			`experiment sweep: no case is left \(hint: choose one of plain, f1-9.5, late\)`},
		{"bad in one case", Changes{Duration: new(Millisecond)},
			`sweep.yaml:15:26: case "late", line 14: 1ms is out of range \(hint: -2ms to 999.999us\)`},
		{"bad in all cases", Changes{Schemes: []string{}},
			`--algo: "schemes" is missing .*`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parseSweep(t).With(tc.o)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}

	// The case that is wrong is not run.
	_, err := parseSweep(t).With(Changes{Duration: new(Millisecond), Cases: []string{"plain"}})
	qt.Assert(t, qt.IsNil(err))
}

// With cases, the file itself is not run, and need not fit what is chosen.
func TestChangesFitTheCases(t *testing.T) {
	file := strings.Replace(smallest, "to: R0}", "to: R0, start: 10ms}", 1) +
		"cases:\n  - {name: early, set: {flows.F0.start: 0ms}}\n"
	e, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	o, err := e.With(Changes{Duration: new(5 * Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(getCase(t, o, "early").Duration, 5*Millisecond))
}
