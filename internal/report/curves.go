// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// queueFigure draws the longest queue in each bin. It returns nil if there is no port to draw.
func queueFigure(e *experiment.Experiment, runs []runView) (*figure, error) {
	ports := e.Figures.Queues
	if ports == nil {
		ports = queuedPorts(runs)
	}
	f, err := curveFigure(e, runs, curves{
		name: experiment.FigureQueue, title: "Queue length", yLabel: "Queue",
		unit: experiment.UnitBytes, objects: ports,
		caption: fmt.Sprintf("Longest queue of the egress port in each %s.", e.Sample),
		solid:   func(r runView) timelineOf { return r.QueueMax },
	})
	if f != nil {
		f.sentence = queueSentence(runs, ports)
	}
	return f, err
}

// qdiscFigure draws what waits in qdiscs of Linux. It returns nil if no port has one.
func qdiscFigure(e *experiment.Experiment, runs []runView) (*figure, error) {
	ports := mostOf(runs, func(r runView, add func(string, float64)) {
		for _, q := range r.Qdiscs {
			add(q.Port, float64(q.BacklogBytes))
		}
	})
	backlogOf := func(r runView) timelineOf { return r.QdiscBacklog }
	f, err := curveFigure(e, runs, curves{
		title: "Backlog of Linux's qdiscs", yLabel: "Backlog", unit: experiment.UnitBytes,
		objects: ports,
		caption: fmt.Sprintf("What waits in the port's qdisc at the end of each %s.", e.Sample),
		solid:   backlogOf,
	})
	if f != nil {
		f.sentence = meanSentence("On average the backlog of "+ports[0]+" is", experiment.UnitBytes,
			runs, backlogOf, ports[0])
	}
	return f, err
}

// sendRateFigure draws PCN, Fig. 3. It returns nil if the experiment does not ask for it.
func sendRateFigure(e *experiment.Experiment, runs []runView) (*figure, error) {
	f, err := curveFigure(e, runs, curves{
		name: experiment.FigureSendRate, title: "Sending and receiving rate", yLabel: "Rate",
		unit: experiment.UnitRate, objects: e.Figures.SendRate,
		caption: fmt.Sprintf("Receiving rate of each flow (solid) in each %s, and pacing rate of "+
			"its sender (dashed) at the end of it, if the scheme has one.", e.Sample),
		solid:  func(r runView) timelineOf { return r.FlowRate },
		dashed: func(r runView) timelineOf { return r.SendRate },
	})
	if f != nil {
		flow := e.Figures.SendRate[0]
		f.sentence = meanSentence("On average "+flow+" receives", experiment.UnitRate, runs,
			func(r runView) timelineOf { return r.FlowRate }, flow)
		f.legend = append(f.legend, legendEntry{sendersRate,
			swatch{line: color.Gray{Y: 0x40}, dashes: dashes}})
	}
	return f, err
}

// portRateFigure draws the rates of ports. It returns nil if the experiment does not ask for it.
func portRateFigure(e *experiment.Experiment, runs []runView) (*figure, error) {
	rateOf := func(r runView) timelineOf { return r.PortRate }
	f, err := curveFigure(e, runs, curves{
		name: experiment.FigureRates, title: "Port rate", yLabel: "Rate", unit: experiment.UnitRate,
		objects: e.Figures.Rates,
		caption: fmt.Sprintf("Rate at which the egress port sent in each %s.", e.Sample),
		solid:   rateOf,
	})
	if f != nil {
		port := e.Figures.Rates[0]
		f.sentence = meanSentence("On average "+port+" sends", experiment.UnitRate, runs, rateOf,
			port)
	}
	return f, err
}

// timelineOf returns the timeline of a flow or port.
type timelineOf func(name string) (result.Timeline, error)

// curves describes a figure with one or two curves for each flow or port.
type curves struct {
	name           experiment.FigureName
	title, caption string
	yLabel         string
	unit           experiment.Unit
	objects        []string                   // flows or ports
	solid, dashed  func(r runView) timelineOf // dashed may be nil
}

// sendersRate names the dashed curves of sendRateFigure in its legend.
const sendersRate = "sender's rate"

// dashes is the style of dashed curves.
var dashes = []vg.Length{vg.Points(4), vg.Points(2.5)}

