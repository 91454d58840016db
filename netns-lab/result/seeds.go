// SPDX-License-Identifier: Apache-2.0

package result

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// Spread is a quantity over several seeds: its median, and the 95% confidence interval of that.
type Spread struct {
	Seeds             int // with a value
	Median, Low, High experiment.Quantity
}

const (
	resamples  = 2000
	confidence = 0.95
)

// SpreadOf returns the spread of a quantity's values, at least one. The interval is that of the
// percentile bootstrap: the medians of random samples of the values, drawn with replacement. The
// same values always give the same interval.
func SpreadOf(values []experiment.Quantity) Spread {
	sorted := make([]float64, len(values))
	for i, v := range values {
		sorted[i] = v.Value
	}
	slices.Sort(sorted)
	sample := make([]float64, len(sorted))
	low, high := Bootstrap(len(sorted), func(drawn []int) float64 {
		for k, i := range drawn {
			sample[k] = sorted[i]
		}
		slices.Sort(sample)
		return Median(sample)
	})
	of := func(value float64) experiment.Quantity {
		q := values[0]
		q.Value = value
		return q
	}
	return Spread{
		Seeds: len(values), Median: of(Median(sorted)), Low: of(low), High: of(high),
	}
}

// Bootstrap returns the 95% interval of a statistic of n values, at least one, by the percentile
// bootstrap: the statistic of random samples, which are the indices of values, drawn with
// replacement. The same statistic of as many values is always computed of the same samples.
func Bootstrap(n int, statistic func(drawn []int) float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	values, drawn := make([]float64, resamples), make([]int, n)
	for i := range values {
		for k := range drawn {
			drawn[k] = rng.IntN(n)
		}
		values[i] = statistic(drawn)
	}
	slices.Sort(values)
	outside := int(resamples * (1 - confidence) / 2)
	return values[outside], values[resamples-1-outside]
}

// Median returns the middle of sorted values, at least one.
func Median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// String returns the spread as text.
func (s Spread) String() string {
	if s.Low == s.High {
		return s.Median.String()
	}
	return fmt.Sprintf("%s [%s to %s]", s.Median, s.Low, s.High)
}

// among returns the spread as text, with the number of seeds that have no value.
func (s Spread) among(missing int) string {
	if missing == 0 {
		return s.String()
	}
	return s.String() + notIn(missing, s.Seeds+missing)
}

// notIn says that some seeds have no value.
func notIn(missing, seeds int) string {
	return fmt.Sprintf(" (not in %d of %d seeds)", missing, seeds)
}

// fewMissing reports whether most seeds have values.
func fewMissing(missing, seeds int) bool { return 2*missing < seeds }

// SeedsOutcome is an expectation over several seeds.
type SeedsOutcome struct {
	Expect experiment.Expect
	Case   string
	Scheme string
	// Spreads has one for each link, port or flow of the expectation, or one for the run.
	Spreads []Spread
	// Missing says how many seeds have no value, and Err why one has none.
	Missing int
	Err     error
	// Pass reports whether all medians are within the bounds, and most seeds have values.
	Pass bool

	seeds int
	lists [][]experiment.Quantity
}

// SeedsSummary collects the expectations and comparisons of runs with several seeds.
type SeedsSummary struct {
	outcomes []*SeedsOutcome
	byName   map[string]*SeedsOutcome
	compared [][]CompareOutcome // of each seed, in the order of the experiment's
}

// NewSeedsSummary returns an empty summary.
func NewSeedsSummary() *SeedsSummary { return &SeedsSummary{byName: map[string]*SeedsOutcome{}} }

// Compare adds the comparisons between all runs of one seed.
func (s *SeedsSummary) Compare(e *experiment.Experiment, runs []*Run) {
	s.compared = append(s.compared, EvaluateCompare(e, runs))
}

