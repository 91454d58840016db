// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
)

var numeral = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// numerals returns the numbers that a text has.
func numerals(text string) []float64 {
	var all []float64
	for _, n := range numeral.FindAllString(text, -1) {
		v, _ := strconv.ParseFloat(n, 64)
		all = append(all, v)
	}
	return all
}

// said reports whether one of the numbers is the value, in some unit: a power of 1000, or percent.
func said(value float64, numbers []float64) bool {
	return slices.ContainsFunc(numbers, func(n float64) bool {
		for _, unit := range []float64{1, 1e3, 1e6, 1e9, 1e-3, 0.01} {
			if math.Abs(n*unit-value) < 1e-9*math.Abs(value) {
				return true
			}
		}
		return false
	})
}

// evaluate computes "100 - 53 / 100" from left to right.
func evaluate(t *testing.T, expression string) (float64, []float64) {
	t.Helper()
	words := strings.Fields(expression)
	operands := numerals(expression)
	qt.Assert(t, qt.HasLen(words, 2*len(operands)-1), qt.Commentf("%s", expression))
	value := operands[0]
	for i, operand := range operands[1:] {
		switch words[2*i+1] {
		case "+":
			value += operand
		case "-":
			value -= operand
		case "*":
			value *= operand
		case "/":
			value /= operand
		default:
			t.Fatalf("%q has an operator that is none of + - * /", expression)
		}
	}
	return value, operands
}

// Each number under "paper" stands in the quote, or is computed from numbers that do. A quote that
// is the same as that of the claim before is that claim's.
func TestNumbersAreThePapers(t *testing.T) {
	figures, err := Choose(nil)
	qt.Assert(t, qt.IsNil(err))
	numbers := 0
	for _, f := range figures {
		quote := ""
		for _, c := range f.Claims {
			if !strings.HasPrefix(c.Quote, "the same") {
				quote = ""
			}
			quote += " " + c.Quote
			comment := qt.Commentf("%s: %s: %q", f.ID(), c.What, quote)
			in := numerals(quote)
			for _, n := range c.Numbers {
				qt.Check(t, qt.IsTrue(said(n.Value, in)), comment)
			}
			if c.Number == nil {
				continue
			}
			numbers++
			if c.NumberFrom == "" {
				qt.Check(t, qt.IsTrue(said(c.Number.Value, in)), comment)
				continue
			}
			value, operands := evaluate(t, c.NumberFrom)
			for _, o := range operands {
				known := o == 100 || o == 1000 || said(o, in) || said(o, numerals(f.Title+f.Note))
				qt.Check(t, qt.IsTrue(known), qt.Commentf("%g is not in %s: %q", o, c.What, quote))
			}
			same := func(unit float64) bool { return math.Abs(value*unit/c.Number.Value-1) < 0.005 }
			qt.Check(t, qt.IsTrue(slices.ContainsFunc([]float64{1, 1e-2, 1e3, 1e6, 1e9}, same)),
				qt.Commentf("%s is %g, not %s", c.NumberFrom, value, c.Number))
		}
	}
	qt.Check(t, qt.IsTrue(numbers > 80), qt.Commentf("%d", numbers))
}

// No row is of fewer seeds than a verdict needs.
func TestEnoughSeeds(t *testing.T) {
	figures, err := Choose(nil)
	qt.Assert(t, qt.IsNil(err))
	for _, f := range figures {
		for i, part := range []*Part{f.Sim, f.Quick, f.Kernel} {
			if part != nil {
				qt.Check(t, qt.IsTrue(len(part.Seeds) >= minSeeds),
					qt.Commentf("%s: %d", f.ID(), i))
			}
		}
	}
}

// The bands by each rule, from the rules' own words.
func TestRules(t *testing.T) {
	for _, c := range []struct{ text, paper, band string }{
		{"rule: near, number: 4ms", "4ms", "3ms to 5ms"},
		{"rule: near, number: 20Gbps, within: 5%", "20Gbps", "19Gbps to 21Gbps"},
		{"rule: points, number: 90%", "90%", "85% to 95%"},
		{"rule: points, number: 9.95Gbps", "9.95Gbps", "9.45Gbps to 10.45Gbps"},
		{"rule: at_most, number: 100KB", "100KB", "at most 100KB"},
		{"rule: at_least, number: 500KB", "500KB", "at least 500KB"},
		{"rule: between, numbers: [50KB, 100KB]", "50KB to 100KB", "50KB to 100KB"},
		{"rule: factor, number: 20", "20 times", "at least 15"},
		{"rule: factor, number: 0.36", "0.36", "at most 0.48"},
		{"rule: none, paper: never", "never", "at most 0"},
		{"rule: some, paper: marks", "marks", "at least 1"},
		{"rule: less, paper: fewer", "fewer", "below 1"},
		{"rule: more, paper: larger", "larger", "above 1"},
		{"rule: ours, paper: high, min: 95%", "high", "ours: at least 95%"},
	} {
		metric := "pause_count"
		switch {
		case strings.Contains(c.text, "ms"):
			metric = "completion_time"
		case strings.Contains(c.text, "KB"):
			metric = "queue_max"
		case strings.Contains(c.text, "bps"):
			metric = "mean_rate"
		case strings.Contains(c.text, "%"):
			metric = "utilisation"
		}
		claim := parse(t, strings.Replace(strings.Split(small, "      - {what: a")[0],
			"    claims:\n", "    claims: [{what: a, quote: q, scheme: pcn, metric: "+metric+", "+
				c.text+"}]\n", 1)).Claims[0]
		qt.Check(t, qt.Equals(claim.Paper, c.paper), qt.Commentf("%s", c.text))
		qt.Check(t, qt.Equals(claim.Band(), c.band), qt.Commentf("%s", c.text))
	}
}

// What is less is not the same, and what was never reached is no number.
func TestBandsEnd(t *testing.T) {
	number := config.Quantity{Value: 20}
	less, more := &Claim{Rule: RuleLess}, &Claim{Rule: RuleMore}
	factor := &Claim{Rule: RuleFactor, Number: &number}
	for _, c := range []*Claim{less, more, factor} {
		qt.Assert(t, qt.IsTrue(c.computeBand()))
	}
	qt.Check(t, qt.IsTrue(less.holds(0.5, 0.99)))
	qt.Check(t, qt.IsFalse(less.holds(0.5, 1)))
	qt.Check(t, qt.IsTrue(more.holds(1.01, 2)))
	qt.Check(t, qt.IsFalse(more.holds(1, 2)))
	qt.Check(t, qt.IsTrue(factor.holds(15, 1e9)))
	qt.Check(t, qt.IsFalse(factor.holds(15, math.Inf(1))))
}