// curveFigure draws curves over time, in a panel for each run, or for each group of runs that
// differ only in their engine, if there are no other dashed curves. It returns nil if there are no
// objects.
func curveFigure(e *experiment.Experiment, runs []runView, c curves) (*figure, error) {
	if len(c.objects) == 0 {
		return nil, nil
	}
	f := &figure{title: c.title, caption: c.caption, xLabel: "Time (ms)"}
	for i, object := range c.objects {
		f.legend = append(f.legend, legendEntry{object,
			swatch{line: flowColors[i%len(flowColors)]}})
	}
	values, err := c.valuesOf(runs)
	if err != nil {
		return nil, err
	}
	f.xMin, f.xMax = wholeRange(runs)
	top := max(values.top, topOf(e.Figures.Reference, c.name))
	unit, scale := axisUnit(c.unit, top)
	for _, overlaid := range overEngines(runs, c.dashed == nil) {
		first := overlaid[0]
		p := f.newPlot(c.yLabel+" ("+unit+")", 0, headroom(top*scale))
		label := c.addSolid(f, p, overlaid, values, scale)
		c.addDashed(f, p, values.dashed[first.Label], scale)
		addReferences(p, referencesOf(e, c.name, first), scale, c.objects, notStacked)
		p.Add(&panelLabel{text: label})
		f.panels = append(f.panels, panel{plot: p, height: panelHeight, run: first.Label})
	}
	return f, nil
}

// curveValues are the timelines of a figure's objects, in their order, by the label of the run.
type curveValues struct {
	solid, dashed map[string][]result.Timeline
	top           float64 // the largest value
}

// valuesOf reads the timelines of all runs.
func (c curves) valuesOf(runs []runView) (curveValues, error) {
	v := curveValues{
		solid: make(map[string][]result.Timeline), dashed: make(map[string][]result.Timeline),
	}
	for _, r := range runs {
		for _, kind := range []struct {
			of    func(runView) timelineOf
			drawn map[string][]result.Timeline
		}{{c.solid, v.solid}, {c.dashed, v.dashed}} {
			if kind.of == nil {
				continue
			}
			for _, object := range c.objects {
				t, err := kind.of(r)(object)
				if err != nil {
					return v, fmt.Errorf("%s of run %s: %w", strings.ToLower(c.title), r.Label, err)
				}
				kind.drawn[r.Label] = append(kind.drawn[r.Label], t)
				v.top = max(v.top, t.Max())
			}
		}
	}
	return v, nil
}

// addSolid adds the solid curves of the first run, and those of other engines over them. It returns
// the panel's label, which tells them apart.
func (c curves) addSolid(
	f *figure, p *plotted, overlaid []runView, values curveValues, scale float64,
) (label string) {
	label = overlaid[0].Label
	for n, r := range overlaid {
		engine := r.Manifest.RanOn()
		line := lineOf(engine, n == 0)
		if n > 0 {
			label += fmt.Sprintf("; %s: %s", line.name, engine)
		}
		for i, t := range values.solid[r.Label] {
			drawn := &curve{points: pointsOf(t, scale, f.xMin, f.xMax), name: c.objects[i],
				swatch: swatch{line: flowColors[i%len(flowColors)], dashes: line.dashes}}
			if len(overlaid) > 1 {
				drawn.note = string(engine)
			}
			p.Add(drawn)
		}
	}
	return label
}

// addDashed adds the dashed curves of a run. Those that are always 0 are of a scheme that has no
// such value: a sender that has a rate never stops.
func (c curves) addDashed(f *figure, p *plotted, dashed []result.Timeline, scale float64) {
	for i, t := range dashed {
		if t.Max() == 0 {
			continue
		}
		p.Add(&curve{points: pointsOf(t, scale, f.xMin, f.xMax), name: c.objects[i],
			note:   sendersRate,
			swatch: swatch{line: flowColors[i%len(flowColors)], dashes: dashes}})
	}
}

// engineLine is how the curves of an engine are drawn.
type engineLine struct {
	name   string
	dashes []vg.Length
}

// lineOf returns the line of an engine whose curves share a panel with others': the first is solid,
// theory is dashed, and packets are dotted. Theory is not the first, see overEngines.
func lineOf(engine experiment.Engine, first bool) engineLine {
	switch {
	case first:
		return engineLine{"solid", nil}
	case engine == experiment.EngineFluid:
		return engineLine{"dashed", dashes}
	}
	return engineLine{"dotted", []vg.Length{vg.Points(1), vg.Points(1.5)}}
}

// overEngines groups the runs that differ only in their engine, in the order of
// [experiment.Engines]. Without overlay, each run is a group of its own.
func overEngines(runs []runView, overlay bool) [][]runView {
	var groups [][]runView
	for _, r := range runs {
		i := slices.IndexFunc(groups, func(g []runView) bool {
			return overlay && g[0].IsOtherEngine(r.Run)
		})
		if i < 0 {
			groups = append(groups, []runView{r})
			continue
		}
		groups[i] = append(groups[i], r)
	}
	engines := experiment.Engines()
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b runView) int {
			return slices.Index(engines, a.Manifest.RanOn()) -
				slices.Index(engines, b.Manifest.RanOn())
		})
	}
	return groups
}

// queuedPorts returns the ports with the longest queues over all runs.
func queuedPorts(runs []runView) []string {
	return mostOf(runs, func(r runView, add func(string, float64)) {
		for _, s := range r.Series {
			if s.Kind == result.KindPort && s.QueueMaxBytes > 0 {
				add(s.Name, float64(s.QueueMaxBytes))
			}
		}
	})
}
