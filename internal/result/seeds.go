// SPDX-License-Identifier: Apache-2.0

package result

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
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

// String returns the spread as text. An interval whose ends are written alike says nothing.
func (s Spread) String() string {
	if s.Low.String() == s.High.String() {
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
	// Objects names what each value is of, as in [Outcome].
	Objects []string
	// Spreads has one for each link, port or flow of the expectation, or one for the run.
	Spreads []Spread
	// Missing says how many seeds have no value, and Err why one has none.
	Missing int
	Err     error
	// Failing are the seeds that are out of bounds, or have no value, if each must be met:
	// [experiment.Metric.EachSeed].
	Failing []uint64
	// Pass reports whether all medians are within the bounds, most seeds have values, and none is
	// failing.
	Pass bool
	// Needs is the duration that the seeds would need to be judged; 0 if they were long enough.
	Needs experiment.Duration

	seeds int
	short shortSeeds
	lists [][]experiment.Quantity
}

// SeedsMetric is one of the experiment's metrics over several seeds.
type SeedsMetric struct {
	experiment.NamedMetric
	Case, Scheme string
	Values       []experiment.Quantity
	Spread       *Spread // nil without any value
	Missing      int     // seeds without a value
	Err          error   // why one has none
}

// Value returns the median with its interval as text, or why there is none.
func (m SeedsMetric) Value() string {
	if m.Spread == nil {
		return formatValues(nil, m.Err)
	}
	return m.Spread.among(m.Missing)
}

// SeedsSummary sums up what an experiment's runs with several seeds came to, on one engine.
type SeedsSummary struct {
	Seeds []Judged // in the order of the seeds given
}

// Engine returns what ran all seeds.
func (s *SeedsSummary) Engine() experiment.Engine {
	return s.Seeds[0].Runs[0].Manifest.RanOn()
}

// KeptSeeds is how many seeds [SeedsSummary.Typical] chooses from: their runs are kept in memory.
const KeptSeeds = 9

// Fails reports whether the seed does not meet what each must.
func (j Judged) Fails() bool {
	return slices.ContainsFunc(j.Runs, func(r JudgedRun) bool {
		return slices.ContainsFunc(r.Outcomes, Outcome.fails)
	})
}

// Typical returns the index of the seed, among the first [KeptSeeds], whose values are the closest
// to the medians of all. Its run is the one to draw.
func (s *SeedsSummary) Typical() int {
	values := make([][]float64, len(s.Seeds))
	for i, seed := range s.Seeds {
		values[i] = seed.values()
	}
	off := make([]float64, min(len(s.Seeds), KeptSeeds))
	for k := range values[0] {
		var known []float64
		for _, of := range values {
			if !math.IsNaN(of[k]) {
				known = append(known, of[k])
			}
		}
		if len(known) == 0 {
			continue
		}
		slices.Sort(known)
		median, width := Median(known), known[len(known)-1]-known[0]
		for i := range off {
			switch v := values[i][k]; {
			case math.IsNaN(v):
				off[i]++
			case width > 0:
				off[i] += math.Abs(v-median) / width
			}
		}
	}
	return slices.Index(off, slices.Min(off))
}

// values returns what a seed's runs came to, as many numbers for each seed: what is compared and
// the metrics or, if there are none, the first value of each expectation. What has no value is NaN.
func (j Judged) values() []float64 {
	var all []float64
	add := func(v experiment.Quantity, err error) {
		if err != nil {
			v.Value = math.NaN()
		}
		all = append(all, v.Value)
	}
	for _, c := range j.Compared {
		for _, v := range c.Values {
			add(v.Measured, v.Err)
		}
	}
	for _, r := range j.Runs {
		for _, m := range r.Metrics {
			add(m.Measured, m.Err)
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, r := range j.Runs {
		for _, o := range r.Outcomes {
			add(append(o.Measured, experiment.Quantity{Value: math.NaN()})[0], o.Err)
		}
	}
	return all
}

// Comparisons returns the comparisons with the median of each scheme, which is what bounds and
// relations are judged by. A scheme without a value in most seeds has none.
func (s *SeedsSummary) Comparisons() []CompareOutcome {
	if len(s.Seeds) == 0 {
		return nil
	}
	all := slices.Clone(s.Seeds[0].Compared)
	for i, o := range all {
		var seeds []CompareOutcome
		for _, of := range s.Seeds {
			seeds = append(seeds, of.Compared[i])
		}
		o.Values = slices.Clone(o.Values)
		for k := range o.Values {
			o.Values[k] = overSeeds(seeds, o.Values[k].Scheme)
		}
		o.Judge()
		for k := range o.Values {
			if v := &o.Values[k]; v.Judged && !v.Pass {
				v.Needs = neededOverSeeds(seeds, *v)
			}
		}
		all[i] = o
	}
	return all
}

// overSeeds returns the value of a scheme in a comparison of several seeds.
func overSeeds(seeds []CompareOutcome, scheme string) CompareValue {
	v := CompareValue{Scheme: scheme}
	var cases []CaseValue // of all seeds
	for _, o := range seeds {
		for _, one := range o.Values {
			if one.Scheme != scheme {
				continue
			}
			cases = append(cases, one.Cases...)
			if one.Err != nil {
				v.Missing, v.Err = v.Missing+1, one.Err
				continue
			}
			v.Seeds = append(v.Seeds, one.Measured)
		}
	}
	v.Cases = casesOverSeeds(cases)
	if !fewMissing(v.Missing, v.Missing+len(v.Seeds)) {
		return v
	}
	v.Spread, v.Err = new(SpreadOf(v.Seeds)), nil
	v.Measured = v.Spread.Median
	return v
}

// neededOverSeeds returns the duration that the seeds of a comparison would need before it can
// judge a scheme.
func neededOverSeeds(seeds []CompareOutcome, v CompareValue) experiment.Duration {
	var short shortSeeds
	for _, o := range seeds {
		for _, one := range o.Values {
			if one.Scheme == v.Scheme {
				short.add(one.Needs)
			}
		}
	}
	return short.needed(v.Missing+len(v.Seeds), v.Missing, [][]experiment.Quantity{v.Seeds},
		v.Min, v.Max)
}

// casesOverSeeds returns the median of each case, or an error if most seeds have none.
func casesOverSeeds(all []CaseValue) []CaseValue {
	var cases []CaseValue
	for _, one := range all {
		known := func(c CaseValue) bool { return c.Case == one.Case }
		if slices.ContainsFunc(cases, known) {
			continue
		}
		c, missing := CaseValue{Case: one.Case}, 0
		var values []experiment.Quantity
		for _, of := range all {
			switch {
			case !known(of):
			case of.Err != nil:
				c.Err, missing = of.Err, missing+1
			default:
				values = append(values, of.Measured)
			}
		}
		if fewMissing(missing, missing+len(values)) {
			c.Measured, c.Err = SpreadOf(values).Median, nil
		}
		cases = append(cases, c)
	}
	return cases
}

func (o *SeedsOutcome) add(seed uint64, one Outcome) {
	o.seeds++
	if one.fails() {
		o.Failing = append(o.Failing, seed)
	}
	if one.Err != nil {
		o.Missing++
		o.Err = one.Err
		o.short.add(one.Needs)
		return
	}
	o.Objects = one.Objects
	for len(o.lists) < len(one.Measured) {
		o.lists = append(o.lists, nil)
	}
	for i, v := range one.Measured {
		o.lists[i] = append(o.lists[i], v)
	}
}

// Outcomes returns what was expected, in the order of the first seed's runs.
func (s *SeedsSummary) Outcomes() []SeedsOutcome {
	var all []*SeedsOutcome
	byName := map[string]*SeedsOutcome{}
	for _, seed := range s.Seeds {
		for _, r := range seed.Runs {
			for i, o := range r.Outcomes {
				name := fmt.Sprint(r.Manifest.Case, "/", r.Manifest.Scheme, "/", i)
				x := byName[name]
				if x == nil {
					x = &SeedsOutcome{Expect: o.Expect, Case: r.Manifest.Case, Scheme: o.Scheme}
					byName[name], all = x, append(all, x)
				}
				x.add(seed.Seed, o)
			}
		}
	}
	var judged []SeedsOutcome
	for _, o := range all {
		o.judge()
		judged = append(judged, *o)
	}
	return judged
}

// judge holds the medians against the bounds.
func (o *SeedsOutcome) judge() {
	o.Pass = fewMissing(o.Missing, o.seeds) && len(o.lists) > 0 && len(o.Failing) == 0
	for _, values := range o.lists {
		spread := SpreadOf(values)
		o.Spreads = append(o.Spreads, spread)
		o.Pass = o.Pass &&
			within([]experiment.Quantity{spread.Median}, o.Expect.Min, o.Expect.Max)
	}
	if !o.Pass {
		o.Needs = o.short.needed(o.seeds, o.Missing, o.lists, o.Expect.Min, o.Expect.Max)
	}
}

// Metrics returns the metrics of each run, in the order of the first seed's runs.
func (s *SeedsSummary) Metrics() []SeedsMetric {
	var all []SeedsMetric
	for _, seed := range s.Seeds {
		for _, r := range seed.Runs {
			for _, m := range r.Metrics {
				all = addMetric(all, r.Manifest, m)
			}
		}
	}
	for i := range all {
		if len(all[i].Values) > 0 {
			all[i].Spread = new(SpreadOf(all[i].Values))
		}
	}
	return all
}

func addMetric(all []SeedsMetric, run Manifest, m MetricValue) []SeedsMetric {
	i := slices.IndexFunc(all, func(x SeedsMetric) bool {
		return x.Case == run.Case && x.Scheme == run.Scheme && x.Name == m.Name
	})
	if i < 0 {
		i = len(all)
		all = append(all,
			SeedsMetric{NamedMetric: m.NamedMetric, Case: run.Case, Scheme: run.Scheme})
	}
	if m.Err != nil {
		all[i].Missing, all[i].Err = all[i].Missing+1, m.Err
		return all
	}
	all[i].Values = append(all[i].Values, m.Measured)
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
	return text + o.failing()
}

// failing names the first of the seeds that fail.
func (o SeedsOutcome) failing() string {
	const most = 5
	n := len(o.Failing)
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("; %d of %d fail: seed", n, o.seeds)
	for _, seed := range o.Failing[:min(n, most)] {
		text += fmt.Sprintf(" %d", seed)
	}
	if n > most {
		text += " ..."
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
