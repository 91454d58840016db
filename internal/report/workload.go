// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// This file has the figures and tables of traces and workloads.

// drawsCompletions reports whether an experiment has many flows with a size.
func drawsCompletions(e *experiment.Experiment) bool {
	return e.Trace.File != "" || len(e.Workload) > 0
}

// workloadFigures draws the results of a trace or a workload in a case. If there are several cases,
// captions say so.
func workloadFigures(c caseView, cases int) []*figure {
	if !drawsCompletions(c.Experiment) {
		return nil
	}
	classes := c.Experiment.Figures.Classes()
	figures := []*figure{
		completionFigure(c.Runs, classes, completionKind{
			title: "Completion time by size of flows", sentence: "The mean completion time is",
			caption: "From the start of a flow until its sender knows that all data has arrived",
			unit:    experiment.UnitTime,
			of:      func(s result.CompletionStats) result.Distribution { return s.FCT },
		}),
		completionFigure(c.Runs, classes, completionKind{
			title: "Slowdown by size of flows", sentence: "The mean slowdown is",
			caption: "Completion time divided by that of the same flow in an empty network",
			unit:    experiment.UnitCount,
			of:      func(s result.CompletionStats) result.Distribution { return s.Slowdown },
		}),
		slowdownFigure(c.Runs),
		tierFigure(c),
		queueShareFigure(c),
	}
	figures = slices.DeleteFunc(figures, func(f *figure) bool { return f == nil })
	for _, f := range figures {
		if cases > 1 {
			f.oneCase = true
			f.caption += fmt.Sprintf(" Case %s only, the first of %d.", c.Name, cases)
		}
	}
	return figures
}

// completionKind selects what a completion figure shows.
type completionKind struct {
	title, caption string
	sentence       string // its heading, up to the values
	unit           experiment.Unit
	of             func(result.CompletionStats) result.Distribution
}

// completionFigure draws a bar for each run and class of sizes, in one panel for the mean and one
// for the 99th percentile.
func completionFigure(runs []runView, classes []experiment.Sizes, kind completionKind) *figure {
	classes = append([]experiment.Sizes{{}}, classes...) // all flows first
	var names []string
	for _, sizes := range classes {
		names = append(names, formatSizes(sizes))
	}
	f := named(kind.title, kind.caption+", of flows that completed.", names)
	var means []namedValue
	for i, r := range runs {
		f.legend = append(f.legend, legendEntry{r.Label, runBar(i)})
		if s := r.CompletionsOf(classes[0]); s.Completed > 0 {
			means = append(means, namedValue{who: r.Label, value: kind.of(s).Mean, unit: kind.unit})
		}
	}
	f.sentence = sentenceOf(kind.sentence, means)
	for _, p := range []struct {
		label string
		value func(result.Distribution) float64
	}{
		{"Mean", func(d result.Distribution) float64 { return d.Mean }},
		{"99th percentile", func(d result.Distribution) float64 { return d.P99 }},
	} {
		f.addBars(p.label, kind.unit, len(runs), func(class, run int) (float64, bool) {
			s := runs[run].CompletionsOf(classes[class])
			return p.value(kind.of(s)), s.Completed > 0
		})
	}
	return f
}

// runBar returns the style of bars of the i-th run.
func runBar(i int) swatch { return swatch{fill: flowColors[i%len(flowColors)]} }

// addBars adds a panel with a bar for each name and run.
func (f *figure) addBars(label string, unit experiment.Unit, runs int,
	value func(name, run int) (v float64, ok bool)) {
	const groupWidth = 0.84 // of the distance between names
	var values []float64
	for n := range f.names {
		for r := range runs {
			if v, ok := value(n, r); ok {
				values = append(values, v)
			}
		}
	}
	axis := newValueAxis(unit, values, 0.22)
	width := groupWidth / float64(runs)
	b := &bars{upwards: true}
	for n := range f.names {
		for r := range runs {
			left := float64(n) - groupWidth/2 + float64(r)*width
			item := bar{from: left, to: left + width, swatch: runBar(r)}
			if v, ok := value(n, r); ok {
				item.value, item.text = axis.at(v),
					formatShort(experiment.Quantity{Value: v, Unit: unit})
			} else {
				item.text, item.failed = "none", true
			}
			b.items = append(b.items, item)
		}
	}
	p := f.newPlot(axis.label(label), axis.low, axis.high)
	p.Y.Tick.Marker, p.logarithmic = axis.ticks(), axis.logarithmic
	p.Add(b)
	f.panels = append(f.panels, panel{plot: p, height: namedHeight})
}

