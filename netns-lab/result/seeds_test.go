// SPDX-License-Identifier: Apache-2.0

package result

import (
	"errors"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
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
