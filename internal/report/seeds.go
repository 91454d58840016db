// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// This file has what a report shows of runs with several seeds.

// seedsView says how many seeds there are; the zero value is one seed.
type seedsView struct {
	Count         int
	Shown         uint64 // whose figures over time are drawn
	typical       bool   // it is the one that is closest to the medians
	Runs, Invalid int    // of all seeds
}

// seedsOf counts the seeds. It fails if some engine has none.
func seedsOf(g Group) (v seedsView, err error) {
	if len(g.Seeds) == 0 {
		return v, nil
	}
	if engines := result.EnginesOf(g.Runs); len(engines) != len(g.Seeds) {
		return v, fmt.Errorf("report: runs of %d engines, but several seeds of %d "+
			"(hint: report the folder of each engine on its own)", len(engines), len(g.Seeds))
	}
	v.Shown = g.Runs[0].Manifest.Seed
	for _, s := range g.Seeds {
		v.typical = s.Seeds[s.Typical()].Seed == v.Shown
		v.Count = max(v.Count, len(s.Seeds))
		for _, j := range s.Seeds {
			v.Runs += len(j.Runs)
			for _, r := range j.Runs {
				if r.Manifest.Verdict == result.Invalid {
					v.Invalid++
				}
			}
		}
	}
	return v, nil
}

// comparedOverSeeds returns the comparisons of the medians, of each engine.
func comparedOverSeeds(engines []*result.SeedsSummary) []result.CompareOutcome {
	var all []result.CompareOutcome
	for _, s := range engines {
		for _, o := range s.Comparisons() {
			if len(engines) > 1 {
				o.Compare.What += fmt.Sprintf(" (%s)", s.Engine())
			}
			all = append(all, o)
		}
	}
	return all
}

// outcomesOf returns what a run was expected to be: of several seeds, the medians.
func outcomesOf(
	e *experiment.Experiment, r *result.Run, engines []*result.SeedsSummary,
) []outcomeView {
	var all []outcomeView
	if len(engines) == 0 {
		for _, o := range result.Evaluate(e, r) {
			all = append(all, outcomeView{Outcome: o})
		}
		return all
	}
	m := r.Manifest
	for _, s := range engines {
		for _, o := range s.Outcomes() {
			if s.Engine() != m.RanOn() || o.Case != m.Case || o.Scheme != m.Scheme {
				continue
			}
			view := outcomeView{overSeeds: o.Value(), Outcome: result.Outcome{Expect: o.Expect,
				Scheme: o.Scheme, Objects: o.Objects, Pass: o.Pass}}
			for _, spread := range o.Spreads {
				view.Measured = append(view.Measured, spread.Median)
			}
			if len(o.Spreads) == 0 {
				view.Err = o.Err
			}
			all = append(all, view)
		}
	}
	return all
}

// metricRow is a metric without bounds of one run.
type metricRow struct {
	Run, Name, Caption, Value string
	measured                  result.SeedsMetric
}

// metricRows returns the experiment's metrics of each run: of several seeds, the medians.
func metricRows(e *experiment.Experiment, g Group) []metricRow {
	if len(e.Metrics) == 0 {
		return nil
	}
	seeds := g.Seeds
	if len(seeds) == 0 {
		for _, engine := range result.EnginesOf(g.Runs) {
			of := slices.DeleteFunc(slices.Clone(g.Runs), func(r *result.Run) bool {
				return r.Manifest.RanOn() != engine
			})
			seeds = append(seeds,
				&result.SeedsSummary{Seeds: []result.Judged{result.Judge(e, of)}})
		}
	}
	var rows []metricRow
	for _, s := range seeds {
		for _, m := range s.Metrics() {
			label := result.LabelOf(m.Case, strings.ToUpper(m.Scheme))
			if len(seeds) > 1 {
				label += ", " + string(s.Engine())
			}
			rows = append(rows, metricRow{label, m.Name,
				SweepMetric{Measure: m.Measure, Over: m.Over}.Caption(), m.Value(), m})
		}
	}
	return rows
}

// metricOverCases returns what a metric is of each run: the first that is not the same for all. It
// returns nil if there is none, or too many runs for a sentence.
func metricOverCases(rows []metricRow) []metricRow {
	byName := map[string][]metricRow{}
	for _, r := range rows {
		byName[r.Name] = append(byName[r.Name], r)
	}
	for _, r := range rows {
		same := byName[r.Name]
		differ := slices.ContainsFunc(same, func(o metricRow) bool { return o.Value != r.Value })
		if differ && len(same) <= maxOverCases {
			return same
		}
	}
	return nil
}

// metricSentence says what a metric is of each run, without a full stop; "" for no run.
func metricSentence(rows []metricRow) string {
	if len(rows) == 0 {
		return ""
	}
	var values []string
	for _, r := range rows {
		values = append(values, r.Value+" with "+r.Run)
	}
	return rows[0].Caption + ": " + listInWords(values)
}

// metricFigure draws a bar for each run of a metric, and of several seeds the median's interval.
func metricFigure(rows []metricRow) *figure {
	m := rows[0].measured.Measure
	b, spread := &bars{}, &errorBars{name: intervalNote, color: color.Black}
	var names []string
	var values []float64
	for _, r := range rows {
		names = append(names, r.Run)
		if s := r.measured.Spread; s != nil {
			values = append(values, s.Median.Value, s.High.Value)
		}
	}
	f := named(rows[0].Name, "The value of each run.", names)
	f.sentence = metricSentence(rows)
	f.legend = []legendEntry{{"measured", measuredBar}}
	// linear: a bar of 1 must not be a third of one of 300
	axis := linearAxis(m.Metric.Unit(), values, 0.1)
	for i, r := range rows {
		at, s := float64(i), r.measured.Spread
		item := bar{from: at - halfBar/2, to: at + halfBar/2, swatch: measuredBar}
		if s == nil {
			item.text, item.failed = "none", true
			b.items = append(b.items, item)
			continue
		}
		item.value, item.above = axis.at(s.Median.Value), axis.at(s.High.Value)
		item.text = formatShort(s.Median)
		b.items = append(b.items, item)
		if s.Seeds > 1 {
			spread.at = append(spread.at, interval{at, axis.at(s.Low.Value), axis.at(s.High.Value)})
		}
	}
	plotters := []plot.Plotter{b}
	if spread.at != nil {
		f.legend = append(f.legend, legendEntry{spread.name, swatch{line: spread.color}})
		plotters = append(plotters, spread)
	}
	f.add(m.Metric, axis, plotters...)
	return f
}

// maxOverCases is how many runs' values the first sentence of a report has.
const maxOverCases = 5

// Measured is the heading of columns with measured values.
func (v seedsView) Measured() string {
	if v.Count == 0 {
		return "Measured"
	}
	return fmt.Sprintf("Median of %d seeds [95%% interval]", v.Count)
}

// Why says why figures over time are of the seed that they are of.
func (v seedsView) Why() string {
	switch {
	case !v.typical:
		return fmt.Sprintf("one of %d", v.Count)
	case v.Count > result.KeptSeeds:
		return fmt.Sprintf("the closest to the medians of all %d among the first %d, which are "+
			"kept whole", v.Count, result.KeptSeeds)
	}
	return fmt.Sprintf("the closest to the medians of %d", v.Count)
}