// formatSizes returns a class of sizes as text.
func formatSizes(s experiment.Sizes) string {
	switch {
	case s == experiment.Sizes{}:
		return "all"
	case s.From == 0:
		return "< " + s.To.String()
	case s.To == 0:
		return s.From.String() + " or more" // in letters that PDF files have, too
	default:
		return s.From.String() + " to " + s.To.String()
	}
}

// slowdownFigure draws the cumulative distribution of slowdowns. It returns nil if no flow
// completed.
func slowdownFigure(runs []runView) *figure {
	f := &figure{
		title: "Slowdown", xLabel: "Slowdown", logarithmic: true,
		caption: "Share of completed flows with at most this slowdown. Slowdown is the " +
			"completion time divided by that of the same flow in an empty network.",
	}
	var curves [][]float64
	var medians []namedValue
	for i, r := range runs {
		var slowdowns []float64
		for _, c := range r.Completions {
			if c.Slowdown != nil {
				slowdowns = append(slowdowns, math.Log10(*c.Slowdown))
			}
		}
		slices.Sort(slowdowns)
		curves = append(curves, slowdowns)
		if n := len(slowdowns); n > 0 {
			f.xMax = max(f.xMax, slowdowns[n-1])
			medians = append(medians,
				namedValue{who: r.Label, value: math.Pow(10, slowdowns[n/2]),
					unit: experiment.UnitCount})
		}
		f.legend = append(f.legend, legendEntry{r.Label, swatch{line: runBar(i).fill}})
	}
	if f.xMax == 0 {
		return nil
	}
	f.xMax *= 1.02
	f.sentence = sentenceOf("Half of the flows have a slowdown of at most", medians)
	f.panels = []panel{{plot: f.cumulative("Share of flows", 0, curves), height: namedHeight}}
	return f
}

// cumulative returns a panel with the cumulative distribution of each run's sorted values. The
// panel starts at the share low.
func (f *figure) cumulative(label string, low float64, curves [][]float64) *plotted {
	p := f.newPlot(label+" (%)", 100*low, 100)
	for i, values := range curves {
		points := []point{{f.xMin, 100 * low}}
		for k, v := range values {
			share := 100 * float64(k+1) / float64(len(values))
			if x := min(v, f.xMax); share >= 100*low {
				points = append(points, point{x, points[len(points)-1].y}, point{x, share})
			}
		}
		points = append(points, point{f.xMax, points[len(points)-1].y})
		p.Add(&curve{points: points, name: f.legend[i].text,
			swatch: swatch{line: runBar(i).fill}})
	}
	return p
}

// tierLooks are solid, striped and empty from the lowest tier on, as in PCN, Fig. 14(a).
var tierLooks = []swatch{
	{fill: color.RGBA{R: 0x2b, G: 0x35, B: 0x70, A: 0xff}},
	{line: color.RGBA{R: 0x2b, G: 0x35, B: 0x70, A: 0xff}, spacing: vg.Points(3)},
	{fill: color.White},
	{fill: color.Gray{Y: 0xb0}},
}

// tierFigure draws PCN, Fig. 14(a), and below it the time that ports were stopped.
func tierFigure(c caseView) *figure {
	var names []string
	for _, r := range c.Runs {
		names = append(names, r.Label)
	}
	tiers := switchTiers(c.Experiment)
	f := named("PAUSE by tier",
		"PAUSE frames that the switches of each tier sent, and the time that "+
			"they stopped ports, summed over all ports. "+repeatNote, names)
	for i, tier := range tiers {
		f.legend = append(f.legend, legendEntry{"from " + tier, tierLooks[i%len(tierLooks)]})
	}
	var frames []namedValue
	for _, r := range c.Runs {
		values, err := r.Measure(
			experiment.Measure{Metric: experiment.TierPauseFrames, Tiers: tiers})
		if err != nil {
			continue // results of older versions have no tiers
		}
		sum := 0.0
		for _, v := range values {
			sum += v.Value
		}
		frames = append(frames, namedValue{who: r.Label, value: sum, unit: experiment.UnitCount})
	}
	f.sentence = sentenceOf("The number of PAUSE frames is", frames)
	for _, p := range []struct {
		label  string
		metric experiment.Metric
		per    float64 // 1: divide by the run's duration in ms; 0: do not
	}{{"PAUSE frames per ms", experiment.TierPauseFrames, 1},
		{"Stopped", experiment.TierPauseTotal, 0}} {
		f.addStacks(p.label, p.metric.Unit(), func(run int) []float64 {
			r := c.Runs[run]
			values, err := r.Measure(experiment.Measure{Metric: p.metric, Tiers: tiers})
			if err != nil {
				return nil // results of older versions have no tiers
			}
			var plain []float64
			for _, v := range values {
				plain = append(plain, v.Value/math.Pow(toMs(r.Manifest.DurationNs), p.per))
			}
			return plain
		})
	}
	return f
}

