// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// This file draws the network over time: each port coloured by its state, and the paths of flows.
// Without scripts readers see a strip of a few moments; the script shows one with a slider.

const (
	maxViewNodes  = 100 // a larger network has a map of its ports
	maxViewFrames = 200 // bins are joined if there are more
	// A switch port that was never paused in a bin is congested if its queue reached this many
	// frames: a few frames meet by chance.
	congestedFrames = 10
)

// portState is what a port was in a bin of time. Where bins are joined, the largest counts.
type portState byte

// The states of ports, and their letters in the page's data.
const (
	portIdle         portState = '0'
	portCongested    portState = '1' // never paused, and a queue grew
	portUndetermined portState = '2' // paused at times: its queue may be others' fault
	portPaused       portState = '3' // paused for at least half of the bin
)

// The colours of the states of ports, in all figures. Readers who see few colours can tell them
// apart, too, and no flow has one of them.
var (
	congestedColor    = color.RGBA{R: 0xd8, G: 0x6c, B: 0x00, A: 0xff}
	undeterminedColor = color.RGBA{R: 0xe6, G: 0xb8, B: 0x00, A: 0xff}
	pausedColor       = color.RGBA{A: 0xff} // black; white on a dark page
)

// viewStates are the states with a colour. Their widths and dashes tell them apart without colours.
var viewStates = []struct {
	State portState `json:"-"`
	Name  string    `json:"name"`
	Color string    `json:"color"`
	Width float64   `json:"width"`
	Dash  string    `json:"dash"`
}{
	{portCongested, "congested", hex(congestedColor), 3, "none"},
	{portUndetermined, "undetermined", hex(undeterminedColor), 4, "5 3"},
	{portPaused, "paused", "currentColor", 5, "none"},
}

// netView is the view of the runs of one case.
type netView struct {
	ID     string
	Title  string
	Runs   []netRun
	Legend []netEntry
	Data   template.JS
}

type netEntry struct {
	Name  string
	Color string
	Width float64
	Dash  string
	Path  bool // a band that flows take
}

// netRun is one run: its moments without scripts.
type netRun struct {
	Label   string
	Moments []netMoment
}

type netMoment struct {
	Time string
	SVG  template.HTML
}

// netData is what the script needs. States has a string for each port that ever has a state: a
// letter and how many bins it holds, such as 0x20,3x5.
type netData struct {
	StartMs numeral    `json:"start"`
	StepMs  numeral    `json:"step"`
	Frames  int        `json:"frames"`
	Looks   any        `json:"looks"`
	Lines   [][4]int   `json:"lines"` // of each port: x1, y1, x2, y2
	Runs    [][]string `json:"runs"`
}

// netViewOf returns the view of the first case, or nil if the network is too large ([portMapOf]),
// or if no port of any run has a state.
func netViewOf(g groupView) (*netView, error) {
	c := g.Cases[0]
	n := c.Experiment.Topology.Network()
	if len(n.Nodes()) > maxViewNodes {
		return nil, nil
	}
	s := statesOf(c, n)
	if !slices.Contains(s.used, true) {
		return nil, nil
	}
	view := &netView{ID: g.ID + "-network", Title: "Network over time"}
	view.Legend = append(netLegend(), pathLegend(c.Experiment)...)
	d := newTopologyDrawing(n, false)
	base, err := d.baseOf(c, n)
	if err != nil {
		return nil, err
	}
	lines := d.portLines(n)
	moments := momentsOf(s.states, s.frames)
	for i, r := range c.Runs {
		run := netRun{Label: r.Label}
		for k, frame := range moments {
			body := fmt.Sprintf(`<use href="#%s"/>`, view.ID)
			if i == 0 && k == 0 {
				body = fmt.Sprintf(`<g id="%s" class="net-base">%s</g>`, view.ID, base)
			}
			// in whole ns: arm64 rounds a sum of products once, amd64 twice
			at := fmt.Sprintf("t = %.4g ms", toMs(s.stepNs*int64(frame)-s.warmupNs))
			run.Moments = append(run.Moments, netMoment{at, d.frameSVG(
				fmt.Sprintf("Network of %s at %s", r.Label, at), body, lines, s.states[i], frame)})
		}
		view.Runs = append(view.Runs, run)
	}
	encoded, err := json.Marshal(s.data(lines))
	if err != nil {
		return nil, fmt.Errorf("write the view of the network: %w", err)
	}
	view.Data = template.JS(encoded)
	return view, nil
}

func netLegend() (legend []netEntry) {
	for _, s := range viewStates {
		legend = append(legend, netEntry{s.Name, s.Color, s.Width, s.Dash, false})
	}
	return legend
}

// pathLegend names the flows whose paths are drawn.
func pathLegend(e *experiment.Experiment) (legend []netEntry) {
	for i, g := range drawnPaths(e) {
		name := "path of " + g.Name
		if len(g.From) > 1 || len(g.To) > 1 {
			name += "'s first flow"
		}
		legend = append(legend, netEntry{Name: name, Color: pathColor(i), Path: true})
	}
	return legend
}

