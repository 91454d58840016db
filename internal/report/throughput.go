// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

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
		title:  "Throughput",
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
	f.caption = strings.Join(flows, " over ") + ", stacked."
	together, whole := "the flows together receive", "their sum"
	if len(flows) == 1 {
		f.caption, together, whole = flows[0]+".", flows[0]+" receives", "it"
	}
	if len(losses) > 0 {
		f.caption += " Throughput is lost until " + whole + " is back at 95% of what it was " +
			"before t = 0."
	}
	shared, err := sharedRate(e, flows)
	if err != nil {
		return nil, err
	}
	if shared > 0 && top > moreThan*shared {
		f.caption += " The sum exceeds a link that the flows share where switches behind it send " +
			"what they had stored."
	}
	f.sentence = cmp.Or(sentenceOf("Throughput is lost for", losses),
		sentenceOf("On average "+together, means))
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

// moreThan is how much of a link's rate is more than it: chance decides whether a packet is in a
// bin or in the next.
const moreThan = 1.01

// sharedRate returns the rate of the slowest link that all these flows take in the same direction,
// in bit/s; 0 if there is none, or if flows may take several paths.
func sharedRate(e *experiment.Experiment, drawn []string) (float64, error) {
	n := e.Topology.Network()
	routes, err := n.Routes()
	if err != nil {
		return 0, fmt.Errorf("draw throughput: %w", err)
	}
	if routes.MostPaths() > 1 {
		return 0, nil
	}
	number := n.Numbers()
	type hop struct{ from, to string }
	var shared map[hop]uint64 // rates
	for _, flow := range e.Flows {
		if !slices.Contains(drawn, flow.Name) && !slices.Contains(drawn, flow.Group) {
			continue
		}
		taken, at := map[hop]uint64{}, flow.From
		for _, l := range routes.Path(number[flow.From], number[flow.To]) {
			h := hop{at, l.Peer(at)}
			if _, ok := shared[h]; ok || shared == nil {
				taken[h] = l.RateBps
			}
			at = h.to
		}
		if shared = taken; len(shared) == 0 {
			break
		}
	}
	if len(shared) == 0 {
		return 0, nil
	}
	return float64(slices.Min(slices.Collect(maps.Values(shared)))), nil
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

// throughputLoss returns the [experiment.RecoveryTime] of a rate since t = 0, to 95% of its mean in
// the 0.5 ms before, as text, and its end. It returns false if the warm-up is shorter than that.
// Metrics name their target, mostly a share of a link, so theirs may be another time.
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

// hatchOf returns the hatching of the i-th flow: alternately wide and narrow, as in the PCN paper.
func hatchOf(i int) swatch {
	spacing := vg.Points(6)
	if i%2 == 1 {
		spacing = vg.Points(3)
	}
	return swatch{line: flowColors[i%len(flowColors)], spacing: spacing}
}
