// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// CompareOutcome is a comparison of schemes, held against runs. Schemes that were not
// run are left out of it.
type CompareOutcome struct {
	Compare experiment.Compare
	Values  []CompareValue // in the order of the experiment's schemes
	// Order and Ratios are what is asked between schemes; nil if that is nothing, or
	// nothing about those that were run.
	Order, Ratios *Relation
	// Pass is whether every scheme passes that is judged, and what is asked between them holds.
	Pass bool
}

// CompareValue is what one scheme reached in a comparison.
type CompareValue struct {
	Scheme string
	// Measured is the value over all links, ports or flows of all cases.
	Measured experiment.Quantity
	// Err says why something could not be measured; the scheme does then not pass.
	Err error
	// Cases has the value of each run, in the order given.
	Cases []CaseValue
	// Paper is the paper's number; nil if it gives none.
	Paper *experiment.Quantity
	// Min and Max are the bounds, or how near the value is to be to the paper's; nil is none.
	Min, Max *experiment.Quantity
	// Judged is whether the scheme has a number of the paper or a bound, or is listed. Others are only shown, unless
	// there is nothing but ratios.
	Judged bool
	// Pass is whether the value could be measured and is within the bounds. A time that
	// was not reached passes where there are none.
	Pass bool
}

// CaseValue is the value of one case.
type CaseValue struct {
	Case     string
	Measured experiment.Quantity // over all links, ports or flows
	Err      error
}

// named returns the error with the case it is of.
func (c CaseValue) named() error {
	if c.Err == nil || c.Case == "" {
		return c.Err
	}
	return fmt.Errorf("%s: %w", c.Case, c.Err)
}

// Relation is what is asked between schemes.
type Relation struct {
	Asked, Measured string // in words
	Holds           bool
}

