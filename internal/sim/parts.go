// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// This file divides the nodes of a run into parts, which run side by side: see windows.go.

// division is nodes in parts.
type division struct {
	part      []int32 // of each node
	parts     int
	horizonNs int64   // the shortest delay of a link between parts
	speed     float64 // how many times as fast as one part they can be at best
}

// whole returns why a run can't be divided: what a part does would have to be known elsewhere at
// the same ns. It is "" if nothing of the experiment is in the way.
func (w *world) whole() string {
	e := w.plan.exp
	switch c := w.transport.control; {
	case w.plan.scheme.Own != nil:
		return "a scheme of one's own may keep what all hosts share"
	case c != nil && c.maps.shared():
		return "hosts of scheme " + w.plan.scheme.Name + " share what they learn of paths"
	case len(e.Waits) > 0:
		return "flows wait for others"
	case len(e.Storms) > 0 || e.Switch.PFC.Watchdog != nil:
		return "switches watch PFC, or hosts send storms of it"
	case e.LinkStates():
		return "links fail"
	case w.spray:
		return "packets take paths at random"
	case w.relays:
		return "hosts forward"
	case w.noise != nil:
		return "hosts see packets late, by random times"
	case w.cbfc:
		return "links have credits"
	case w.pauseTime != 0:
		return "a PAUSE ends by itself"
	}
	for _, l := range w.plan.network.Links {
		if l.ErrorRate > 0 || l.MostDelayNs() > l.DelayNs {
			return "links lose or delay packets at random"
		}
	}
	return ""
}

// divide splits the network into a part for each thread or fewer, or notes why it stays whole.
func (w *world) divide(ctx context.Context, newRuntime func() runtime, o Options) error {
	if w.undivided = w.whole(); w.undivided != "" {
		return nil
	}
	const tooLittle = "each thread would have too little to do"
	if o.IfBusy && !w.plan.busy() {
		w.undivided = tooLittle
		return nil
	}
	d := w.plan.divide(o.Threads)
	if d.parts < 2 {
		w.undivided = "no link between two switches divides the network"
		return nil
	}
	if o.IfBusy && d.speed < fastEnough {
		w.undivided = tooLittle
		return nil
	}
	return w.split(ctx, newRuntime, d)
}

// shared reports whether a control has maps beside its flow table.
func (h *hostMaps) shared() bool {
	flows, _ := h.module.global("flows")
	for at := range h.maps {
		if at != flows {
			return true
		}
	}
	return false
}

// What parts must promise to be chosen without being asked for: packets of data in the time that
// the longest link takes, and how many times as fast they can be. In windows of few packets parts
// wait for each other most of the time.
const (
	manyPackets = 300
	fastEnough  = 1.5
)

// busy reports whether hosts send many packets in the time that the longest link takes.
func (p *plan) busy() bool {
	horizons := p.horizons()
	if len(horizons) == 0 {
		return false
	}
	var bytes uint64
	for i := range p.exp.Flows {
		bytes += p.most(&p.exp.Flows[i])
	}
	for _, b := range p.exp.Bursts {
		bytes += uint64(len(b.From)*b.Flows*len(b.Starts(p.exp.Duration))) * uint64(b.Size)
	}
	windows := max(uint64(p.exp.Duration)/uint64(horizons[0]), 1)
	return bytes/uint64(p.exp.Frame)/windows >= manyPackets
}

// muchBetter is by how much the work must be spread better for a shorter horizon.
const muchBetter = 1.2

// divide spreads nodes over so many parts or fewer. A host is with its switches, and links between
// parts are as long as they can be. The division has one part if there is no other.
func (p *plan) divide(parts int) division {
	best := division{part: make([]int32, len(p.nodeNames)), parts: 1}
	work := p.work()
	best.horizonNs = math.MaxInt64
	best.speed = 1
	for _, horizon := range p.horizons() {
		d := p.graph(p.units(horizon), work).divide(parts)
		d.horizonNs = horizon
		if d.speed = d.speedUp(work); d.speed > best.speed*muchBetter {
			best = d
		}
	}
	return best
}

// horizons returns the delays of links between switches, the longest first.
func (p *plan) horizons() []int64 {
	var delays []int64
	for i, l := range p.network.Links {
		if ends := p.ends[2*i]; !p.isHost(ends[0]) && !p.isHost(ends[1]) && l.DelayNs > 0 {
			delays = append(delays, int64(l.DelayNs))
		}
	}
	slices.Sort(delays)
	delays = slices.Compact(delays)
	slices.Reverse(delays)
	return delays
}

// units returns, for each node, the first node of those that it must be in one part with: links
// that are shorter than the horizon, and those of hosts, are within a part.
func (p *plan) units(horizon int64) []int32 {
	unit := make([]int32, len(p.nodeNames))
	for i := range unit {
		unit[i] = int32(i)
	}
	find := func(n int32) int32 {
		for unit[n] != n {
			unit[n] = unit[unit[n]]
			n = unit[n]
		}
		return n
	}
	for i, l := range p.network.Links {
		a, b := p.ends[2*i][0], p.ends[2*i][1]
		if p.isHost(a) || p.isHost(b) || int64(l.DelayNs) < horizon {
			a, b = find(a), find(b)
			unit[max(a, b)] = min(a, b)
		}
	}
	for i := range unit {
		unit[i] = find(int32(i))
	}
	return unit
}

// graph is units and the links between them.
type graph struct {
	units      []int32   // by node
	neighbours [][]int32 // by unit, one for each link
	hosted     []bool    // by unit: it has hosts
	work       []uint64  // by unit
}

