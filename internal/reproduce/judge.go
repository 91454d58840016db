// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sweep"
)

// Verdict says whether a claim holds.
type Verdict string

// The values of [Verdict].
const (
	Met    Verdict = "met"     // the whole interval is within the paper's band, with all seeds
	NotMet Verdict = "not met" // part of it is not, or seeds are missing
	NotRun Verdict = "not run"
	TooFew Verdict = "open" // fewer than minSeeds say something
)

// Estimate is what runs say of a claim: a statistic over the seeds, and its 95% interval. Times
// that were not reached are infinite.
type Estimate struct {
	Seeds            int // with a value
	Missing          int // seeds of valid runs without one
	Invalid          int // seeds with a run that can't be believed
	Nothing          int // seeds whose ratio is of nothing to nothing: no evidence
	Value, Low, High float64
	Unit             config.Unit

	ran experiment.Seeds // seeds with runs
}

// Row is a claim with what came out.
type Row struct {
	Figure  *Figure
	Claim   *Claim
	Results map[experiment.Engine]*Estimate // those that ran
	Verdict Verdict
	// Declared is what the simulation says with the declared parameters, if it ran with them, and
	// Fitted the parameters that the row's other runs have another value of.
	Declared        *Estimate
	DeclaredVerdict Verdict
	Fitted          []string

	quick bool
}

// judge returns a row for each claim of the figure. Results has what each engine measured; the
// simulation decides, or Linux where the simulation does not run the figure.
func judge(
	f *Figure, plans map[experiment.Engine]*Plan,
	results map[experiment.Engine]*sweep.Results,
) []Row {
	var rows []Row
	for i := range f.Claims {
		row := Row{Figure: f, Claim: &f.Claims[i], Verdict: NotRun,
			Results: map[experiment.Engine]*Estimate{}}
		for engine, res := range results {
			if e := plans[engine].estimate(i, res); e != nil {
				row.Results[engine] = e
			}
		}
		if p := plans[f.decides()]; p != nil {
			row.quick = p.Quick
		}
		if e := row.Results[f.decides()]; e != nil {
			row.Verdict = e.verdict(row.Claim)
		}
		rows = append(rows, row)
	}
	return rows
}

// decides returns the engine whose runs decide the verdicts.
func (f *Figure) decides() experiment.Engine {
	if f.Sim == nil {
		return experiment.EngineKernel
	}
	return experiment.EngineSim
}

// minSeeds is how many seeds a verdict needs: an interval of fewer says nothing.
const minSeeds = 5

// verdict holds the interval against the claim's band. Some of the seeds alone meet no claim: that
// the others have no value, or an INVALID run, may be due to what the claim is about. A time that
// was never reached meets none either: no paper has such a number. Ratios of nothing to nothing do
// not count as seeds, and leave open what the others meet.
func (e *Estimate) verdict(c *Claim) Verdict {
	met := e.Missing == 0 && e.Invalid == 0 && c.holds(e.Low, e.High)
	switch {
	case e.Seeds+e.Missing+e.Invalid < minSeeds, met && e.Nothing > 0:
		return TooFew
	case met:
		return Met
	default:
		return NotMet
	}
}

// holds reports whether an interval is within the band. What is less or more is not the same.
func (c *Claim) holds(low, high float64) bool {
	switch {
	case math.IsInf(high, 1):
		return false
	case c.Rule == RuleLess:
		return high < 1
	case c.Rule == RuleMore:
		return low > 1
	}
	return (c.Min == nil || low >= c.Min.Value) && (c.Max == nil || high <= c.Max.Value)
}

// seedValue is what the runs of one seed say.
type seedValue struct{ value, base float64 } // base is 1 if the claim is no ratio

// isNothing reports whether neither of two schemes has what the ratio is of, such as PAUSE, or
// neither reached what it waits for.
func (v seedValue) isNothing() bool {
	return v.value == v.base && (v.value == 0 || math.IsInf(v.value, 1))
}