// drawnPaths returns the groups of flows whose first flow has its path drawn.
func drawnPaths(e *experiment.Experiment) []experiment.FlowGroup {
	return e.FlowGroups[:min(len(e.FlowGroups), maxDrawn)]
}

func pathColor(group int) string { return hex(flowColors[group%len(flowColors)]) }

// netStates are the states of all ports over time, in frames of one bin or of several.
type netStates struct {
	frames           int
	stepNs, warmupNs int64           // length of a frame; the first begins at -warmupNs
	states           [][][]portState // by run, port and frame
	used             []bool          // by port: it has a state in a frame of a run
}

// statesOf returns the states of ports in the runs of a case.
func statesOf(c caseView, n *network.Network) netStates {
	m := c.Runs[0].Manifest
	bins := int((m.WarmupNs + m.DurationNs) / m.SampleNs)
	join := (bins + maxViewFrames - 1) / maxViewFrames
	ports := n.Ports()
	s := netStates{
		frames: (bins + join - 1) / join, stepNs: m.SampleNs * int64(join), warmupNs: m.WarmupNs,
		used: make([]bool, len(ports)),
	}
	for _, r := range c.Runs {
		states := portStates(r, n, ports, uint64(c.Experiment.Frame), s.frames, join)
		for p := range ports {
			s.used[p] = s.used[p] || slices.ContainsFunc(states[p], isState)
		}
		s.states = append(s.states, states)
	}
	return s
}

// data returns what the script needs, with the lines of ports.
func (s netStates) data(lines [][4]int) netData {
	data := netData{StartMs: numeral(toMs(-s.warmupNs)), StepMs: numeral(toMs(s.stepNs)),
		Frames: s.frames, Looks: viewStates}
	for p, used := range s.used {
		if used {
			data.Lines = append(data.Lines, lines[p])
		}
	}
	for _, states := range s.states {
		var packed []string
		for p, used := range s.used {
			if used {
				packed = append(packed, packStates(states[p]))
			}
		}
		data.Runs = append(data.Runs, packed)
	}
	return data
}

func isState(s portState) bool { return s != portIdle }

// portStates returns the state of each port in each frame, which is join bins.
func portStates(r runView, n *network.Network, ports []string, frameBytes uint64, frames,
	join int) [][]portState {
	number := make(map[string]int)
	states := make([][]portState, len(ports))
	for i, name := range ports {
		number[name] = i
		states[i] = slices.Repeat([]portState{portIdle}, frames)
	}
	hosts := make(map[string]bool)
	for _, h := range n.Hosts {
		hosts[h] = true
	}
	paused := make(map[string]result.Timeline) // by the port that stops
	for _, e := range r.PFC {
		from, to := ends(e)
		if _, ok := paused[from]; !ok {
			paused[from] = r.PausedShare(to)
		}
	}
	m := r.Manifest
	set := func(port, bin int, s portState) {
		if at := &states[port][min(bin/join, frames-1)]; s > *at {
			*at = s
		}
	}
	for port, share := range paused {
		p, ok := number[port]
		for bin, v := range share.Values {
			if ok && v >= 0.5 {
				set(p, bin, portPaused)
			}
		}
	}
	for _, s := range r.Series {
		p, ok := number[s.Name]
		node, _, _ := network.SplitPort(s.Name)
		if s.Kind != result.KindPort || !ok || hosts[node] ||
			s.QueueMaxBytes < congestedFrames*frameBytes {
			continue
		}
		bin := int((s.TimeNs + m.WarmupNs) / m.SampleNs)
		state := portCongested
		if t, ok := paused[s.Name]; ok && bin < len(t.Values) && t.Values[bin] > 0 {
			state = portUndetermined
		}
		set(p, bin, state)
	}
	return states
}

// ends returns the port that a PFC frame stops, and the link of the frame, which is the other way.
func ends(e result.PFCEvent) (port, link string) {
	to, suffix, found := strings.Cut(e.To, ".")
	if found {
		suffix = "." + suffix
	}
	return network.PortName(to, e.From+suffix), network.PortName(e.From, e.To)
}

// momentsOf returns frames in which congestion begins, is half grown, largest, and half gone, in
// the run with the most ports that have a state.
func momentsOf(states [][][]portState, frames int) []int {
	var most []int
	for _, run := range states {
		count := make([]int, frames)
		for _, port := range run {
			for i, s := range port {
				if isState(s) {
					count[i]++
				}
			}
		}
		if most == nil || slices.Max(count) > slices.Max(most) {
			most = count
		}
	}
	top := slices.Max(most)
	first := slices.IndexFunc(most, func(n int) bool { return n > 0 })
	half := slices.IndexFunc(most, func(n int) bool { return 2*n >= top })
	peak := slices.Index(most, top)
	last := peak
	for i, n := range most {
		if 2*n >= top {
			last = i
		}
	}
	moments := []int{first, half, peak, last}
	slices.Sort(moments)
	return slices.Compact(moments)
}

// packStates writes runs of equal states, such as 0x20,3x5.
func packStates(states []portState) string {
	var parts []string
	for i := 0; i < len(states); {
		k := i
		for k < len(states) && states[k] == states[i] {
			k++
		}
		parts = append(parts, string(states[i])+"x"+strconv.Itoa(k-i))
		i = k
	}
	return strings.Join(parts, ",")
}

