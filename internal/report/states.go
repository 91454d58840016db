// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Colours of a port's states, of detectors' marks, and of the ground truth.
var (
	stateColors = map[result.TCDState]color.RGBA{
		result.NonCongestion: {R: 0xd9, G: 0xe8, B: 0xd6, A: 0xff},
		result.Draining:      {R: 0x8f, G: 0xbd, B: 0x8a, A: 0xff},
		result.Undetermined:  undeterminedColor,
		result.Congestion:    congestedColor,
	}
	markColor  = color.RGBA{R: 0x2b, G: 0x35, B: 0xc9, A: 0xff}
	truthColor = color.RGBA{R: 0x7a, G: 0x3d, A: 0xff}
	stateNames = []result.TCDState{result.NonCongestion, result.Draining, result.Undetermined,
		result.Congestion}
)

// reallyCongested names the ground truth in the legend.
const reallyCongested = "really congested"

// markedPackets is the legend's entry of detectors' marks.
const markedPackets = "marked"

// drawnDetectors have a row each below TCD's state.
var drawnDetectors = []experiment.Detector{experiment.DetectPCN, experiment.DetectECN,
	experiment.DetectFECN}

// rowsOfPort is the number of rows of a port: TCD's state, the detectors and the ground truth.
var rowsOfPort = 2 + len(drawnDetectors)

// statesFigure draws the detectors' verdicts on each port over time, and the ground truth. It
// returns nil if no run has detectors.
func statesFigure(e *experiment.Experiment, runs []runView) (*figure, error) {
	ports := statePorts(e, runs)
	if len(ports) == 0 {
		return nil, nil
	}
	f := &figure{
		title: "Port states",
		caption: "For each port, from top to bottom: TCD's state of the port; the share of " +
			"packets marked by NP-ECN where PCN's receivers would react, by ECN, and by FECN, " +
			"even if the run uses another detector; and the times when the port is really congested, " +
			"computed from the rates of all senders in a network without pauses.",
		xLabel: "Time (ms)",
	}
	for _, s := range stateNames {
		f.legend = append(f.legend, legendEntry{string(s), swatch{fill: stateColors[s]}})
	}
	f.legend = append(f.legend, legendEntry{markedPackets, swatch{fill: markColor}},
		legendEntry{reallyCongested, swatch{fill: truthColor}})
	f.xMin, f.xMax = wholeRange(runs)
	really := map[string][]namedValue{} // by port
	for _, r := range runs {
		f.panels = append(f.panels, statesPanel(f, r, ports))
		for _, port := range ports {
			times := timesOf(r, r.StatesOf(port),
				func(x result.State) bool { return x.Congested })
			really[port] = append(really[port], namedValue{who: r.Label,
				value: float64(lengthOf(times)), unit: experiment.UnitTime})
		}
	}
	worst := slices.MaxFunc(ports, func(a, b string) int {
		return cmp.Compare(topValue(really[a]), topValue(really[b]))
	})
	f.sentence = sentenceOf(worst+" is really congested for", really[worst])
	return f, nil
}

// statePorts returns the ports of the queue figure that have states, else the first ports with
// states.
func statePorts(e *experiment.Experiment, runs []runView) []string {
	var all []string
	for _, r := range runs {
		for _, s := range r.States {
			if !slices.Contains(all, s.Port) {
				all = append(all, s.Port)
			}
		}
	}
	var ports []string
	for _, p := range e.Figures.Queues {
		if slices.Contains(all, p) {
			ports = append(ports, p)
		}
	}
	if ports == nil {
		ports = all[:min(len(all), maxDrawn)]
	}
	return ports
}

func statesPanel(f *figure, r runView, ports []string) panel {
	rows := rowsOfPort*len(ports) + 2 // two on top for the label
	p := f.newPlot("", 0, float64(rows))
	var ticks []plot.Tick
	at := float64(rows - 2)
	next := func(name string) float64 {
		at--
		ticks = append(ticks, plot.Tick{Value: at + 0.5, Label: name})
		return at
	}
	share := r.CongestedShare()
	for _, port := range ports {
		states := r.StatesOf(port)
		row := next(port + ": TCD")
		for _, s := range stateNames {
			p.Add(&bands{row: row, fill: stateColors[s], name: string(s),
				times: timesOf(r, states, func(x result.State) bool { return x.TCD == s })})
		}
		for _, d := range drawnDetectors {
			t := result.Timeline{StartNs: -r.Manifest.WarmupNs, StepNs: r.Manifest.SampleNs}
			for _, x := range states {
				t.Values = append(t.Values, float64(x.Marks(d, share))/float64(max(x.SentPackets,
					1)))
			}
			p.Add(&strip{share: t, row: next(detectorNames[d]), fill: markColor,
				name: markedPackets})
		}
		p.Add(&bands{row: next("congested"), fill: truthColor, name: reallyCongested,
			times: timesOf(r, states, func(x result.State) bool { return x.Congested })})
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Tick.Label.Font.Size = vg.Points(7)
	p.Add(&panelLabel{text: r.Label})
	return panel{plot: p, height: stripHeight * vg.Length(rows), run: r.Label}
}

var detectorNames = map[experiment.Detector]string{
	experiment.DetectPCN: "PCN", experiment.DetectECN: "ECN", experiment.DetectFECN: "FECN",
}

// timesOf returns the intervals in which a condition holds.
func timesOf(r runView, states []result.State, holds func(result.State) bool) []result.Interval {
	var times []result.Interval
	for _, s := range states {
		end := s.TimeNs + r.Manifest.SampleNs
		switch n := len(times); {
		case !holds(s):
		case n > 0 && times[n-1].ToNs == s.TimeNs:
			times[n-1].ToNs = end
		default:
			times = append(times, result.Interval{FromNs: s.TimeNs, ToNs: end})
		}
	}
	return times
}

// bands fills intervals in a row.
type bands struct {
	times []result.Interval
	row   float64 // lower end; the row is 1 high
	fill  color.RGBA
	name  string // the entry of the legend
}

// Plot implements [plot.Plotter].
func (b *bands) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	bottom, top := trY(b.row+0.12), trY(b.row+0.88)
	for _, t := range b.times {
		left, right := max(trX(toMs(t.FromNs)), c.Min.X), min(trX(toMs(t.ToNs)), c.Max.X)
		if left < right {
			c.FillPolygon(b.fill, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom},
				{X: right, Y: top}, {X: left, Y: top}})
		}
	}
}