// estimate returns what the results say of the i-th claim; nil if its scheme or case did not run.
func (p *Plan) estimate(i int, res *sweep.Results) *Estimate {
	c := &p.Figure.Claims[i]
	e := &Estimate{Unit: c.unit()}
	var values []seedValue
	for _, seed := range p.Part.Seeds {
		v, ran, err := p.valueOf(i, res, seed, c.Scheme, c.Case)
		if !ran {
			continue
		}
		e.ran = append(e.ran, seed)
		one := seedValue{v, 1}
		if err == nil && c.RelativeTo != nil {
			one.base, ran, err = p.leastOf(i, res, seed)
		}
		switch {
		case !ran:
		case errors.Is(err, errInvalid):
			e.Invalid++
		case err != nil:
			e.Missing++
		default:
			values = append(values, one)
		}
	}
	values, e.Nothing = withEvidence(c, values)
	e.Seeds = len(values)
	if e.Seeds+e.Missing+e.Invalid+e.Nothing == 0 {
		return nil
	}
	if e.Seeds > 0 {
		e.summarise(values, c, p.lengths(c))
	}
	return e
}

// withEvidence returns the seeds that say something of a claim, and how many do not, as their ratio
// is of nothing to nothing. A ratio of means needs one seed that has something.
func withEvidence(c *Claim, values []seedValue) (kept []seedValue, dropped int) {
	if c.RelativeTo == nil {
		return values, 0
	}
	kept = slices.DeleteFunc(slices.Clone(values), seedValue.isNothing)
	if c.Statistic == Mean && len(kept) > 0 {
		return values, 0
	}
	return kept, len(values) - len(kept)
}

// lengths returns how many times the length of the plan's runs the claim's share is for.
func (p *Plan) lengths(c *Claim) float64 {
	if c.AtLength == 0 {
		return 1
	}
	return float64(c.AtLength) / float64(p.Sweep.Points[0].Experiment.Duration)
}

// longer returns the share of runs that are so many times as long, if what happens to a share of
// runs is as likely at any time.
func longer(share, lengths float64) float64 { return 1 - math.Pow(1-share, lengths) }

// errInvalid is for runs that can't be believed.
var errInvalid = errors.New("the run is INVALID")

// valueOf returns the claim's metric in the runs of a seed and scheme: of one case or, without one,
// of all. It reports whether there are any.
func (p *Plan) valueOf(i int, res *sweep.Results, seed uint64, scheme, ofCase string) (
	value float64, ran bool, err error,
) {
	var values []float64
	for _, row := range res.Rows {
		if row.Seed != seed || row.Scheme != scheme ||
			ofCase != "" && res.Sweep.Points[row.Point].Case != ofCase {
			continue
		}
		ran = true
		v := row.Values[p.metrics[i]]
		switch {
		case row.Verdict == result.Invalid:
			return 0, true, errInvalid
		case errors.Is(v.Err, result.ErrNotReached):
			values = append(values, math.Inf(1))
		case v.Err != nil:
			err = v.Err
		default:
			values = append(values, v.Value)
		}
	}
	if !ran || err != nil {
		return 0, ran, err
	}
	return reduce(p.Figure.Claims[i].Over, values), true, nil
}

// reduce makes one value of those of several cases.
func reduce(over experiment.Over, values []float64) float64 {
	switch over {
	case experiment.OverMin:
		return slices.Min(values)
	case experiment.OverMean:
		return stat.Mean(values, nil)
	default:
		return slices.Max(values)
	}
}

// leastOf returns the value that the i-th claim's is a ratio to.
func (p *Plan) leastOf(i int, res *sweep.Results, seed uint64) (float64, bool, error) {
	base := p.Figure.Claims[i].RelativeTo
	least, found := math.Inf(1), false
	for _, scheme := range base.Schemes {
		v, ran, err := p.valueOf(i, res, seed, scheme, base.Case)
		if err != nil {
			return 0, true, err
		}
		if ran {
			least, found = min(least, v), true
		}
	}
	return least, found, nil
}

