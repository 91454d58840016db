// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/network"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// maxDrawn is the largest number of objects in a figure if the experiment does not choose them.
const maxDrawn = 6

// Heights of the panels, in points.
const (
	pauseHeight vg.Length = 88
	stripHeight vg.Length = 10 // for each link
	panelHeight vg.Length = 112
)

// The first colours are those of PCN, Fig. 2.
var (
	flowColors = []color.Color{
		color.RGBA{R: 0x9b, G: 0x1c, B: 0x1c, A: 0xff},
		color.RGBA{R: 0x2b, G: 0x35, B: 0xc9, A: 0xff},
		color.RGBA{R: 0x1d, G: 0x7a, B: 0x3a, A: 0xff},
		color.RGBA{R: 0xb8, G: 0x6e, B: 0x00, A: 0xff},
		color.RGBA{R: 0x6a, G: 0x2c, B: 0x91, A: 0xff},
		color.RGBA{R: 0x00, G: 0x7c, B: 0x8a, A: 0xff},
	}
	pauseLight = color.RGBA{R: 0xde, G: 0xaf, B: 0xad, A: 0xff}
	pauseDark  = color.RGBA{R: 0x85, G: 0x00, B: 0x00, A: 0xff}
)

// figuresOf draws every figure that the runs have data for. Figures over time show only the first
// case.
func figuresOf(g groupView) ([]*figure, error) {
	figures, err := timeFigures(g.Cases[0], len(g.Cases))
	if err != nil {
		return nil, err
	}
	for _, o := range g.Compared {
		figures = append(figures, compareFigure(o))
	}
	figures = append(figures, caseFigures(g)...)
	return append(figures, workloadFigures(g.Cases[0], len(g.Cases))...), nil
}

// figureViews prepares figures for a page. Names of their files start with the prefix.
func figureViews(prefix string, figures []*figure) ([]figureView, error) {
	var views []figureView
	for i, f := range figures {
		svg, err := f.svg()
		if err != nil {
			return nil, err
		}
		views = append(views, figureView{Title: fmt.Sprintf("(%s) %s.", letters(i), f.heading()),
			Caption: f.caption, drawn: svg, File: prefix + letters(i) + "-" + fileName(f.title),
			figure: f, live: f.live()})
	}
	return views, nil
}

