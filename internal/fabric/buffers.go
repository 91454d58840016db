// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"math"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// afterPause is what a link brings after its switch wants it to stop: the PAUSE waits for a frame
// that is being sent, and travels; the other end finishes a frame; all on the way still comes.
func (c *checker) afterPause(l network.Link) uint64 {
	return 2*l.RateBps/1000*l.DelayNs/8_000_000 + 2*uint64(c.e.Frame) + pauseFrame
}

// pauseFrame is the length of a PAUSE frame.
const pauseFrame = 64

// buffers checks that switches have room for what arrives after their PAUSE.
func (c *checker) buffers() {
	sw := c.e.Switch
	if sw.FlowControl == experiment.FlowCBFC {
		c.credits()
		return
	}
	for _, name := range c.network.Switches {
		after, paused, ports, used := uint64(0), uint64(0), uint64(0), uint64(0)
		for i, l := range c.network.Links {
			if l.A != name && l.B != name {
				continue
			}
			ports++
			need := c.afterPause(l)
			if d := sw.PFC.Dynamic; d != nil && d.Headroom > 0 {
				if own := d.HeadroomBytes(l.RateBps, l.DelayNs); own < need {
					c.find(Mistake, "switch.pfc.dynamic.headroom",
						fmt.Sprintf("want %.3g", float64(need)/float64(own)*float64(d.Headroom)),
						uncontrolled,
						"%s has headroom of %s for link %s, and %s arrives after a PAUSE", name,
						experiment.Bytes(own), l.Name(), experiment.Bytes(need))
					return
				}
				continue
			}
			after += need
			paused += uint64(sw.PFC.XOFF) + need
			into := 2 * i // the port that leads here
			if l.A == name {
				into++
			}
			if c.used[into] {
				used += uint64(sw.PFC.XOFF) + need
			}
		}
		if c.lossyLeaves(name, ports, paused) {
			return
		}
		severity := Risk
		if used > uint64(sw.Buffer) {
			severity = Mistake // the traffic of the file is enough
		}
		switch d := sw.PFC.Dynamic; {
		case d == nil && paused > uint64(sw.Buffer):
			c.find(severity, "switch.buffer", fmt.Sprintf("want %s, or a lower switch.pfc.xoff",
				experiment.Bytes(paused)), uncontrolled,
				"the %d ports of %s may hold %s before all senders have stopped, and its buffer "+
					"has %s", ports, name, experiment.Bytes(paused), sw.Buffer)
			return
		case d != nil && d.Headroom == 0:
			free := float64(sw.Buffer) / (1 + float64(ports)*float64(d.Alpha))
			if float64(after) > free {
				c.find(Mistake, "switch.pfc.dynamic.alpha",
					"want a lower alpha, a larger switch.buffer, or headroom",
					uncontrolled,
					"all %d ports of %s at their threshold leave %s of its buffer, and %s arrives "+
						"after PAUSE", ports, name, experiment.Bytes(free),
					experiment.Bytes(after))
				return
			}
		}
	}
}

// lossyLeaves reports whether it has found that lossy classes leave too little of a switch's buffer
// for what its ports hold before all senders have stopped.
func (c *checker) lossyLeaves(name string, ports, paused uint64) bool {
	sw := c.e.Switch
	weight := 0.0 // of what is not free, alpha of each queue
	for _, class := range sw.Classes {
		alpha := float64(class.Alpha)
		if class.Lossy && alpha == 0 {
			alpha = math.Inf(1)
		}
		weight += alpha * float64(ports)
	}
	free := float64(sw.Buffer) / (1 + weight)
	if !sw.Lossy() || sw.PFC.Dynamic != nil || float64(paused) <= free {
		return false
	}
	c.find(Risk, "switch.classes", "want alpha of lossy classes, a lower one, or a larger "+
		"switch.buffer", run+"; see the metric buffer_drops",
		"lossy queues may leave %s of %s's buffer, and its ports hold %s before all lossless "+
			"senders have stopped", experiment.Bytes(free), name, experiment.Bytes(paused))
	return true
}

// credits checks that a link's credits last until new ones come.
func (c *checker) credits() {
	cbfc := c.e.Switch.CBFC
	for _, l := range c.network.Links {
		needNs := uint64(cbfc.Period) + 2*l.DelayNs
		need := l.RateBps/1000*needNs/8_000_000 + uint64(c.e.Frame)
		if need > uint64(cbfc.Buffer) {
			c.find(Mistake, "switch.cbfc.buffer", fmt.Sprintf("want %s", experiment.Bytes(need)),
				run+"; see the metric utilisation",
				"credits for %s last shorter than they take to come again over link %s, which "+
					"then idles", cbfc.Buffer, l.Name())
			return
		}
	}
}