// summarise sets the statistic and its interval.
func (e *Estimate) summarise(values []seedValue, c *Claim, lengths float64) {
	statistic := medianOf
	switch {
	case c.Statistic == Mean && lengths != 1:
		statistic = func(values []seedValue) float64 { return longerOf(values, c, lengths) }
	case c.Statistic == Mean:
		statistic = meanOf
	}
	e.Value = statistic(values)
	sample := make([]seedValue, len(values))
	e.Low, e.High = result.Bootstrap(len(values), func(drawn []int) float64 {
		for k, i := range drawn {
			sample[k] = values[i]
		}
		return statistic(sample)
	})
	if c.Statistic == Mean && c.RelativeTo == nil && c.Metric == experiment.Deadlock {
		low, high := wilson(meanOf(values), float64(len(values)))
		e.Low, e.High = longer(low, lengths), longer(high, lengths)
	}
}

// longerOf is meanOf for shares of runs that are so many times as long.
func longerOf(values []seedValue, c *Claim, lengths float64) float64 {
	var value, base float64
	for _, v := range values {
		value, base = value+v.value, base+v.base
	}
	n := float64(len(values))
	if c.RelativeTo == nil {
		return longer(value/n, lengths)
	}
	return ratio(longer(value/n, lengths), longer(base/n, lengths))
}

// medianOf returns the median of the seeds' ratios.
func medianOf(values []seedValue) float64 {
	ratios := make([]float64, len(values))
	for i, v := range values {
		ratios[i] = ratio(v.value, v.base)
	}
	slices.Sort(ratios)
	return result.Median(ratios)
}

// meanOf returns the ratio of the seeds' means.
func meanOf(values []seedValue) float64 {
	var value, base float64
	for _, v := range values {
		value, base = value+v.value, base+v.base
	}
	return ratio(value, base)
}

// ratio returns a / b. A sample of seeds in which neither scheme has anything widens an interval
// of means to 1.
func ratio(a, b float64) float64 {
	if a == b {
		return 1
	}
	return a / b
}

// wilson returns the 95% interval of a share of n runs, which is not empty if all or none have it.
func wilson(share, n float64) (low, high float64) {
	const z = 1.959964
	middle := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// String returns the estimate as a table prints it: value, interval and number of seeds.
func (e *Estimate) String() string {
	if e.Seeds == 0 {
		return strings.TrimPrefix(e.flaws(), "; ")
	}
	text := e.format(e.Value)
	if low, high := e.format(e.Low), e.format(e.High); low != text || high != text {
		text += fmt.Sprintf(" [%s to %s]", low, high)
	}
	return fmt.Sprintf("%s, n = %d%s", text, e.Seeds, e.flaws())
}

func (e *Estimate) flaws() string {
	text := ""
	if e.Missing > 0 {
		text += fmt.Sprintf("; %d without a value", e.Missing)
	}
	if e.Invalid > 0 {
		text += fmt.Sprintf("; %d INVALID", e.Invalid)
	}
	if e.Nothing > 0 {
		text += fmt.Sprintf("; %d of nothing to nothing", e.Nothing)
	}
	return text
}

func (e *Estimate) format(v float64) string {
	switch {
	case math.IsInf(v, 1) && e.Unit == config.UnitTime:
		return "never"
	case math.IsInf(v, 1):
		return "infinite"
	case e.Unit == config.UnitCount && v != math.Trunc(v) && math.Abs(v) >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64) // not 1.21e+03 beside 1209
	case e.Unit == config.UnitCount && v != math.Trunc(v):
		return fmt.Sprintf("%.3g", v)
	default:
		return config.Quantity{Value: v, Unit: e.Unit}.String()
	}
}