// switchTiers returns the tiers of switches, from the hosts on.
func switchTiers(e *experiment.Experiment) []string {
	var tiers []string
	for _, t := range e.Topology.Network().Tiers()[1:] {
		tiers = append(tiers, t.Name)
	}
	return tiers
}

// addStacks adds a panel with a stacked bar for each name, with the first value at the bottom.
func (f *figure) addStacks(label string, unit experiment.Unit, values func(name int) []float64) {
	var sums []float64
	for n := range f.names {
		sums = append(sums, total(values(n)))
	}
	axis := linearAxis(unit, sums, 0.12)
	b := &bars{}
	for n := range f.names {
		foot := 0.0
		for i, v := range values(n) {
			b.items = append(b.items, bar{
				from: float64(n) - 0.25, to: float64(n) + 0.25, stacked: true, foot: axis.at(foot),
				value: axis.at(foot + v), swatch: tierLooks[i%len(tierLooks)],
			})
			foot += v
		}
		b.items = append(b.items, bar{
			from: float64(n) - 0.25, to: float64(n) + 0.25, stacked: true, foot: axis.at(foot),
			value: axis.at(foot), text: formatShort(experiment.Quantity{Value: foot,
				Unit: unit}),
		})
	}
	p := f.newPlot(axis.label(label), axis.low, axis.high)
	p.Y.Tick.Marker, p.logarithmic = axis.ticks(), axis.logarithmic
	p.Add(b)
	f.panels = append(f.panels, panel{plot: p, height: panelHeight})
}

func total(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum
}

// queueShareFigure draws the cumulative distribution of queue lengths for the ports of each tier of
// switches.
func queueShareFigure(c caseView) *figure {
	f := &figure{
		title: "Queues", xLabel: "Queue (KB)",
		caption: fmt.Sprintf("Share of time in which queues are at most this long, sampled every "+
			"%s from t = 0 on, for all ports of each tier of switches.", c.Experiment.Sample),
	}
	tiers := switchTiers(c.Experiment)
	queues := make([][][]float64, len(tiers)) // by tier and run
	const longest = 0.999                     // longer queues are not drawn
	for i, r := range c.Runs {
		tierOf := r.Tiers()
		byTier := make(map[string][]float64)
		for _, s := range r.Series {
			if s.Kind == result.KindPort && s.TimeNs >= 0 {
				node, _, _ := network.SplitPort(s.Name)
				tier := tierOf[node]
				byTier[tier] = append(byTier[tier], float64(s.QueueBytes)/1e3)
			}
		}
		for t, tier := range tiers {
			values := byTier[tier]
			slices.Sort(values)
			queues[t] = append(queues[t], values)
			if len(values) > 0 {
				f.xMax = max(f.xMax, values[int(longest*float64(len(values)-1))])
			}
		}
		f.legend = append(f.legend, legendEntry{r.Label, swatch{line: runBar(i).fill}})
	}
	if f.xMax == 0 {
		return nil
	}
	var long []namedValue
	for i, r := range c.Runs {
		if values := queues[0][i]; len(values) > 0 {
			at := values[int(0.99*float64(len(values)-1))]
			long = append(long, namedValue{who: r.Label, value: at * 1e3,
				unit: experiment.UnitBytes})
		}
	}
	f.sentence = sentenceOf("For 99% of the time, queues of "+tiers[0]+" are at most", long)
	for t, tier := range tiers {
		low := 1.0 // the share of empty queues
		for _, values := range queues[t] {
			empty, _ := slices.BinarySearch(values, math.SmallestNonzeroFloat64)
			low = min(low, float64(empty)/float64(max(len(values), 1)))
		}
		p := f.cumulative("Time", math.Floor(low*20)/20*0.999, queues[t])
		p.Add(&panelLabel{text: "ports of " + tier})
		f.panels = append(f.panels, panel{plot: p, height: panelHeight, run: tier})
	}
	return f
}

