// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// The reference's values 100 to 110 give the interval 99.979 to 110.021: its median is 105, and the
// margin 0.021.
func TestJudge(t *testing.T) {
	reference := []float64{110, 100, 102, 108, 104, 106}
	for _, tc := range []struct {
		name   string
		values []float64
		want   Outcome
	}{
		{"the same", reference, Within},
		{"all beyond", []float64{112, 113, 114, 112, 112, 110.03}, Changed},
		{"all below", []float64{1, 2, 3, 4, 5, 99.9}, Changed},
		{"beyond the seeds, within the margin", slices.Repeat([]float64{110.02}, 6), Within},
		{"one is in the interval", []float64{112, 113, 114, 112, 112, 110}, CantTell},
		{"beyond on both sides", []float64{90, 90, 90, 120, 120, 120}, Within},
		{"too few seeds for a change", []float64{112, 113, 114, 112, 112}, CantTell},
		{"one seed within", []float64{105}, Within},
		{"none", nil, CantTell},
	} {
		qt.Check(t, qt.Equals(judge(reference, tc.values), tc.want), qt.Commentf("%s", tc.name))
	}
	qt.Check(t, qt.Equals(judge([]float64{0, 0, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1, 1}), Changed))
	qt.Check(t, qt.Equals(judge([]float64{1, 1, 1, 1, 1}, []float64{2, 2, 2, 2, 2, 2}), CantTell))
}

// A flow's digest is of its own rows in all tables, and of no other's.
func TestFlowDigests(t *testing.T) {
	run := func() *result.Run {
		return &result.Run{
			Flows: []result.Flow{{Name: "A"}, {Name: "B"}},
			Series: []result.Sample{{Kind: result.KindFlow, Name: "A", RateBps: 1},
				{Kind: result.KindSender, Name: "B", RateBps: 1},
				{Kind: result.KindPort, Name: "A", RateBps: 1}},
			Completions: []result.Completion{{Flow: "A", FCTNs: new(int64(5))}, {Flow: "B"}},
		}
	}
	of, err := flowDigests(run())
	qt.Assert(t, qt.IsNil(err))
	for _, tc := range []struct {
		change func(*result.Run)
		same   []string
	}{
		{func(*result.Run) {}, []string{"A", "B"}},
		{func(r *result.Run) { r.Series[2].RateBps = 2 }, []string{"A", "B"}}, // a port's
		{func(r *result.Run) { r.Series[0].RateBps = 2 }, []string{"B"}},
		{func(r *result.Run) { r.Series[1].RateBps = 2 }, []string{"A"}},
		{func(r *result.Run) { *r.Completions[0].FCTNs = 6 }, []string{"B"}},
		{func(r *result.Run) { r.Flows[1].CwndPackets = 7 }, []string{"A"}},
	} {
		r := run()
		tc.change(r)
		other, err := flowDigests(r)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(sameFlows(of, other), tc.same))
	}
}

// record is a record of one run with a seed for each digest.
func record(guest, experimentSum string, tables ...string) *Record {
	r := Run{Experiment: "x", Scheme: "cubic"}
	for i, sum := range tables {
		s := SeedRun{Seed: uint64(i + 1), ExperimentSHA256: experimentSum, Tables: sum,
			Flows:  map[string]string{"F": sum},
			Values: []Value{{"rate", experiment.UnitRate, new(1e6)}}}
		if sum == "" {
			s = SeedRun{Seed: s.Seed, Failed: "panic"}
		}
		r.Seeds = append(r.Seeds, s)
	}
	return &Record{GuestSHA256: guest, Kernel: "k", Runs: []Run{r}}
}

func TestCompare(t *testing.T) {
	reference := record("g", "e", "a", "b", "c", "d", "e", "f")
	v, err := Compare(reference, record("g", "e", "a"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals([]int{v.Runs, v.Same, v.Flows, v.SameFlows, len(v.Differ)},
		[]int{1, 1, 1, 1, 0}))

	v, err = Compare(reference, record("g", "e", "x", "b", "c", "d", "e", "f"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals([]int{v.Same, v.SameFlows, len(v.Differ), v.Changed, v.CantTell},
		[]int{0, 0, 1, 0, 0}))

	v, err = Compare(reference, record("", "e", "")) // no run told what ran
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(v.Failed, 1))
	qt.Check(t, qt.Equals(v.Differ[0].Failed, "seed 1: panic"))

	for fails, other := range map[string]*Record{
		`the reference was made by another build .*: run the suite on kernel k again`: record(
			"other", "e", "a"),
		`run x/cubic is of another experiment than the .*`: record("g", "other", "a"),
		`kernel k has no run x/cubic, which .*`:            {GuestSHA256: "g", Kernel: "k"},
	} {
		_, err := Compare(reference, other)
		qt.Check(t, qt.ErrorMatches(err, fails))
	}
	_, err = Compare(&Record{GuestSHA256: "g"}, reference)
	qt.Check(t, qt.ErrorMatches(err, `the reference has no run x/cubic: .*`))
}

// A kernel on which only some experiments ran is compared in those, and no others may be missing.
func TestOnly(t *testing.T) {
	reference := record("g", "e", "a", "b")
	reference.Runs = append(reference.Runs, Run{Experiment: "y", Scheme: "reno",
		Seeds: []SeedRun{{Seed: 1, Tables: "c"}}})
	part := record("g", "e", "a")
	_, err := Compare(reference, part)
	qt.Check(t, qt.ErrorMatches(err, `kernel k has no run y/reno, which .*`))
	part.Only = []string{"x"}
	v, err := Compare(reference, part)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals([]int{v.Runs, v.Same}, []int{1, 1}))

	s := Suite{Name: "tcp", Experiments: []*experiment.Experiment{{Name: "x"}, {Name: "y"}}}
	all, err := s.only(nil)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(all.Experiments, 2))
	y, err := s.only([]string{"y"})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(y.Experiments, 1))
	qt.Check(t, qt.Equals(y.Experiments[0].Name, "y"))
	_, err = s.only([]string{"z"})
	qt.Check(t, qt.ErrorMatches(err, `suite tcp has no experiment "z": want some of x, y`))
}

// The page says of each control how many of a kernel's own runs are the same.
func TestWritePage(t *testing.T) {
	reference := record("g", "e", "a", "b", "c", "d", "e", "f")
	reference.Runs = append(reference.Runs, Run{Experiment: "y", Scheme: "reno",
		Seeds: []SeedRun{{Seed: 1, Tables: "c"}}})
	same := record("g", "e", "a")
	same.Only = []string{"x"}
	slower := record("g", "e", "r", "s", "t", "u", "v", "w")
	slower.Only = same.Only
	for i := range slower.Runs[0].Seeds {
		slower.Runs[0].Seeds[i].Values[0].Value = new(0.5e6)
	}
	var page strings.Builder
	qt.Assert(t, qt.IsNil(WritePage(&page, reference, []*Record{same, slower})))
	for _, want := range []string{
		"\n| cubic | the same bytes, 1 of 1 runs | 0 of 1 runs the same; 1 metrics changed, " +
			"0 can't be told, 0 within |\n| reno | not run | not run |\n",
		"\n| x/cubic | rate | changed | 500kbps [500kbps to 500kbps], " +
			"reference 1Mbps [999.8kbps to 1Mbps] |\n",
		"\n| x | rate |\n|---|---|\n| cubic | 1Mbps |\n",
	} {
		qt.Check(t, qt.StringContains(page.String(), want))
	}
}