// thresholds checks PAUSE's own.
func (c *checker) thresholds() {
	sw, pfc := c.e.Switch, c.e.Switch.PFC
	if sw.FlowControl == experiment.FlowCBFC {
		return
	}
	if sw.PortBuffer != 0 && pfc.Dynamic == nil && sw.PortBuffer <= pfc.XOFF {
		c.find(Mistake, "switch.port_buffer", fmt.Sprintf("want more than xoff, %s, or none",
			pfc.XOFF), run+"; see the metric buffer_drops",
			"a queue drops at %s, before PAUSE begins at %s", sw.PortBuffer, pfc.XOFF)
	}
	for _, l := range c.network.Links {
		rtt := 2 * l.DelayNs
		bdp := l.RateBps / 1000 * rtt / 8_000_000
		if pfc.Dynamic == nil && uint64(pfc.XON) < bdp {
			c.find(Risk, "switch.pfc.xon", fmt.Sprintf("want at least %s", experiment.Bytes(bdp)),
				run+"; see the metric utilisation",
				"%s are left when a RESUME is sent over link %s, and are gone before data comes",
				pfc.XON, l.Name())
			break
		}
	}
	if pfc.PauseTime != 0 && pfc.PauseRepeat == 0 {
		c.find(Mistake, "switch.pfc.pause_repeat", "want about half of pause_time",
			run+"; see the metric buffer_drops",
			"a PAUSE ends after %s and is not repeated before: senders go on meanwhile",
			pfc.PauseTime)
	}
	gap := uint64(pfc.PauseTime - pfc.PauseRepeat)
	if pfc.PauseTime != 0 && pfc.PauseRepeat != 0 &&
		gap < 8*uint64(c.e.Frame)*1_000_000_000/uint64(c.e.Topology.Rate) {
		c.find(Mistake, "switch.pfc.pause_repeat", "want about half of pause_time",
			run+"; see the metric buffer_drops",
			"a repeated PAUSE has %s to arrive before the last one ends, less than a frame takes",
			experiment.Duration(gap))
	}
}

// marking checks that marks come before PAUSE, and before drops.
func (c *checker) marking() {
	sw := c.e.Switch
	for _, scheme := range c.e.Schemes {
		m, ok := c.e.MarkingOf(scheme)
		if !ok {
			continue
		}
		pfc := c.e.PFCOn(scheme) && sw.FlowControl == experiment.FlowPFC
		xoff := sw.PFC.XOFF
		if d := sw.PFC.Dynamic; d != nil {
			xoff = experiment.Bytes(float64(sw.Buffer) * float64(d.Alpha) / (1 + float64(d.Alpha)))
		}
		key := c.markingKey(scheme)
		switch {
		case pfc && m.KMin >= xoff:
			c.find(Mistake, key+".kmin", fmt.Sprintf("want kmin well below %s", xoff),
				run+"; see the metric marked_packets",
				"%s marks from a queue of %s, and PAUSE stops a sender at %s: it hears of "+
					"no queue", scheme, m.KMin, xoff)
		case sw.PortBuffer != 0 && m.KMin >= sw.PortBuffer:
			c.find(Mistake, key+".kmin",
				fmt.Sprintf("want kmin below port_buffer, %s", sw.PortBuffer),
				run+"; see the metric buffer_drops",
				"%s: a port marks from a queue of %s, and drops at %s", scheme, m.KMin,
				sw.PortBuffer)
		case m.KMin >= sw.Buffer:
			c.find(Risk, key+".kmin", fmt.Sprintf("want kmin below buffer, %s, unless no port is "+
				"to mark", sw.Buffer), run+"; see the metric marked_packets",
				"%s: a port marks from a queue of %s, and the switch has %s: it never marks",
				scheme, m.KMin, sw.Buffer)
		case pfc && m.KMax > xoff:
			c.find(Risk, key+".kmax", fmt.Sprintf("want kmax below %s", xoff),
				run+"; see the metric pause_count",
				"%s: marks reach their full rate at %s, and one sender is paused at %s", scheme,
				m.KMax, xoff)
		}
	}
}

// markingKey returns the key of a scheme's marking: the experiment's, or the scheme's own.
func (c *checker) markingKey(name string) string {
	if s, err := c.e.Scheme(name); err == nil && !c.e.Gives("marking") {
		return s.MarkingSection + ".marking"
	}
	return "marking"
}

// capacity checks links against what leads to them.
func (c *checker) capacity() {
	fastest := uint64(0)
	for _, l := range c.network.Links {
		if !c.isTrunk(l) {
			fastest = max(fastest, l.RateBps)
		}
	}
	for _, l := range c.network.Links {
		if c.isTrunk(l) && l.RateBps < fastest {
			c.find(Risk, "topology", fmt.Sprintf("want links of at least %s between switches",
				experiment.Rate(fastest)), run+"; see the metric utilisation",
				"link %s has %s, and one host sends %s", l.Name(), experiment.Rate(l.RateBps),
				experiment.Rate(fastest))
			break
		}
	}
	for _, t := range c.network.Tiers() {
		if t.Oversubscription > 1 {
			c.find(Risk, "topology", "want as much up as down, or traffic that stays below",
				"pcn topo FILE; "+run+" with a workload of load 1",
				"tier %s is oversubscribed by %.3g:1", t.Name, t.Oversubscription)
		}
	}
}