// EvaluateCompare holds the runs against what the experiment compares. Comparisons of
// which nothing was run are left out.
func EvaluateCompare(e *experiment.Experiment, runs []*Run) []CompareOutcome {
	var outcomes []CompareOutcome
	for _, c := range e.Compare {
		o := CompareOutcome{Compare: c, Pass: true}
		compared := comparedRuns(c, runs)
		for _, scheme := range e.Schemes {
			if v, ok := compareScheme(c, scheme, compared); ok {
				o.Values = append(o.Values, v)
				o.Pass = o.Pass && (v.Pass || !v.Judged)
			}
		}
		if len(o.Values) == 0 {
			continue
		}
		o.Order, o.Ratios = o.order(), o.ratios()
		for _, relation := range o.Relations() {
			o.Pass = o.Pass && relation.Holds
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// Relations returns what is asked between schemes: the order, the ratios, both or nothing.
func (o CompareOutcome) Relations() []Relation {
	var relations []Relation
	for _, relation := range []*Relation{o.Order, o.Ratios} {
		if relation != nil {
			relations = append(relations, *relation)
		}
	}
	return relations
}

// comparedRuns returns the runs that are measured, with the completions that count.
func comparedRuns(c experiment.Compare, runs []*Run) []*Run {
	var compared []*Run
	inRuns := make(map[string]int)    // runs, by case
	completed := make(map[string]int) // in how many runs, by case and flow
	for _, r := range runs {
		m := r.Manifest
		if c.Schemes != nil && !slices.Contains(c.Schemes, m.Scheme) || c.Cases != nil && !slices.Contains(c.Cases, m.Case) {
			continue
		}
		compared = append(compared, r)
		inRuns[m.Case]++
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
		inCase := r.Manifest.Case
		counting := *r
		counting.Completions = slices.DeleteFunc(slices.Clone(r.Completions), func(flow Completion) bool {
			return completed[LabelOf(inCase, flow.Flow)] < inRuns[inCase]
		})
		compared[i] = &counting
	}
	return compared
}

// compareScheme measures a scheme in its runs; it is not ok if it has none.
func compareScheme(c experiment.Compare, scheme string, runs []*Run) (v CompareValue, ok bool) {
	v.Scheme = scheme
	var all []experiment.Quantity
	for _, r := range runs {
		m := r.Manifest
		if m.Scheme != scheme {
			continue
		}
		values, err := r.Measure(c.Measure)
		inCase := CaseValue{Case: m.Case, Err: err}
		if err == nil {
			inCase.Measured = aggregate(c.Over, values)
			all = append(all, values...)
		}
		v.Cases = append(v.Cases, inCase)
		v.Err = cmp.Or(v.Err, inCase.named())
	}
	if len(v.Cases) == 0 {
		return CompareValue{}, false
	}
	if v.Err == nil {
		v.Measured = aggregate(c.Over, all)
	}
	v.judge(c)
	return v, true
}

// MeasureOne returns one value of a metric of the run, over all its links, ports or flows.
func (r *Run) MeasureOne(m experiment.Measure, over experiment.Over) (experiment.Quantity, error) {
	values, err := r.Measure(m)
	if err != nil {
		return experiment.Quantity{}, err
	}
	if len(values) == 0 {
		return experiment.Quantity{}, fmt.Errorf("metric %s is of nothing", m.Metric)
	}
	return aggregate(over, values), nil
}

// aggregate makes one value of several, of which there is at least one.
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

// judge holds the value against the bounds of its scheme or, where it has none,
// against the paper's number.
func (v *CompareValue) judge(c experiment.Compare) {
	paper, inPaper := c.Paper[v.Scheme]
	bounds, bounded := c.Bounds[v.Scheme]
	onlyRatios := len(c.Paper)+len(c.Bounds) == 0 && c.Ratios != nil
	v.Judged = inPaper || bounded || len(c.Schemes) > 0 || onlyRatios
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
	if v.Min == nil && v.Max == nil && errors.Is(v.Err, errNotReached) {
		v.Pass = true // longer than the run: that is for the order and the ratios to judge
		return
	}
	v.Pass = v.Err == nil && within([]experiment.Quantity{v.Measured}, v.Min, v.Max)
}

// Value returns what was measured, in words, or why there is nothing.
func (v CompareValue) Value() string {
	return valueInWords([]experiment.Quantity{v.Measured}, v.Err)
}

// Bound returns the bounds in words; empty if there are none.
func (v CompareValue) Bound() string {
	return boundInWords(v.Min, v.Max)
}

// Ratio returns how many times the paper's number was measured, as text; empty if
// one of them is missing or the paper's is 0.
func (v CompareValue) Ratio() string {
	if v.Err != nil || v.Paper == nil || v.Paper.Value == 0 {
		return ""
	}
	return factor(v.Measured.Value / v.Paper.Value)
}

// Short returns what was measured, in a word or two.
func (v CompareValue) Short() string {
	switch v.known() {
	case measured:
		return v.Measured.String()
	case notReached:
		return "not reached"
	default:
		return "not measured"
	}
}

// knowledge is what is known of a value, from most to least.
type knowledge int

const (
	measured   knowledge = iota
	notReached           // a time that is longer than the run went on
	unknown
)

func (v CompareValue) known() knowledge {
	switch {
	case v.Err == nil:
		return measured
	case errors.Is(v.Err, errNotReached):
		return notReached
	default:
		return unknown
	}
}

// compareValues orders what was measured by value, and puts what was not reached and
// then what is unknown behind it.
func compareValues(a, b CompareValue) int {
	return cmp.Or(cmp.Compare(a.known(), b.known()), cmp.Compare(a.Measured.Value, b.Measured.Value))
}

// order returns whether the schemes come in the order of the paper's numbers.
func (o CompareOutcome) order() *Relation {
	values := slices.DeleteFunc(slices.Clone(o.Values), func(v CompareValue) bool { return v.Paper == nil })
	if !o.Compare.Order || len(values) < 2 {
		return nil
	}
	slices.SortStableFunc(values, func(a, b CompareValue) int { return cmp.Compare(a.Paper.Value, b.Paper.Value) })
	order := &Relation{Asked: values[0].Scheme, Holds: true}
	for i, v := range values[1:] {
		sign := " = "
		if values[i].Paper.Value < v.Paper.Value {
			sign = " < "
		}
		order.Asked += sign + v.Scheme
		for _, earlier := range values[:i+1] {
			order.Holds = order.Holds && (earlier.Paper.Value == v.Paper.Value || inOrder(earlier, v))
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

// inOrder returns whether a is less than b. Two times that are both longer than the
// run are taken to be.
func inOrder(a, b CompareValue) bool {
	switch {
	case a.known() == unknown || b.known() == unknown:
		return false
	case a.known() == notReached && b.known() == notReached:
		return true
	default:
		return compareValues(a, b) < 0
	}
}

// ratios returns whether the other schemes are so many times the one of the ratios.
func (o CompareOutcome) ratios() *Relation {
	asked := o.Compare.Ratios
	if asked == nil {
		return nil
	}
	to := slices.IndexFunc(o.Values, func(v CompareValue) bool { return v.Scheme == asked.To })
	ratios := &Relation{Asked: fmt.Sprintf("each at least %s times %s", asked.Min, asked.To), Holds: true}
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

// ratio returns how many times another value one is, and whether that is at least
// what is asked. What was not reached is at least the time that the run went on.
func ratio(v, to CompareValue, least float64) (text string, holds bool) {
	if to.known() != measured || v.known() == unknown {
		return "not known", false
	}
	value, over := v.Measured.Value, ""
	var longer *notReachedError
	if errors.As(v.Err, &longer) {
		value, over = float64(longer.inNs), "over "
	}
	if to.Measured.Value == 0 {
		return v.Short() + " to 0", value > 0
	}
	return over + factor(value/to.Measured.Value) + " times", value >= least*to.Measured.Value
}

// factor writes a factor to 3 significant digits.
func factor(f float64) string {
	return strconv.FormatFloat(f, 'g', 3, 64)
}