// timeFigures draws the figures over time of a case. If there are several cases, captions say so.
func timeFigures(c caseView, cases int) ([]*figure, error) {
	var figures []*figure
	for _, draw := range []func(*experiment.Experiment, []runView) (*figure, error){
		pauseFigure, throughputFigure, queueFigure, statesFigure, sendRateFigure, portRateFigure,
	} {
		f, err := draw(c.Experiment, c.Runs)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		if cases > 1 {
			f.caption += fmt.Sprintf(" Case %s only, the first of %d.", c.Name, cases)
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// letters returns the i-th of a to z, aa, ab and so on.
func letters(i int) string {
	last := string(rune('a' + i%26))
	if i < 26 {
		return last
	}
	return letters(i/26-1) + last
}

// pauseFigure draws PCN, Fig. 2(a). A strip below each panel shows the share of time in which a
// link was paused. It returns nil if there is no link to draw.
func pauseFigure(e *experiment.Experiment, runs []runView) (*figure, error) {
	links := e.Figures.Pause
	if links == nil {
		links = pausedLinks(runs)
	}
	if len(links) == 0 {
		return nil, nil
	}
	f := &figure{
		title: "PAUSE rate",
		caption: fmt.Sprintf("PAUSE frames sent on each link. Below, the share of each %s in "+
			"which the link was paused (blank: none, full colour: all of it). "+repeatNote, e.Sample),
		xLabel: "Time (ms)",
	}
	for i, link := range links {
		f.legend = append(f.legend, legendEntry{link, swatch{fill: shade(i, len(links))}})
	}
	f.xMin, f.xMax = activeRange(runs, func(r runView) []result.Timeline {
		var active []result.Timeline
		for _, link := range links {
			active = append(active, r.PausedShare(link), r.PauseRate(link))
		}
		return active
	})
	top := 0.0
	for _, r := range runs {
		for _, link := range links {
			top = max(top, r.PauseRate(link).Max()/1e6)
		}
	}
	subject, values := "PAUSE reaches hosts for", []namedValue(nil)
	for _, r := range runs {
		span := hostSpan(e, r, links)
		f.panels = append(f.panels, pausePanel(f, r, links, headroom(top), span),
			stripPanel(f, r, links))
		stopped := span.to - span.from
		if !span.drawn {
			subject, stopped = "PAUSE stops "+links[0]+" for", lengthOf(r.PausedIntervals(links[0]))
		}
		values = append(values, namedValue{who: r.Label, value: float64(stopped),
			unit: experiment.UnitTime})
	}
	f.sentence = sentenceOf(subject, values)
	return f, nil
}

// lengthOf returns the sum of intervals, in ns.
func lengthOf(times []result.Interval) (ns int64) {
	for _, t := range times {
		ns += t.ToNs - t.FromNs
	}
	return ns
}

func pausePanel(f *figure, r runView, links []string, top float64, span hostPause) panel {
	p := f.newPlot("PAUSE rate (Mpps)", 0, top)
	for i, link := range links {
		high := pointsOf(r.PauseRate(link), 1e-6, f.xMin, f.xMax)
		p.Add(&area{low: zeros(high), high: high, fill: shade(i, len(links)),
			line: color.Gray{Y: 0x70}, name: link})
	}
	label := r.Label
	if span.drawn {
		label += ": " + span.text
		p.Add(&arrow{from: toMs(span.from), to: toMs(span.to), y: arrowAt * top})
	}
	p.Add(&panelLabel{text: label})
	return panel{plot: p, height: pauseHeight, run: r.Label}
}

func stripPanel(f *figure, r runView, links []string) panel {
	p := f.newPlot("", 0, float64(len(links)))
	var ticks []plot.Tick
	for i, link := range links {
		row := float64(len(links) - 1 - i)
		p.Add(&strip{share: r.PausedShare(link), row: row, fill: pauseDark})
		ticks = append(ticks, plot.Tick{Value: row + 0.5, Label: link})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Label.Font.Size = vg.Points(7)
	return panel{plot: p, height: stripHeight * vg.Length(len(links)), closeToAbove: true,
		run: r.Label}
}

// repeatNote explains the counts of PAUSE frames in captions.
const repeatNote = "Frames are counted as if switches repeated PAUSE: with each packet that finds " +
	"the buffer above XOFF, and every 2.5us in between. In this emulation one PAUSE holds until RESUME."

// hostPause is the time in which PAUSE reached hosts.
type hostPause struct {
	drawn    bool
	text     string
	from, to int64 // ns
}

// hostSpan returns the time from the first to the last PAUSE at a host, which PCN, Fig. 2(a) shows
// as arrows. It is not drawn if no link of the figure ends at a host.
func hostSpan(e *experiment.Experiment, r runView, links []string) hostPause {
	hosts := e.Topology.Network().Hosts
	var span hostPause
	found := false
	for _, link := range links {
		_, to, _ := network.SplitPort(link)
		if !slices.Contains(hosts, to) {
			continue
		}
		span.drawn = true
		for _, paused := range r.PausedIntervals(link) {
			if !found {
				span.from, span.to, found = paused.FromNs, paused.ToNs, true
			}
			span.from, span.to = min(span.from, paused.FromNs), max(span.to, paused.ToNs)
		}
	}
	isPaused := func(link string) bool { return len(r.PausedIntervals(link)) > 0 }
	switch {
	case found:
		span.text = "PAUSE reaches hosts for " + formatTime(span.to-span.from)
	case slices.ContainsFunc(links, isPaused):
		span.text = "no PAUSE reaches a host"
	default:
		span.text = "never paused"
	}
	return span
}

// pausedLinks returns the links with the most PAUSE frames over all runs.
func pausedLinks(runs []runView) []string {
	return mostOf(runs, func(r runView, add func(string, float64)) {
		for _, e := range r.PFC {
			if e.Kind == result.Pause {
				add(network.PortName(e.From, e.To), 1)
			}
		}
	})
}

// throughputFigure draws PCN, Fig. 2(b). It returns nil if there is no flow to draw.
func throughputFigure(e *experiment.Experiment, runs []runView) (*figure, error) {
	flows := e.Figures.Throughput
	if flows == nil {
		for _, g := range e.FlowGroups {
			flows = append(flows, g.Name)
		}
		flows = flows[:min(len(flows), maxDrawn)]
	}
	if len(flows) == 0 {
		return nil, nil
	}
	sum := strings.Join(flows, "+")
	f := &figure{
		title: "Throughput",
		caption: fmt.Sprintf("%s, stacked. Throughput loss is the time until their sum stays at "+
			"or above 95%% of its value before t = 0. The sum exceeds a link that the flows "+
			"share where switches behind it send what they had stored.",
			strings.Join(flows, " over ")),
		xLabel: "Time (ms)",
	}
	for i, flow := range flows {
		f.legend = append(f.legend, legendEntry{flow, hatchOf(i)})
	}
	var losses, means []namedValue
	top := 0.0
	for _, r := range runs {
		total, err := r.FlowRate(sum)
		if err != nil {
			return nil, fmt.Errorf("throughput of run %s: %w", r.Label, err)
		}
		top = max(top, total.Max())
		means = append(means, namedValue{who: r.Label, value: meanFrom0(total),
			unit: experiment.UnitRate})
		if _, until, ok := throughputLoss(total); ok {
			losses = append(losses, namedValue{who: r.Label, value: float64(until),
				unit: experiment.UnitTime, most: until == total.TimeNs(len(total.Values))})
		}
	}
	f.sentence = cmp.Or(sentenceOf("Throughput is lost for", losses),
		sentenceOf("On average the flows receive", means))
	top = max(top, topOf(e.Figures.Reference, experiment.FigureThroughput))
	f.xMin, f.xMax = wholeRange(runs)
	for _, r := range runs {
		p, err := throughputPanel(f, r, flows, headroom(top*1e-9))
		if err != nil {
			return nil, fmt.Errorf("throughput of run %s: %w", r.Label, err)
		}
		addReferences(p.plot, referencesOf(e, experiment.FigureThroughput, r), 1e-9, flows,
			stackedBelow(r, flows))
		f.panels = append(f.panels, p)
	}
	return f, nil
}

func throughputPanel(f *figure, r runView, flows []string, top float64) (panel, error) {
	p := f.newPlot("Throughput (Gbit/s)", 0, top)
	layers, err := stack(r, flows, f.xMin, f.xMax)
	if err != nil {
		return panel{}, err
	}
	for _, layer := range layers {
		p.Add(layer)
	}
	total, err := r.FlowRate(strings.Join(flows, "+"))
	if err != nil {
		return panel{}, err
	}
	label := r.Label
	if text, until, ok := throughputLoss(total); ok {
		label += ": " + text
		p.Add(&arrow{from: 0, to: toMs(until), y: arrowAt * top})
	}
	p.Add(&panelLabel{text: label})
	return panel{plot: p, height: panelHeight, run: r.Label}, nil
}

// stack returns the rates of flows in Gbit/s as layers, with the last flow at the bottom.
func stack(r runView, flows []string, xMin, xMax float64) ([]*area, error) {
	var layers []*area
	var low []point
	for i := len(flows) - 1; i >= 0; i-- {
		t, err := r.FlowRate(strings.Join(flows[i:], "+"))
		if err != nil {
			return nil, err
		}
		high := pointsOf(t, 1e-9, xMin, xMax)
		if low == nil {
			low = zeros(high)
		}
		hatch := hatchOf(i)
		layers = append(layers, &area{low: low, high: high, hatch: hatch.spacing, line: hatch.line,
			name: flows[i], stacked: true})
		low = high
	}
	return layers, nil
}

// stackedBelow returns a function for the total rate of the flows below a flow at a time.
func stackedBelow(r runView, flows []string) func(flow string, ns int64) float64 {
	return func(flow string, ns int64) float64 {
		i := slices.Index(flows, flow)
		if i < 0 || i == len(flows)-1 {
			return 0
		}
		t, err := r.FlowRate(strings.Join(flows[i+1:], "+"))
		bin := (ns - t.StartNs) / max(t.StepNs, 1)
		if err != nil || bin < 0 || bin >= int64(len(t.Values)) {
			return 0
		}
		return t.Values[bin]
	}
}

// throughputLoss returns the time in which a rate is below 95% of its mean in the 0.5 ms before t =
// 0, as text, and its end. It returns false if the warm-up is shorter than that.
func throughputLoss(total result.Timeline) (text string, untilNs int64, ok bool) {
	const holdNs = 500_000
	before, bins := 0.0, 0
	for i, v := range total.Values {
		if t := total.TimeNs(i); t >= -holdNs && t < 0 {
			before += v
			bins++
		}
	}
	if int64(bins)*total.StepNs < holdNs {
		return "", 0, false
	}
	lost, err := total.RecoveryNs(0.95*before/float64(bins), 0, holdNs)
	switch {
	case err != nil:
		return "throughput loss until the end", total.TimeNs(len(total.Values)), true
	case lost == 0:
		return "no throughput loss", 0, true
	default:
		return "throughput loss " + formatTime(lost), lost, true
	}
}

// queueFigure draws the longest queue in each bin. It returns nil if there is no port to draw.
func queueFigure(e *experiment.Experiment, runs []runView) (*figure, error) {
	ports := e.Figures.Queues
	if ports == nil {
		ports = queuedPorts(runs)
	}
	f, err := curveFigure(e, runs, curves{
		name: experiment.FigureQueue, title: "Queue length", yLabel: "Queue",
		unit: experiment.UnitBytes, objects: ports, untilActive: true,
		caption: fmt.Sprintf("Longest queue of the egress port in each %s.", e.Sample),
		solid:   func(r runView) timelineOf { return r.QueueMax },
	})
	if f != nil {
		f.sentence = queueSentence(runs, ports)
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
		f.sentence = meanSentence("On average "+flow+" receives", runs,
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
		f.sentence = meanSentence("On average "+port+" sends", runs, rateOf, port)
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
	untilActive    bool                       // end the time axis after the last activity
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
	solid := make(map[string][]result.Timeline) // by label of the run
	dashed := make(map[string][]result.Timeline)
	top := topOf(e.Figures.Reference, c.name)
	for _, r := range runs {
		for _, kind := range []struct {
			of    func(runView) timelineOf
			drawn map[string][]result.Timeline
		}{{c.solid, solid}, {c.dashed, dashed}} {
			for _, object := range c.objects {
				if kind.of == nil {
					continue
				}
				t, err := kind.of(r)(object)
				if err != nil {
					return nil, fmt.Errorf("%s of run %s: %w", strings.ToLower(c.title), r.Label,
						err)
				}
				kind.drawn[r.Label] = append(kind.drawn[r.Label], t)
				top = max(top, t.Max())
			}
		}
	}
	f.xMin, f.xMax = wholeRange(runs)
	if c.untilActive {
		f.xMin, f.xMax = activeRange(runs,
			func(r runView) []result.Timeline { return solid[r.Label] })
	}
	unit, scale := axisUnit(c.unit, top)
	for _, overlaid := range overEngines(runs, c.dashed == nil) {
		r := overlaid[0]
		p := f.newPlot(c.yLabel+" ("+unit+")", 0, headroom(top*scale))
		label := r.Label
		for n, other := range overlaid {
			line := lineOf(other.Manifest.RanOn(), n == 0)
			if n > 0 {
				label += fmt.Sprintf("; %s: %s", line.name, other.Manifest.RanOn())
			}
			for i, t := range solid[other.Label] {
				drawn := &curve{points: pointsOf(t, scale, f.xMin, f.xMax), name: c.objects[i],
					swatch: swatch{line: flowColors[i%len(flowColors)], dashes: line.dashes}}
				if len(overlaid) > 1 {
					drawn.note = string(other.Manifest.RanOn())
				}
				p.Add(drawn)
			}
		}
		for i, t := range dashed[r.Label] {
			if t.Max() == 0 {
				continue // the scheme has no such value: a sender that has a rate never stops
			}
			p.Add(&curve{points: pointsOf(t, scale, f.xMin, f.xMax), name: c.objects[i],
				note:   sendersRate,
				swatch: swatch{line: flowColors[i%len(flowColors)], dashes: dashes}})
		}
		addReferences(p, referencesOf(e, c.name, r), scale, c.objects, notStacked)
		p.Add(&panelLabel{text: label})
		f.panels = append(f.panels, panel{plot: p, height: panelHeight, run: r.Label})
	}
	return f, nil
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

// mostOf returns the names with the largest totals, largest first.
func mostOf(runs []runView, count func(r runView, add func(name string, amount float64))) []string {
	totals := make(map[string]float64)
	for _, r := range runs {
		count(r, func(name string, amount float64) { totals[name] += amount })
	}
	var names []string
	for name := range totals {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(-cmp.Compare(totals[a], totals[b]), cmp.Compare(a, b))
	})
	return names[:min(len(names), maxDrawn)]
}

// wholeRange returns the time from the first start to the last end of a run, in ms.
func wholeRange(runs []runView) (from, to float64) {
	for _, r := range runs {
		from = min(from, toMs(-r.Manifest.WarmupNs))
		to = max(to, toMs(r.Manifest.DurationNs))
	}
	return from, to
}

// activeRange returns the time from just before t = 0 until just after the last bin in which a
// timeline of any run is above 1% of its maximum, in ms.
func activeRange(runs []runView, timelines func(runView) []result.Timeline) (from, to float64) {
	whole, end := wholeRange(runs)
	last := 0.0
	for _, r := range runs {
		for _, t := range timelines(r) {
			top := t.Max()
			for i, v := range t.Values {
				if v > 0.01*top {
					last = max(last, toMs(t.TimeNs(i+1)))
				}
			}
		}
	}
	if last == 0 {
		return whole, end
	}
	return max(whole, -0.05*last), min(end, 1.08*last)
}

func toMs(ns int64) float64 {
	return float64(ns) / 1e6
}

// arrowAt is the position of arrows as a share of a panel's height: between the data and the label.
const arrowAt = 0.74

// headroom returns the upper end of an axis, with room above the data for the label and the arrow.
func headroom(top float64) float64 {
	if top == 0 {
		return 1
	}
	return 1.5 * top
}

// shade returns the i-th of n reds, from light at the back to dark at the front.
func shade(i, n int) color.Color {
	if n < 2 {
		return pauseLight
	}
	mix := func(a, b uint8) uint8 {
		return uint8((int(a)*(n-1-i) + int(b)*i) / (n - 1))
	}
	return color.RGBA{
		R: mix(pauseLight.R, pauseDark.R),
		G: mix(pauseLight.G, pauseDark.G),
		B: mix(pauseLight.B, pauseDark.B),
		A: 0xff,
	}
}

// hatchOf returns the hatching of the i-th flow: alternately wide and narrow, as in the PCN paper.
func hatchOf(i int) swatch {
	spacing := vg.Points(6)
	if i%2 == 1 {
		spacing = vg.Points(3)
	}
	return swatch{line: flowColors[i%len(flowColors)], spacing: spacing}
}
