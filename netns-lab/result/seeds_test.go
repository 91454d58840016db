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
	o := SeedsOutcome{Expect: experiment.Expect{Max: &limit}}
	for _, v := range []float64{5, 9, 5} {
		o.add(Outcome{Measured: quantities(v)})
	}
	o.add(Outcome{Err: errors.New("not reached")})
	summary := &SeedsSummary{outcomes: []*SeedsOutcome{&o}}
	got := summary.Outcomes()[0]
	qt.Check(t, qt.IsTrue(got.Pass))
	qt.Check(t, qt.Equals(got.Missing, 1))
	for range 3 {
		o.add(Outcome{Err: errors.New("not reached")})
	}
	qt.Check(t, qt.IsFalse(summary.Outcomes()[0].Pass))
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
	qt.Check(t, qt.Equals(a.Overlap(NewSeedsSummary().Outcome(a)), ""))
}