// Comparisons returns the comparisons with the median of each scheme, which is what bounds and
// relations are judged by. A scheme without a value in most seeds has none.
func (s *SeedsSummary) Comparisons() []CompareOutcome {
	if len(s.compared) == 0 {
		return nil
	}
	all := slices.Clone(s.compared[0])
	for i, o := range all {
		var seeds []CompareOutcome
		for _, of := range s.compared {
			seeds = append(seeds, of[i])
		}
		o.Values = slices.Clone(o.Values)
		for k := range o.Values {
			o.Values[k] = overSeeds(seeds, o.Values[k].Scheme)
		}
		o.judge()
		all[i] = o
	}
	return all
}

// overSeeds returns the value of a scheme in a comparison of several seeds.
func overSeeds(seeds []CompareOutcome, scheme string) CompareValue {
	v := CompareValue{Scheme: scheme}
	var values []experiment.Quantity
	for _, o := range seeds {
		for _, one := range o.Values {
			switch {
			case one.Scheme != scheme:
			case one.Err != nil:
				v.Missing, v.Err = v.Missing+1, one.Err
			default:
				values = append(values, one.Measured)
			}
		}
	}
	if !fewMissing(v.Missing, v.Missing+len(values)) {
		return v
	}
	v.Spread, v.Err = new(SpreadOf(values)), nil
	v.Measured = v.Spread.Median
	return v
}

// Add adds a run of one seed. Runs may come in any order of seeds.
func (s *SeedsSummary) Add(e *experiment.Experiment, r *Run) {
	for i, o := range Evaluate(e, r) {
		name := fmt.Sprint(r.Manifest.Case, "/", r.Manifest.Scheme, "/", i)
		x := s.byName[name]
		if x == nil {
			x = &SeedsOutcome{Expect: o.Expect, Case: r.Manifest.Case, Scheme: o.Scheme}
			s.byName[name] = x
			s.outcomes = append(s.outcomes, x)
		}
		x.add(o)
	}
}

func (o *SeedsOutcome) add(one Outcome) {
	o.seeds++
	if one.Err != nil {
		o.Missing++
		o.Err = one.Err
		return
	}
	for len(o.lists) < len(one.Measured) {
		o.lists = append(o.lists, nil)
	}
	for i, v := range one.Measured {
		o.lists[i] = append(o.lists[i], v)
	}
}

// Outcomes returns what was expected, in the order of the first seed's runs.
func (s *SeedsSummary) Outcomes() []SeedsOutcome {
	var all []SeedsOutcome
	for _, x := range s.outcomes {
		o := *x
		o.Pass = fewMissing(o.Missing, o.seeds) && len(o.lists) > 0
		for _, values := range o.lists {
			spread := SpreadOf(values)
			o.Spreads = append(o.Spreads, spread)
			o.Pass = o.Pass &&
				within([]experiment.Quantity{spread.Median}, o.Expect.Min, o.Expect.Max)
		}
		all = append(all, o)
	}
	return all
}

// Value returns the medians with their intervals as text.
func (o SeedsOutcome) Value() string {
	if len(o.Spreads) == 0 {
		return formatValues(nil, o.Err)
	}
	text := ""
	for i, s := range o.Spreads {
		if i > 0 {
			text += ", "
		}
		text += s.String()
	}
	if o.Missing > 0 {
		text += notIn(o.Missing, o.seeds)
	}
	return text
}

// Bound returns the bounds as text.
func (o SeedsOutcome) Bound() string { return FormatBound(o.Expect.Min, o.Expect.Max) }

// Outcome returns what was expected as in another summary, of the same case and scheme.
func (s *SeedsSummary) Outcome(like SeedsOutcome) SeedsOutcome {
	for _, o := range s.Outcomes() {
		if o.Case == like.Case && o.Scheme == like.Scheme && o.Expect.What == like.Expect.What {
			return o
		}
	}
	return SeedsOutcome{Err: errors.New("it was not run")}
}

// Overlap says whether all 95% intervals of two outcomes overlap; "" if either has none.
func (o SeedsOutcome) Overlap(other SeedsOutcome) string {
	if len(o.Spreads) == 0 || len(o.Spreads) != len(other.Spreads) {
		return ""
	}
	for i, a := range o.Spreads {
		b := other.Spreads[i]
		if a.High.Value < b.Low.Value || b.High.Value < a.Low.Value {
			return "apart"
		}
	}
	return "overlap"
}
