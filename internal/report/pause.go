// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// The shades of links that carry PAUSE frames: of the one at the back, and of the one in front. No
// flow and no state of a port has this hue.
var (
	pauseLight = color.RGBA{R: 0x3f, G: 0xa3, B: 0x9c, A: 0xff}
	pauseDark  = color.RGBA{R: 0x00, G: 0x3d, B: 0x3d, A: 0xff}
)

// pausedTime is the legend's entry of strips.
const pausedTime = "paused"

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
		caption: fmt.Sprintf("PAUSE frames sent on each link, which stop the node at its end. "+
			"Below, the share of each %s in which it was paused (blank: none, full colour: all of "+
			"it). "+repeatNote, e.Sample),
		xLabel: "Time (ms)",
	}
	for i, link := range links {
		f.legend = append(f.legend, legendEntry{link, swatch{fill: shade(i, len(links))}})
	}
	f.legend = append(f.legend, legendEntry{pausedTime, swatch{fill: pausedColor}})
	f.xMin, f.xMax = wholeRange(runs)
	top := 0.0
	for _, r := range runs {
		for _, link := range links {
			top = max(top, r.PauseRate(link).Max()/1e6)
		}
	}
	subject, none := "Added up, the links drawn are paused for", "No link drawn is paused"
	hosts := hostsOf(e, links)
	switch {
	case len(hosts) > 0:
		named := hostsInWords(hosts, "or", "the hosts drawn")
		subject, none = "From the first to the last PAUSE of "+named+":", "No PAUSE stops "+named
	case len(links) == 1:
		subject = "The link " + links[0] + " is paused for"
		none = "The link " + links[0] + " is never paused"
	}
	var values []namedValue
	for _, r := range runs {
		span := hostSpan(e, r, links)
		f.panels = append(f.panels, pausePanel(f, r, links, headroom(top), span),
			stripPanel(f, r, links))
		length := span.to - span.from
		if len(hosts) == 0 {
			for _, link := range links {
				length += lengthOf(r.PausedIntervals(link))
			}
		}
		values = append(values, namedValue{who: r.Label, value: float64(length),
			unit: experiment.UnitTime})
	}
	f.sentence = none
	if slices.ContainsFunc(values, func(v namedValue) bool { return v.value > 0 }) {
		f.sentence = sentenceOf(subject, values)
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
	if span.text != "" {
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
		p.Add(&strip{share: r.PausedShare(link), row: row, fill: pausedColor,
			name: pausedTime})
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
	text     string // "" if no link of the figure ends at a host
	from, to int64  // ns
}

// hostSpan returns the time from the first to the last PAUSE at the hosts of a figure's links,
// which PCN, Fig. 2(a) shows as arrows. Between the two, hosts may send.
func hostSpan(e *experiment.Experiment, r runView, links []string) hostPause {
	hosts := hostsOf(e, links)
	var span hostPause
	var paused []string
	for _, link := range links {
		_, to, _ := network.SplitPort(link)
		times := r.PausedIntervals(link)
		if len(times) == 0 || !slices.Contains(hosts, to) {
			continue
		}
		if paused == nil {
			span.from, span.to = times[0].FromNs, times[0].ToNs
		}
		if !slices.Contains(paused, to) {
			paused = append(paused, to)
		}
		for _, t := range times {
			span.from, span.to = min(span.from, t.FromNs), max(span.to, t.ToNs)
		}
	}
	switch {
	case paused != nil:
		span.text = formatTime(span.to-span.from) + " from the first to the last PAUSE of " +
			hostsInWords(paused, "and", fmt.Sprintf("%d hosts", len(paused)))
	case len(hosts) > 0:
		span.text = noneOf(e.Topology.Network().Hosts, r, links, hosts)
	}
	return span
}

// noneOf says that PAUSE stops no host of a figure, and whom it stops on links that are not drawn.
func noneOf(all []string, r runView, links, hosts []string) string {
	names := hostsInWords(hosts, "or", "the hosts drawn")
	var others []string
	ports := map[string]bool{}
	for _, e := range r.PFC {
		link := network.PortName(e.From, e.To)
		_, to, _ := network.SplitPort(link)
		switch {
		case e.Kind != result.Pause || slices.Contains(links, link):
		case !slices.Contains(all, to):
			ports[link] = true
		case !slices.Contains(others, to):
			others = append(others, to)
		}
	}
	var stopped []string
	if len(others) > 0 {
		stopped = append(stopped, rangesInWords(others, all))
	}
	switch len(ports) {
	case 0:
	case 1:
		stopped = append(stopped, "1 other port of a switch")
	default:
		stopped = append(stopped, fmt.Sprintf("%d other ports of switches", len(ports)))
	}
	if stopped == nil {
		return "no PAUSE stops " + names
	}
	return "PAUSE stops " + listInWords(stopped) + ", not " + names
}

// hostsOf returns the hosts at which links of the experiment's network end.
func hostsOf(e *experiment.Experiment, links []string) []string {
	all := e.Topology.Network().Hosts
	var hosts []string
	for _, link := range links {
		_, to, _ := network.SplitPort(link)
		if slices.Contains(all, to) && !slices.Contains(hosts, to) {
			hosts = append(hosts, to)
		}
	}
	return hosts
}

// hostsInWords names hosts, or calls them something else if they are many.
func hostsInWords(hosts []string, joint, many string) string {
	if len(hosts) > maxListed {
		return many
	}
	return joined(hosts, joint)
}

// rangesInWords names some of all hosts as experiments do, such as H2..H15, or counts them.
func rangesInWords(some, all []string) string {
	kind := func(host string) string { return strings.TrimRight(host, "0123456789") }
	var ranges []string
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && slices.Contains(some, all[to]) && kind(all[to]) == kind(all[from]) {
			to++
		}
		switch to - from {
		case 0:
			from++
			continue
		case 1:
			ranges = append(ranges, all[from])
		default:
			ranges = append(ranges, all[from]+".."+all[to-1])
		}
		from = to
	}
	if len(ranges) > maxListed {
		return fmt.Sprintf("%d other hosts", len(some))
	}
	return listInWords(ranges)
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
