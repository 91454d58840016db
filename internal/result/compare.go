// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// CompareOutcome is the result of a comparison. It leaves out schemes that were not run.
type CompareOutcome struct {
	Compare experiment.Compare
	Number  int               // in the experiment's list, from 0 on
	Engine  experiment.Engine // which ran all that is compared
	Values  []CompareValue    // in the order of the experiment's schemes
	// Order and Ratios are the required relations between schemes; nil if the comparison requires
	// none, or none between the schemes that were run.
	Order, Ratios *Relation
	// Pass reports whether all judged schemes pass and all relations hold.
	Pass bool
}

// CompareValue is the result of one scheme in a comparison.
type CompareValue struct {
	Scheme string
	// Measured is the value over all links, ports or flows of all cases; with several seeds, their
	// median.
	Measured experiment.Quantity
	// Spread is that of several seeds, and Seeds has their values; nil of one. Missing says how
	// many seeds have no value.
	Spread  *Spread
	Seeds   []experiment.Quantity
	Missing int
	// Err says why the metric could not be measured. The scheme then does not pass.
	Err error
	// Cases has the value of each run, in the order of the runs.
	Cases []CaseValue
	// Paper is the paper's number; nil if it gives none.
	Paper *experiment.Quantity
	// Min and Max come from bounds or from the allowed distance to the paper's number; nil if none.
	Min, Max *experiment.Quantity
	// Judged reports whether the scheme can fail: it has a number of the paper or a bound, the
	// comparison lists it, or the comparison requires only ratios. Other schemes are only shown.
	Judged bool
	// Pass reports whether the value was measured and is within the bounds. Without bounds, a time
	// that was not reached passes too.
	Pass bool
	// Needs is the duration that its runs would need to be judged; 0 if they were long enough.
	Needs experiment.Duration
}

// CaseValue is the value of one case.
type CaseValue struct {
	Case     string
	Measured experiment.Quantity // over all links, ports or flows
	Err      error
}

// namedErr returns the error with the name of the case.
func (c CaseValue) namedErr() error {
	if c.Err == nil || c.Case == "" {
		return c.Err
	}
	return fmt.Errorf("%s: %w", c.Case, c.Err)
}

// Relation is a required relation between schemes.
type Relation struct {
	Asked, Measured string // as text
	Holds           bool
}

// EvaluateCompare evaluates the experiment's comparisons, for each engine on its own. It leaves out
// those without any run.
func EvaluateCompare(e *experiment.Experiment, runs []*Run) []CompareOutcome {
	var outcomes []CompareOutcome
	engines := EnginesOf(runs)
	for _, engine := range engines {
		of := slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool {
			return r.Manifest.RanOn() != engine
		})
		for _, o := range evaluateCompare(e, of) {
			o.Engine = engine
			if len(engines) > 1 {
				o.Compare.What += fmt.Sprintf(" (%s)", engine)
			}
			outcomes = append(outcomes, o)
		}
	}
	return outcomes
}

