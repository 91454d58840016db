// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// The reds of PAUSE in PCN, Fig. 2(a): of the link at the back, and of the one in front.
var (
	pauseLight = color.RGBA{R: 0xde, G: 0xaf, B: 0xad, A: 0xff}
	pauseDark  = color.RGBA{R: 0x85, G: 0x00, B: 0x00, A: 0xff}
)

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
		caption: fmt.Sprintf("PAUSE frames sent on each link. Below, the share of each %s in which "+
			"the link was paused (blank: none, full colour: all of it). "+repeatNote, e.Sample),
		xLabel: "Time (ms)",
	}
	for i, link := range links {
		f.legend = append(f.legend, legendEntry{link, swatch{fill: shade(i, len(links))}})
	}
	f.xMin, f.xMax = wholeRange(runs)
	top := 0.0
	for _, r := range runs {
		for _, link := range links {
			top = max(top, r.PauseRate(link).Max()/1e6)
		}
	}
	event, none := "PAUSE stops hosts", "No PAUSE stops a host"
	var values []namedValue
	for _, r := range runs {
		span := hostSpan(e, r, links)
		f.panels = append(f.panels, pausePanel(f, r, links, headroom(top), span),
			stripPanel(f, r, links))
		stopped := span.to - span.from
		if !span.drawn {
			event, none = "PAUSE stops "+links[0], "No PAUSE stops "+links[0]
			stopped = lengthOf(r.PausedIntervals(links[0]))
		}
		values = append(values, namedValue{who: r.Label, value: float64(stopped),
			unit: experiment.UnitTime})
	}
	f.sentence = none
	if slices.ContainsFunc(values, func(v namedValue) bool { return v.value > 0 }) {
		f.sentence = sentenceOf(event+" for", values)
	}
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
const repeatNote = "Frames are counted as if switches repeated PAUSE: with each packet that " +
	"finds the buffer above XOFF, and every 2.5us in between. In this emulation one PAUSE holds " +
	"until RESUME."

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
		span.text = "PAUSE stops hosts for " + formatTime(span.to-span.from)
	case slices.ContainsFunc(links, isPaused):
		span.text = "no PAUSE stops a host"
	default:
		span.text = noneOf(r, links)
	}
	return span
}

// noneOf says that no link of the figure is paused, and how many others of the network are.
func noneOf(r runView, links []string) string {
	others := map[string]bool{}
	for _, e := range r.PFC {
		if e.Kind == result.Pause {
			others[network.PortName(e.From, e.To)] = true
		}
	}
	switch {
	case len(others) == 0:
		return "no link is ever paused"
	case len(links) == 1:
		return fmt.Sprintf("%s is never paused; %d other links are", links[0], len(others))
	}
	return fmt.Sprintf("none of these links is paused; %d others are", len(others))
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
