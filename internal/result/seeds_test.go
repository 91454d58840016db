// SPDX-License-Identifier: Apache-2.0

package result

import (
	"errors"
	"math"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

func quantities(values ...float64) []experiment.Quantity {
	var all []experiment.Quantity
	for _, v := range values {
		all = append(all, experiment.Quantity{Value: v})
	}
	return all
}

// The median is the middle, the interval holds it and lies within the values, and one value has no
// interval.
func TestSpread(t *testing.T) {
	s := SpreadOf(quantities(5, 1, 9, 3, 7))
	qt.Check(t, qt.Equals(s.Median.Value, 5.0))
	qt.Check(t, qt.IsTrue(s.Low.Value >= 1 && s.Low.Value < 5))
	qt.Check(t, qt.IsTrue(s.High.Value <= 9 && s.High.Value > 5))
	qt.Check(t, qt.DeepEquals(SpreadOf(quantities(9, 7, 5, 3, 1)), s))
	qt.Check(t, qt.Equals(SpreadOf(quantities(2, 4)).Median.Value, 3.0))
	one := SpreadOf(quantities(4))
	qt.Check(t, qt.Equals(one.Low, one.High))
}

// More values make the interval narrower.
func TestSpreadNarrows(t *testing.T) {
	width := func(n int) float64 {
		var values []float64
		for i := range n {
			values = append(values, float64(i)/float64(n))
		}
		s := SpreadOf(quantities(values...))
		return s.High.Value - s.Low.Value
	}
	qt.Check(t, qt.IsTrue(width(100) < width(10)))
	qt.Check(t, qt.IsTrue(width(1000) < width(100)))
}

// A bound holds for the median. Seeds without a value are counted, and must be the fewer.
func TestSeedsOutcome(t *testing.T) {
	limit := experiment.Quantity{Value: 6}
	summary := &SeedsSummary{}
	add := func(o Outcome) {
		o.Expect.Max = &limit
		summary.Seeds = append(summary.Seeds,
			Judged{Runs: []JudgedRun{{Outcomes: []Outcome{o}}}})
	}
	for _, v := range []float64{5, 9, 5} {
		add(Outcome{Measured: quantities(v)})
	}
	add(Outcome{Err: errors.New("not reached")})
	got := summary.Outcomes()[0]
	qt.Check(t, qt.IsTrue(got.Pass))
	qt.Check(t, qt.Equals(got.Missing, 1))
	for range 3 {
		add(Outcome{Err: errors.New("not reached")})
	}
	qt.Check(t, qt.IsFalse(summary.Outcomes()[0].Pass))
}

// What a program must do it must do with each seed.
func TestEachSeedOfPrograms(t *testing.T) {
	zero := experiment.Quantity{}
	summary := &SeedsSummary{}
	for seed, exit := range []float64{0, 0, 1, 0} {
		o := Outcome{Measured: quantities(exit)}
		o.Expect.Metric, o.Expect.Max = experiment.ProgramExit, &zero
		o.Judge()
		judged := Judged{Seed: uint64(seed), Runs: []JudgedRun{{Outcomes: []Outcome{o}}}}
		summary.Seeds = append(summary.Seeds, judged)
		qt.Check(t, qt.Equals(judged.Fails(), exit != 0))
	}
	got := summary.Outcomes()[0]
	qt.Check(t, qt.IsFalse(got.Pass))
	qt.Check(t, qt.DeepEquals(got.Failing, []uint64{2}))
	qt.Check(t, qt.StringContains(got.Value(), "; 1 of 4 fail: seed 2"))
	summary.Seeds = append(summary.Seeds[:2], summary.Seeds[3])
	qt.Check(t, qt.IsTrue(summary.Outcomes()[0].Pass))
}

// What seeds were too short for is not judged, unless the others have decided already.
func TestShortSeeds(t *testing.T) {
	limit, never := ns(6), errors.New("not reached")
	for name, c := range map[string]struct {
		values []float64 // 0: the seed was too short, -1: it never has one
		pass   bool
		short  bool
	}{
		"all were too short":           {values: []float64{0, 0, 0}, short: true},
		"most were too short":          {values: []float64{5, 0, 0}, short: true},
		"one, and it could decide":     {values: []float64{5, 9, 9, 0}, short: true},
		"the median is within":         {values: []float64{5, 5, 0}, pass: true},
		"most are above, whatever one": {values: []float64{9, 9, 0}},
		"half never, so no median":     {values: []float64{-1, -1, 0, 0}},
		"one never, one too short":     {values: []float64{-1, 0, 5, 0}, short: true},
		"none was too short":           {values: []float64{9, 9, -1}},
	} {
		s := &SeedsSummary{}
		for _, v := range c.values {
			o := Outcome{Expect: experiment.Expect{Max: &limit}}
			of := CompareValue{Scheme: "pcn"}
			switch v {
			case 0:
				o.Err, o.Needs = never, 70
			case -1:
				o.Err = never
			default:
				o.Measured = quantities(v)
				of.Measured = ns(v)
			}
			of.Err, of.Needs = o.Err, o.Needs
			compare := experiment.Compare{
				Bounds: map[string]experiment.Bounds{"pcn": {Max: &limit}},
			}
			s.Seeds = append(s.Seeds, Judged{Runs: []JudgedRun{{Outcomes: []Outcome{o}}},
				Compared: []CompareOutcome{{Compare: compare, Values: []CompareValue{of}}}})
		}
		got, compared := s.Outcomes()[0], s.Comparisons()[0]
		qt.Check(t, qt.Equals(got.Pass, c.pass), qt.Commentf("%s", name))
		qt.Check(t, qt.Equals(got.Needs == 70, c.short), qt.Commentf("%s", name))
		qt.Check(t, qt.Equals(compared.Pass, c.pass), qt.Commentf("%s", name))
		qt.Check(t, qt.Equals(compared.TooShort(), c.short), qt.Commentf("%s", name))
	}
}

// Metrics without bounds have medians too, and seeds without a value are counted.
func TestSeedsMetrics(t *testing.T) {
	summary := &SeedsSummary{}
	for seed, v := range []float64{5, 9, 7} {
		m := MetricValue{Measured: experiment.Quantity{Value: v}}
		m.Name = "queue"
		if seed == 1 {
			m.Err = errors.New("too short")
		}
		summary.Seeds = append(summary.Seeds, Judged{Runs: []JudgedRun{
			{Manifest: Manifest{Scheme: "pcn"}, Metrics: []MetricValue{m}}}})
	}
	got := summary.Metrics()
	qt.Assert(t, qt.HasLen(got, 1))
	qt.Check(t, qt.Equals(got[0].Value(), "6 [5 to 7] (not in 1 of 3 seeds)"))
}

// Bounds and relations hold for the medians. Most seeds must have a value, and a seed alone decides
// nothing.
func TestComparisonsOverSeeds(t *testing.T) {
	recovery := experiment.Measure{Metric: experiment.RecoveryTime, Flows: []string{"F0"},
		Target: &experiment.Quantity{Value: 10}, Hold: 100}
	e := &experiment.Experiment{Schemes: []string{"pcn", "qcn"}, Compare: []experiment.Compare{
		{What: "others"}, // of schemes that did not run
		{What: "recovery", Measure: recovery, Within: 0.5, Order: true,
			Paper: map[string]experiment.Quantity{"pcn": ns(200), "qcn": ns(400)}},
	}}
	e.Compare[0].Schemes = []string{"timely"}
	of := func(seeds ...[2]int) []string {
		s := &SeedsSummary{}
		for _, bins := range seeds {
			s.Seeds = append(s.Seeds, Judge(e,
				[]*Run{recovering("", "pcn", bins[0]), recovering("", "qcn", bins[1])}))
		}
		all := s.Comparisons()
		qt.Assert(t, qt.HasLen(all, 1))
		qt.Check(t, qt.IsTrue(all[0].Values[0].Spread == nil || all[0].OverSeeds()))
		var values []string
		for _, v := range all[0].Values {
			values = append(values, v.Value())
		}
		return append(values, summary(all[0])...)
	}
	qt.Check(t, qt.DeepEquals(of([2]int{9, 5}, [2]int{2, 5}, [2]int{1, 1}), []string{
		"200ns [100ns to 900ns]", "500ns [100ns to 500ns]",
		"pcn 200ns 200ns 1 [100ns to 300ns] true", "qcn 400ns 500ns 1.25 [200ns to 600ns] true",
		"pcn < qcn: pcn 200ns, qcn 500ns: true", "true"}))
	qt.Check(t, qt.DeepEquals(of([2]int{4, 1}, [2]int{4, 5}, [2]int{4, 10})[3:], []string{
		"qcn 400ns 300ns 0.75 [200ns to 600ns] true",
		"pcn < qcn: qcn 300ns, pcn 400ns: false", "false"}))
	qt.Check(t, qt.Equals(of([2]int{4, 1}, [2]int{4, 5}, [2]int{4, 10})[1],
		"300ns [100ns to 500ns] (not in 1 of 3 seeds)"))
	missing := of([2]int{2, 10}, [2]int{2, 10}, [2]int{2, 5})
	qt.Check(t, qt.DeepEquals(missing[3:], []string{
		"qcn 400ns not reached  [200ns to 600ns] false",
		"pcn < qcn: pcn 200ns, qcn not reached: true", "false"}))
	qt.Check(t, qt.HasLen((&SeedsSummary{}).Comparisons(), 0))
}

// Intervals overlap if none is beyond the other.
func TestOverlap(t *testing.T) {
	of := func(intervals ...[2]float64) SeedsOutcome {
		var o SeedsOutcome
		for _, i := range intervals {
			o.Spreads = append(o.Spreads, Spread{Low: experiment.Quantity{Value: i[0]},
				High: experiment.Quantity{Value: i[1]}})
		}
		return o
	}
	a := of([2]float64{1, 3}, [2]float64{5, 6})
	qt.Check(t, qt.Equals(a.Overlap(of([2]float64{3, 4}, [2]float64{4, 5})), "overlap"))
	qt.Check(t, qt.Equals(a.Overlap(of([2]float64{3, 4}, [2]float64{7, 8})), "apart"))
	qt.Check(t, qt.Equals(a.Overlap(of([2]float64{0, 0.5}, [2]float64{5, 6})), "apart"))
	qt.Check(t, qt.Equals(a.Overlap(of([2]float64{1, 3})), ""))
	qt.Check(t, qt.Equals(a.Overlap((&SeedsSummary{}).Outcome(a)), ""))
}

// The seed that is drawn is the closest to the medians, also where another is closer in one value;
// a seed without a value is as far off as one can be, and later ones than the kept are not drawn.
func TestTypicalSeed(t *testing.T) {
	none := math.NaN()
	many := make([][]float64, KeptSeeds+1)
	for i := range many {
		many[i] = []float64{float64(KeptSeeds+1) - 2*float64(i%2)} // half are 10, half 8
	}
	many[KeptSeeds] = []float64{9} // the median, but too late
	for name, c := range map[string]struct {
		seeds [][]float64 // each seed's values
		want  int
	}{
		"the median":        {[][]float64{{1}, {9}, {5}}, 2},
		"all are the same":  {[][]float64{{1, 2}, {1, 2}}, 0},
		"in both values":    {[][]float64{{5, 90}, {9, 50}, {6, 55}, {1, 10}, {4, 60}}, 2},
		"one has no value":  {[][]float64{{none, 5}, {9, 4}, {8, 5}}, 2},
		"none has a value":  {[][]float64{{none}, {none}}, 0},
		"not after the 9th": {many, 0},
	} {
		s := &SeedsSummary{}
		for _, values := range c.seeds {
			var of []CompareValue
			for _, v := range values {
				one := CompareValue{Measured: ns(v)}
				if math.IsNaN(v) {
					one.Err = errors.New("not reached")
				}
				of = append(of, one)
			}
			s.Seeds = append(s.Seeds, Judged{Compared: []CompareOutcome{{Values: of}}})
		}
		qt.Check(t, qt.Equals(s.Typical(), c.want), qt.Commentf("%s", name))
	}
	var expected []Judged
	for _, v := range []float64{1, 9, 5} {
		expected = append(expected, Judged{Runs: []JudgedRun{{Outcomes: []Outcome{
			{Measured: quantities(v)}, {Err: errors.New("not reached")}}}}})
	}
	qt.Check(t, qt.Equals((&SeedsSummary{Seeds: expected}).Typical(), 2))
}
