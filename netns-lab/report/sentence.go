// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// This file has the headings of figures: sentences that say what happened.

// namedValue is what a figure shows of a run or scheme.
type namedValue struct {
	who   string
	value float64
	unit  experiment.Unit
	most  bool // the run ended before it knew more
	none  bool // there is no value: never reached, or not measured
}

func (v namedValue) text() string {
	text := formatShort(experiment.Quantity{Value: v.value, Unit: v.unit})
	if v.most {
		return "over " + text
	}
	return text
}

// maxListed is how many values a heading lists. Of more it has the least and the largest.
const maxListed = 3

// inWords says which value belongs to whom: "3ms with PFC and 1ms with PCN", or, of many, "between
// 1ms (PCN) and 60ms (TIMELY)".
func inWords(values []namedValue) string {
	if len(values) > maxListed {
		by := func(a, b namedValue) int { return cmp.Compare(a.value, b.value) }
		least, most := slices.MinFunc(values, by), slices.MaxFunc(values, by)
		if least.value == most.value {
			return least.text() + " in all of them"
		}
		return fmt.Sprintf("between %s (%s) and %s (%s)", least.text(), least.who, most.text(),
			most.who)
	}
	var parts []string
	for _, v := range values {
		parts = append(parts, v.text()+" with "+v.who)
	}
	return listInWords(parts)
}

// listInWords joins such as "a", "b" and "c" to "a, b and c".
func listInWords(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " and " + all[last]
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
		text += fmt.Sprintf("; %d others have no value", len(without))
	case len(without) > 0:
		text += "; there is no value for " + listInWords(without)
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
func meanSentence(subject string, runs []runView, of func(runView) timelineOf,
	object string) string {
	var values []namedValue
	for _, r := range runs {
		t, err := of(r)(object)
		if err != nil {
			return ""
		}
		values = append(values, namedValue{who: r.Label, value: meanFrom0(t),
			unit: experiment.UnitRate})
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

// queueSentence says how long the longest of some queues gets.
func queueSentence(runs []runView, ports []string) string {
	var longest []namedValue
	port, top := "", -1.0
	for _, p := range ports {
		var values []namedValue
		most := 0.0
		for _, r := range runs {
			t, err := r.QueueMax(p)
			if err != nil {
				return ""
			}
			values = append(values, namedValue{who: r.Label, value: t.Max(),
				unit: experiment.UnitBytes})
			most = max(most, t.Max())
		}
		if most > top {
			port, top, longest = p, most, values
		}
	}
	return sentenceOf("The queue of "+port+" grows to", longest)
}

// captionOf explains a metric by what the experiment calls it.
func captionOf(what, metric string) string {
	if what == "" {
		return metric
	}
	return capital(what) + ": " + strings.ToLower(metric[:1]) + metric[1:]
}

// capital returns a text, at least one letter, with a capital at its start.
func capital(text string) string {
	_, first := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:first]) + text[first:]
}