func (p *plan) graph(units []int32, work []uint64) *graph {
	n := len(units)
	g := &graph{units, make([][]int32, n), make([]bool, n), make([]uint64, n)}
	for i, u := range units {
		g.work[u] += work[i]
		g.hosted[u] = g.hosted[u] || p.isHost(int32(i))
	}
	for _, ends := range p.ends {
		if from, to := units[ends[0]], units[ends[1]]; from != to {
			g.neighbours[from] = append(g.neighbours[from], to)
		}
	}
	return g
}

// divide makes parts of equal work, or fewer if too few units have hosts. Units with hosts come
// first, and switches between these go where most of their links are: a layer of such switches in a
// part of its own would have its work at other times than hosts.
func (g *graph) divide(parts int) division {
	taken := make([]int32, len(g.units)) // by unit: its part
	for i := range taken {
		taken[i] = none
	}
	parts = g.grow(taken, parts)
	g.fill(taken, parts)
	d := division{part: make([]int32, len(g.units)), parts: parts}
	for i, u := range g.units {
		d.part[i] = taken[u]
	}
	return d
}

// grow gives units with hosts to parts. Each part begins with the first that is left, and takes the
// one that has most links to it, so that few packets go from part to part. Returns how many parts
// there are.
func (g *graph) grow(taken []int32, parts int) int {
	left, remaining := uint64(0), 0
	for u, hosted := range g.hosted {
		if hosted {
			left += g.work[u]
			remaining++
		}
	}
	parts = min(parts, remaining)
	near := make([]int, len(g.units)) // by unit: its links to the part
	for part := range parts {
		want := left / uint64(parts-part)
		clear(near)
		for have := uint64(0); remaining > 0; {
			next := g.nearest(taken, near)
			last := part == parts-1
			if have > 0 && !last && (have+g.work[next]/2 > want || remaining < parts-part) {
				break
			}
			taken[next] = int32(part)
			have += max(g.work[next], 1)
			left -= g.work[next]
			remaining--
			g.approach(next, near)
		}
	}
	return parts
}

// approach counts the links of a unit to others with hosts, and to those behind a switch without.
func (g *graph) approach(unit int32, near []int) {
	for _, u := range g.neighbours[unit] {
		near[u]++
		if g.hosted[u] {
			continue
		}
		for _, behind := range g.neighbours[u] {
			near[behind]++
		}
	}
}

// nearest returns the unit with hosts and without a part that has most links to the part that
// grows; the first of several.
func (g *graph) nearest(taken []int32, near []int) int32 {
	best := int32(none)
	for u, hosted := range g.hosted {
		if hosted && taken[u] == none && (best == none || near[u] > near[best]) {
			best = int32(u)
		}
	}
	return best
}

// fill gives each unit without hosts to the part that it has most links to, and of several to that
// with the least work. Those go first that are next to units with a part.
func (g *graph) fill(taken []int32, parts int) {
	work := make([]uint64, parts)
	for u, part := range taken {
		if part != none {
			work[part] += g.work[u]
		}
	}
	for filled := true; filled; {
		filled = false
		before := slices.Clone(taken)
		for i, u := range g.units {
			if int(u) != i || taken[u] != none {
				continue
			}
			if part := g.closest(u, before, work); part != none {
				taken[u] = part
				work[part] += g.work[u]
				filled = true
			}
		}
	}
	for u, part := range taken { // what no host reaches
		if part == none {
			taken[u] = 0
		}
	}
}

// closest returns the part that a unit has most links to; none if it has none to any.
func (g *graph) closest(unit int32, taken []int32, work []uint64) int32 {
	links := make([]int, len(work))
	for _, u := range g.neighbours[unit] {
		if taken[u] != none {
			links[taken[u]]++
		}
	}
	best := int32(none)
	for part, n := range links {
		if n > 0 && (best == none || n > links[best] ||
			n == links[best] && work[part] < work[best]) {
			best = int32(part)
		}
	}
	return best
}

// speedUp returns how many times as fast as one part the parts can be at best.
func (d *division) speedUp(work []uint64) float64 {
	of := make([]uint64, d.parts)
	var all uint64
	for i, part := range d.part {
		of[part] += work[i]
		all += work[i]
	}
	return float64(all) / float64(max(slices.Max(of), 1))
}

// work returns, for each node, how many packets come there, roughly.
func (p *plan) work() []uint64 {
	work := make([]uint64, len(p.nodeNames))
	n := uint16(0)
	add := func(from, to string, bytes uint64) {
		n++
		k := key{src: int32(p.number[from]), dst: int32(p.number[to]), srcPort: n}
		path, err := p.path(k)
		if err != nil {
			return // addFlow says so
		}
		packets := bytes/uint64(p.exp.Frame) + 1
		for _, id := range path {
			work[p.ends[id][0]] += 2 * packets // and their ACKs
		}
		work[k.dst] += 2 * packets
	}
	for i := range p.exp.Flows {
		f := &p.exp.Flows[i]
		add(f.From, f.To, p.most(f))
	}
	for _, b := range p.exp.Bursts {
		for _, from := range b.From {
			flows := uint64(b.Flows * len(b.Starts(p.exp.Duration)))
			add(from, b.To, flows*uint64(b.Size))
		}
	}
	return work
}

// most returns how many bytes a flow sends at most in a run.
func (p *plan) most(f *experiment.Flow) uint64 {
	rate := uint64(p.exp.HostRate(f.From))
	if f.LimitRate != 0 {
		rate = min(rate, uint64(f.LimitRate))
	}
	bytes := bytesIn(uint64(p.exp.Duration), rate)
	if size := uint64(f.Size); size != 0 {
		bytes = min(bytes, size)
	}
	return bytes
}