// completionRow is a row of the table of completions.
type completionRow struct {
	Run, Sizes, Completed string
	FCT, Slowdown         []string // mean, percentiles; empty if none completed
}

// completionRows returns a row for all flows of each run, and one for each class of sizes.
func completionRows(c caseView) []completionRow {
	if !drawsCompletions(c.Experiment) {
		return nil
	}
	var rows []completionRow
	for _, r := range c.Runs {
		for _, sizes := range append([]experiment.Sizes{{}}, c.Experiment.Figures.Classes()...) {
			s := r.CompletionsOf(sizes)
			if s.Flows == 0 {
				continue
			}
			row := completionRow{Run: r.Label, Sizes: formatSizes(sizes),
				Completed: fmt.Sprintf("%d of %d", s.Completed, s.Flows)}
			row.FCT, row.Slowdown = make([]string, 5), make([]string, 5)
			if s.Completed > 0 {
				row.FCT, row.Slowdown = formatDistribution(s.FCT, experiment.UnitTime),
					formatDistribution(s.Slowdown, experiment.UnitCount)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func formatDistribution(d result.Distribution, unit experiment.Unit) []string {
	var texts []string
	for _, v := range []float64{d.Mean, d.P50, d.P95, d.P99, d.P999} {
		texts = append(texts, experiment.Quantity{Value: v, Unit: unit}.String())
	}
	return texts
}

// tierRow is a row of the table of PAUSE by tier.
type tierRow struct {
	Run, Tier, Pauses, Frames, Stopped string
}

// tierRows returns a row for each run and tier that sent PAUSE, and one for how far PAUSE spread.
func tierRows(c caseView) []tierRow {
	if !drawsCompletions(c.Experiment) {
		return nil
	}
	var rows []tierRow
	for _, r := range c.Runs {
		for _, tier := range switchTiers(c.Experiment) {
			row := tierRow{Run: r.Label, Tier: tier}
			for _, cell := range []struct {
				text   *string
				metric experiment.Metric
			}{{&row.Pauses, experiment.TierPauseCount}, {&row.Frames, experiment.TierPauseFrames},
				{&row.Stopped, experiment.TierPauseTotal}} {
				values, err := r.Measure(experiment.Measure{Metric: cell.metric,
					Tiers: []string{tier}})
				if err != nil {
					break // results of older versions have no tiers
				}
				*cell.text = values[0].String()
			}
			if row.Stopped != "" {
				rows = append(rows, row)
			}
		}
		if depth, err := r.Measure(experiment.Measure{Metric: experiment.PauseDepth}); err == nil {
			rows = append(rows, tierRow{
				Run: r.Label, Tier: "links in a row, at most",
				Pauses: strconv.FormatFloat(depth[0].Value, 'f', -1, 64),
			})
		}
	}
	return rows
}

// receivers returns the host that all flows go to, or "several hosts".
func receivers(flows []*result.Flow) string {
	for _, f := range flows {
		if f.Dst != flows[0].Dst {
			return "several hosts"
		}
	}
	return flows[0].Dst
}

// logTicks labels powers of 10 and, on short axes, also 2 and 5 times these.
type logTicks struct{}

// Ticks implements [plot.Ticker].
func (logTicks) Ticks(low, high float64) []plot.Tick {
	steps := []float64{1, 2, 5}
	if high-low > 3 {
		steps = steps[:1]
	}
	var ticks []plot.Tick
	for power := math.Floor(low); power <= high; power++ {
		for _, step := range steps {
			if at := power + math.Log10(step); at >= low && at <= high {
				ticks = append(ticks, plot.Tick{Value: at,
					Label: strings.TrimSpace(fmt.Sprintf("%.4g", step*math.Pow(10, power)))})
			}
		}
	}
	return ticks
}