// evaluateCompare evaluates the comparisons of the runs of one engine.
func evaluateCompare(e *experiment.Experiment, runs []*Run) []CompareOutcome {
	var outcomes []CompareOutcome
	for i, c := range e.Compare {
		o := CompareOutcome{Compare: c, Number: i}
		compared := comparedRuns(c, runs)
		for _, scheme := range e.Schemes {
			if v, ok := compareScheme(c, scheme, compared); ok {
				o.Values = append(o.Values, v)
			}
		}
		if len(o.Values) == 0 {
			continue
		}
		o.Judge()
		for i := range o.Values {
			if v := &o.Values[i]; v.Judged && !v.Pass {
				v.Needs = needed(e, c.Measure, v.Max, v.Err)
			}
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// Judge judges all values, and the relations between them.
func (o *CompareOutcome) Judge() {
	o.Pass = true
	for i := range o.Values {
		v := &o.Values[i]
		v.judge(o.Compare)
		o.Pass = o.Pass && (v.Pass || !v.Judged)
	}
	o.Order, o.Ratios = o.order(), o.ratios()
	for _, relation := range o.Relations() {
		o.Pass = o.Pass && relation.Holds
	}
}

// OverSeeds reports whether the values are medians over several seeds.
func (o CompareOutcome) OverSeeds() bool {
	return slices.ContainsFunc(o.Values, func(v CompareValue) bool { return v.Spread != nil })
}

// Relations returns the required relations between schemes.
func (o CompareOutcome) Relations() []Relation {
	var relations []Relation
	for _, relation := range []*Relation{o.Order, o.Ratios} {
		if relation != nil {
			relations = append(relations, *relation)
		}
	}
	return relations
}

// comparedRuns returns the runs that the comparison covers. With completed_by_all, it removes the
// completions of flows that did not complete in every run of their case.
func comparedRuns(c experiment.Compare, runs []*Run) []*Run {
	var compared []*Run
	runCount := make(map[string]int)  // by case
	completed := make(map[string]int) // number of runs in which a flow completed, by case and flow
	for _, r := range runs {
		m := r.Manifest
		if c.Schemes != nil && !slices.Contains(c.Schemes, m.Scheme) ||
			c.Cases != nil && !slices.Contains(c.Cases, m.Case) {
			continue
		}
		compared = append(compared, r)
		runCount[m.Case]++
		for _, flow := range r.Completions {
			if flow.FCTNs != nil {
				completed[LabelOf(m.Case, flow.Flow)]++
			}
		}
	}
	if !c.CompletedByAll {
		return compared
	}
	for i, r := range compared {
		caseName := r.Manifest.Case
		reduced := *r
		reduced.Completions = slices.DeleteFunc(slices.Clone(r.Completions),
			func(flow Completion) bool {
				return completed[LabelOf(caseName, flow.Flow)] < runCount[caseName]
			})
		compared[i] = &reduced
	}
	return compared
}

// compareScheme measures a scheme in its runs. It returns false if there are none.
func compareScheme(c experiment.Compare, scheme string, runs []*Run) (v CompareValue, ok bool) {
	v.Scheme = scheme
	var all []experiment.Quantity
	for _, r := range runs {
		m := r.Manifest
		if m.Scheme != scheme {
			continue
		}
		values, err := r.Measure(c.Measure)
		value := CaseValue{Case: m.Case, Err: err}
		if err == nil {
			value.Measured = aggregate(c.Over, values)
			all = append(all, values...)
		}
		v.Cases = append(v.Cases, value)
		v.Err = cmp.Or(v.Err, value.namedErr())
	}
	if len(v.Cases) == 0 {
		return CompareValue{}, false
	}
	if v.Err == nil {
		v.Measured = aggregate(c.Over, all)
	}
	return v, true
}

// MeasureOne returns one value of a metric over all its links, ports or flows.
func (r *Run) MeasureOne(m experiment.Measure, over experiment.Over) (experiment.Quantity, error) {
	values, err := r.Measure(m)
	if err != nil {
		return experiment.Quantity{}, err
	}
	return oneOf(m, over, values)
}

// oneOf reduces the values of a metric to one.
func oneOf(
	m experiment.Measure, over experiment.Over, values []experiment.Quantity,
) (experiment.Quantity, error) {
	if len(values) == 0 {
		return experiment.Quantity{}, fmt.Errorf("metric %s needs flows, links or ports", m.Metric)
	}
	return aggregate(over, values), nil
}

// aggregate reduces one or more values to one.
func aggregate(over experiment.Over, values []experiment.Quantity) experiment.Quantity {
	var plain []float64
	for _, v := range values {
		plain = append(plain, v.Value)
	}
	one := values[0]
	switch over {
	case experiment.OverMin:
		one.Value = slices.Min(plain)
	case experiment.OverMean:
		one.Value = mean(plain)
	case experiment.OverP50:
		one.Value = percentile(plain, 0.5)
	case experiment.OverP99:
		one.Value = p99(plain)
	default:
		one.Value = slices.Max(plain)
	}
	return one
}

// judge checks the value against the bounds of its scheme or, without bounds, against the paper's
// number.
func (v *CompareValue) judge(c experiment.Compare) {
	paper, inPaper := c.Paper[v.Scheme]
	bounds, bounded := c.Bounds[v.Scheme]
	onlyRatios := len(c.Paper)+len(c.Bounds) == 0 && c.Ratios != nil
	v.Judged = c.Judges() && (inPaper || bounded || len(c.Schemes) > 0 || onlyRatios)
	if inPaper {
		v.Paper = &paper
	}
	switch {
	case bounded:
		v.Min, v.Max = bounds.Min, bounds.Max
	case inPaper && c.Within > 0:
		share := float64(c.Within)
		v.Min = &experiment.Quantity{Value: paper.Value * max(0, 1-share), Unit: paper.Unit}
		v.Max = &experiment.Quantity{Value: paper.Value * (1 + share), Unit: paper.Unit}
	}
	if v.Min == nil && v.Max == nil && errors.Is(v.Err, ErrNotReached) {
		v.Pass = true // only order and ratios judge a time that is longer than the run
		return
	}
	v.Pass = v.Err == nil && within([]experiment.Quantity{v.Measured}, v.Min, v.Max)
}

// Value returns the measured value as text, or the reason why there is none.
func (v CompareValue) Value() string {
	if v.Err == nil && v.Spread != nil {
		return v.Spread.among(v.Missing)
	}
	return formatValues([]experiment.Quantity{v.Measured}, v.Err)
}

// Bound returns the bounds as text; empty if there are none.
func (v CompareValue) Bound() string {
	return FormatBound(v.Min, v.Max)
}

// Ratio returns measured value / paper's number as text. It is empty if one of them is missing or
// the paper's number is 0.
func (v CompareValue) Ratio() string {
	if v.Err != nil || v.Paper == nil || v.Paper.Value == 0 {
		return ""
	}
	return formatFactor(v.Measured.Value / v.Paper.Value)
}

// Short returns the measured value in one or two words.
func (v CompareValue) Short() string {
	switch v.status() {
	case measured:
		return v.Measured.String()
	case notReached:
		return "not reached"
	default:
		return "not measured"
	}
}

// valueStatus says how much is known about a value, from most to least.
type valueStatus int

const (
	measured   valueStatus = iota
	notReached             // a time that is longer than the run
	unknown
)

func (v CompareValue) status() valueStatus {
	switch {
	case v.Err == nil:
		return measured
	case errors.Is(v.Err, ErrNotReached):
		return notReached
	default:
		return unknown
	}
}

// compareValues orders measured values by size, then times that were not reached, then unknown
// values.
func compareValues(a, b CompareValue) int {
	return cmp.Or(
		cmp.Compare(a.status(), b.status()), cmp.Compare(a.Measured.Value, b.Measured.Value))
}

// order checks that the schemes have the same order as the paper's numbers.
func (o CompareOutcome) order() *Relation {
	values := slices.DeleteFunc(slices.Clone(o.Values), func(v CompareValue) bool {
		return v.Paper == nil
	})
	if !o.Compare.Order || len(values) < 2 {
		return nil
	}
	slices.SortStableFunc(values, func(a, b CompareValue) int {
		return cmp.Compare(a.Paper.Value, b.Paper.Value)
	})
	order := &Relation{Asked: values[0].Scheme, Holds: true}
	for i, v := range values[1:] {
		sign := " = "
		if values[i].Paper.Value < v.Paper.Value {
			sign = " < "
		}
		order.Asked += sign + v.Scheme
		for _, earlier := range values[:i+1] {
			order.Holds = order.Holds &&
				(earlier.Paper.Value == v.Paper.Value || isLess(earlier, v))
		}
	}
	slices.SortStableFunc(values, compareValues)
	var words []string
	for _, v := range values {
		words = append(words, v.Scheme+" "+v.Short())
	}
	order.Measured = strings.Join(words, ", ")
	return order
}

// isLess reports whether a is less than b. For two times that are both longer than the run, which
// can't be compared, it returns true.
func isLess(a, b CompareValue) bool {
	switch {
	case a.status() == unknown || b.status() == unknown:
		return false
	case a.status() == notReached && b.status() == notReached:
		return true
	default:
		return compareValues(a, b) < 0
	}
}

// ratios checks that each judged scheme is at least the required factor times the base scheme.
func (o CompareOutcome) ratios() *Relation {
	asked := o.Compare.Ratios
	if asked == nil {
		return nil
	}
	to := slices.IndexFunc(o.Values, func(v CompareValue) bool { return v.Scheme == asked.To })
	ratios := &Relation{Asked: fmt.Sprintf("each at least %s times %s", asked.Min, asked.To),
		Holds: true}
	var words []string
	for i, v := range o.Values {
		if to < 0 || i == to || !v.Judged {
			continue
		}
		text, holds := ratio(v, o.Values[to], float64(asked.Min))
		words = append(words, v.Scheme+" "+text)
		ratios.Holds = ratios.Holds && holds
	}
	if len(words) == 0 {
		return nil
	}
	ratios.Measured = strings.Join(words, ", ")
	return ratios
}

// ratio returns v / to as text, and whether it is at least the required factor. A time that was not
// reached counts as the time for which the run was observed.
func ratio(v, to CompareValue, required float64) (text string, holds bool) {
	if to.status() != measured || v.status() == unknown {
		return "not known", false
	}
	value, prefix := v.Measured.Value, ""
	if longerNs, ok := LongerThan(v.Err); ok {
		value, prefix = float64(longerNs), "over "
	}
	if to.Measured.Value == 0 {
		return v.Short() + " to 0", value > 0
	}
	return prefix + formatFactor(value/to.Measured.Value) + " times",
		value >= required*to.Measured.Value
}

// formatFactor returns a factor with 3 significant digits.
func formatFactor(f float64) string {
	return strconv.FormatFloat(f, 'g', 3, 64)
}
