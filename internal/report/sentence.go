// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// This file has the headings of figures: sentences that say what happened.

// namedValue is what a figure shows of a run or scheme.
type namedValue struct {
	who   string
	at    string // point of a sweep; "" elsewhere
	value float64
	unit  experiment.Unit
	most  bool // the run ended before it knew more
	none  bool // there is no value: never reached, or not measured
}

// inUnit writes the value in the unit of an axis up to top; a value that would be next to nothing
// there has its own unit.
func (v namedValue) inUnit(top float64) string {
	if top == 0 && !v.most {
		return "0"
	}
	unit, scale := axisUnit(v.unit, top)
	if x := math.Abs(v.value * scale); x > 0 && x < 0.1 {
		unit, scale = axisUnit(v.unit, math.Abs(v.value))
	}
	text := shortNumber(v.value * scale)
	switch unit {
	case "":
	case "%":
		text += unit
	default:
		text += " " + unit
	}
	if v.most {
		return "over " + text
	}
	return text
}

// shortNumber writes a number with 3 significant digits, and without an exponent.
func shortNumber(v float64) string {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// topValue returns the largest of the values.
func topValue(values []namedValue) float64 {
	top := 0.0
	for _, v := range values {
		top = max(top, v.value)
	}
	return top
}

// maxListed is how many values a heading lists. Of more it has the least and the largest.
const maxListed = 3

// inWords says which value belongs to whom: "3 ms with PFC and 1 ms with PCN", or, of many, "1 ms
// (PCN) to 60 ms (TIMELY)".
func inWords(values []namedValue) string {
	top := topValue(values)
	if len(values) > maxListed {
		least, most := extremes(values)
		if least.value == most.value {
			return fmt.Sprintf("%s with each of %d", least.inUnit(top), len(values))
		}
		return fmt.Sprintf("%s (%s) to %s (%s)", least.inUnit(top), holders(values, least.value),
			most.inUnit(top), holders(values, most.value))
	}
	var parts, names []string
	same := len(values) == maxListed
	for _, v := range values {
		text := v.inUnit(top)
		same = same && text == values[0].inUnit(top)
		parts = append(parts, text+" with "+v.who)
		names = append(names, v.who)
	}
	if same {
		return values[0].inUnit(top) + " with " + listInWords(names)
	}
	return listInWords(parts)
}

// extremes returns the least and the largest of values, at least one: of equal ones the first.
func extremes(values []namedValue) (least, most namedValue) {
	by := func(a, b namedValue) int { return cmp.Compare(a.value, b.value) }
	return slices.MinFunc(values, by), slices.MaxFunc(values, by)
}

// holders names who has a value.
func holders(values []namedValue, value float64) string {
	var names []string
	for _, v := range values {
		if v.value == value {
			names = append(names, v.who)
		}
	}
	if len(names) > maxListed {
		return fmt.Sprintf("%d of them", len(names))
	}
	return listInWords(names)
}

// listInWords joins such as "a", "b" and "c" to "a, b and c".
func listInWords(all []string) string { return joined(all, "and") }

// joined joins words by commas, and the last by a word.
func joined(all []string, joint string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " " + joint + " " + all[last]
}

// sentenceOf returns the heading "subject verb values", or "" if there is no value. It says who has
// none.
func sentenceOf(subject string, values []namedValue) string {
	var known []namedValue
	var without []string
	for _, v := range values {
		if v.none {
			without = append(without, v.who)
			continue
		}
		known = append(known, v)
	}
	if len(known) == 0 {
		return ""
	}
	text := subject + " " + inWords(known)
	switch {
	case len(without) > maxListed:
		text += fmt.Sprintf("; not reached or not measured with %d others", len(without))
	case len(without) > 0:
		text += "; not reached or not measured with " + listInWords(without)
	}
	return text
}

// measureInWords names what is measured: "Recovery time of F0+F1".
func measureInWords(m experiment.Measure) string {
	text := metricTitle(m.Metric)
	objects := m.Objects()
	if m.Detector != "" {
		objects = []string{strings.ToUpper(string(m.Detector))}
	}
	if len(objects) > 0 && len(objects) <= maxListed {
		text += " of " + listInWords(objects)
	}
	if m.Sizes != (experiment.Sizes{}) {
		text += ", sizes " + m.Sizes.String() + ","
	}
	return text
}

// measureSentence says which value a metric has with whom.
func measureSentence(m experiment.Measure, values []namedValue) string {
	verb := " is"
	if strings.HasSuffix(string(m.Metric), "s") {
		verb = " are"
	}
	return sentenceOf(measureInWords(m)+verb, values)
}

// meanSentence says how fast a flow or a port is on average from t = 0 on.
func meanSentence(subject string, unit experiment.Unit, runs []runView,
	of func(runView) timelineOf, object string) string {
	var values []namedValue
	for _, r := range runs {
		t, err := of(r)(object)
		if err != nil {
			return ""
		}
		values = append(values, namedValue{who: r.Label, value: meanFrom0(t),
			unit: unit})
	}
	return sentenceOf(subject, values)
}

func meanFrom0(t result.Timeline) float64 {
	sum, n := 0.0, 0
	for i, v := range t.Values {
		if t.TimeNs(i) >= 0 {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(max(n, 1))
}

// queueSentence says how long the longest of some queues gets in each run. It names the port if it
// is the same in all.
func queueSentence(runs []runView, ports []string) string {
	var values []namedValue
	same := ""
	for i, r := range runs {
		longest, top := "", -1.0
		for _, port := range ports {
			t, err := r.QueueMax(port)
			if err != nil {
				return ""
			}
			if t.Max() > top {
				longest, top = port, t.Max()
			}
		}
		if i == 0 {
			same = longest
		}
		if longest != same && top > 0 {
			same = ""
		}
		values = append(values, namedValue{who: r.Label, value: top, unit: experiment.UnitBytes})
	}
	if same == "" {
		return sentenceOf("The longest queue drawn grows to", values)
	}
	return sentenceOf("The queue of "+same+" grows to", values)
}

// comparedInWords begins the sentence of a comparison. What an experiment says of it is a phrase
// that its values end, such as "PAUSE stops H0 for", or else a noun.
func comparedInWords(what string) string {
	if before, _, found := strings.Cut(what, " ("); found && strings.HasSuffix(what, ")") {
		what = before // what the paper says is in the table
	}
	for _, verb := range []string{" for", " lasts", " takes", " is", " are"} {
		if strings.HasSuffix(what, verb) {
			return capital(what)
		}
	}
	return capital(what) + ":"
}

// captionOf explains a metric by what the experiment calls it.
func captionOf(what, metric string) string {
	if what == "" {
		return metric
	}
	if first, _, _ := strings.Cut(metric, " "); !strings.HasSuffix(first, "'s") { // no name: Jain's
		metric = strings.ToLower(metric[:1]) + metric[1:]
	}
	return capital(what) + ": " + metric
}

// capital returns a text, at least one letter, with a capital at its start.
func capital(text string) string {
	_, first := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:first]) + text[first:]
}