// portLines returns where each port's line goes: the two of a link lie side by side, each from its
// node to the other. Coordinates are points from the upper left.
func (d *topologyDrawing) portLines(n *network.Network) [][4]int {
	var lines [][4]int
	for _, l := range n.Links {
		a, b := d.onPage(l.A), d.onPage(l.B)
		dx, dy := b[0]-a[0], b[1]-a[1]
		length := math.Max(math.Hypot(dx, dy), 1)
		// Lines end before the nodes, whose names they would cover.
		cutA, cutB := d.cut(l.A)/length, d.cut(l.B)/length
		a[0], a[1], b[0], b[1] = a[0]+cutA*dx, a[1]+cutA*dy, b[0]-cutB*dx, b[1]-cutB*dy
		for side := range 2 {
			off := 2.4 + 9*float64(parallel(l)) // points
			if side == 1 {
				off -= 4.8
			}
			ox, oy := -dy/length*off, dx/length*off
			line := [4]int{round(a[0] + ox), round(a[1] + oy), round(b[0] + ox), round(b[1] + oy)}
			if side == 1 {
				line = [4]int{line[2], line[3], line[0], line[1]}
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// cut returns how far from the middle of a node its lines end, in points.
func (d *topologyDrawing) cut(node string) float64 {
	if slices.Contains(d.tiers[0].Nodes, node) {
		return 5
	}
	return 13
}

func round(v float64) int { return int(math.Round(v)) }

// onPage returns the position of a node, in points from the upper left.
func (d *topologyDrawing) onPage(node string) [2]float64 {
	at := d.at[node]
	return [2]float64{at.X.Points(), (d.height - at.Y).Points()}
}

// baseOf draws what does not change: paths of flows, links and nodes.
func (d *topologyDrawing) baseOf(c caseView, n *network.Network) (string, error) {
	var b strings.Builder
	routes, err := n.Routes()
	if err != nil {
		return "", fmt.Errorf("draw the network: %w", err)
	}
	number := n.Numbers()
	groups := drawnPaths(c.Experiment)
	for i, g := range groups {
		from, to := g.From[0], g.To[0]
		var at []string
		node := from
		point := func(name string) {
			p := d.onPage(name)
			shift := 3.5 * (float64(i) - float64(len(groups)-1)/2)
			at = append(at, fmt.Sprintf("%.0f,%.0f", p[0]+shift, p[1]+shift))
		}
		point(node)
		for _, l := range routes.Path(number[from], number[to]) {
			node = l.Peer(node)
			point(node)
		}
		fmt.Fprintf(&b, `<polyline class="path" points="%s" stroke="%s"/>`, strings.Join(at, " "),
			pathColor(i))
	}
	for _, l := range n.Links {
		a, z := d.onPage(l.A), d.onPage(l.B)
		off := 9 * float64(parallel(l))
		fmt.Fprintf(&b, `<line class="cable" x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f"/>`,
			a[0]+off, a[1], z[0]+off, z[1])
	}
	for level, t := range d.tiers {
		for i, name := range t.Nodes {
			p := d.onPage(name)
			text := template.HTMLEscapeString(name)
			if level > 0 {
				half := 4 + 3.6*float64(len(name))
				fmt.Fprintf(&b, `<rect class="switch" x="%.0f" y="%.0f" width="%.0f" height="18" `+
					`rx="3"/><text x="%.0f" y="%.0f">%s</text>`, p[0]-half, p[1]-9, 2*half, p[0],
					p[1]+4, text)
				continue
			}
			down := 17.0
			if i%2 == 1 && d.gap[0].Points() < 30 {
				down = 29 // names of neighbours do not fit side by side
			}
			fmt.Fprintf(&b, `<circle class="host" cx="%.0f" cy="%.0f" r="4"/>`+
				`<text x="%.0f" y="%.0f">%s</text>`, p[0], p[1], p[0], p[1]+down, text)
		}
	}
	return b.String(), nil
}

// frameSVG draws one frame over the base.
func (d *topologyDrawing) frameSVG(label, base string, lines [][4]int, states [][]portState,
	frame int) template.HTML {
	var b strings.Builder
	left := (topologyLabel - topologyMargin).Points()
	fmt.Fprintf(&b, `<svg class="net" role="img" aria-label="%s" viewBox="%.0f 0 %.0f %.0f">%s<g>`,
		template.HTMLEscapeString(label), left, d.width.Points()-left, d.height.Points()+18, base)
	for _, look := range viewStates {
		var path strings.Builder
		for p, l := range lines {
			if states[p][frame] == look.State {
				fmt.Fprintf(&path, "M%d,%dL%d,%d", l[0], l[1], l[2], l[3])
			}
		}
		if path.Len() > 0 {
			fmt.Fprintf(&b, `<path d="%s" stroke="%s" stroke-width="%g" stroke-dasharray="%s"/>`,
				path.String(), look.Color, look.Width, look.Dash)
		}
	}
	b.WriteString("</g></svg>")
	return template.HTML(b.String())
}
