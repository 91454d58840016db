// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// node is a switch, or a host.
type node struct {
	used float64 // bytes in its buffer
	over bool    // it has been reported as full
}

// input is a source's fluid at a port.
type input struct {
	source *source
	from   *port // the port before; nil at the source's host
	slot   int   // the number of the source's fluid there
}

// amount is some bytes, and how many of them are marked.
type amount struct{ bytes, marked float64 }

// parcel is what arrived at a port in one step.
type parcel struct {
	step  int
	total float64 // bytes that are left
	left  float64 // share of them that is left
	of    []amount
}

// port is an egress port: a queue, a link and its delay.
type port struct {
	name       string
	link       network.Link
	node, peer int
	rate       float64 // bytes/s
	copies     float64 // how many ports this is: all are alike
	fromHost   bool
	delay      int // steps from the queue to the next port
	loop       int // steps until a PAUSE takes effect

	inputs []input
	queue  []parcel // the first head are gone
	head   int
	free   [][]amount // of parcels that are gone
	length float64    // bytes in the queue
	wait   float64    // s that what leaves now has waited
	sent   [][]amount // what left in the last steps, by input: a ring
	fill   float64    // rate at which the queue grows, bytes/s

	unmarked float64 // PN of NP-ECN: bytes that stood in the queue at the last RESUME

	held   float64 // bytes at the next switch that came through here
	stop   bool    // that switch has sent PAUSE, and no RESUME yet
	paused bool    // in effect
	toggle []int   // steps at which PAUSE and RESUME take effect, in turn

	count counters
	bin   bin
}

// counters are those of the whole run.
type counters struct {
	in, out, marked                 float64
	pausesSent, resumesSent         uint64
	pausesReceived, resumesReceived uint64
	pausedSteps                     int
	longest                         float64
}

// bin is what the port did in the present bin of the series.
type bin struct{ out, marked, atStart, longest float64 }

// allocate makes the ring of what left, when all inputs are known.
func (p *port) allocate() {
	p.sent = make([][]amount, p.delay+1)
	for i := range p.sent {
		p.sent[i] = make([]amount, len(p.inputs))
	}
}

// delivered returns what arrives at the link's other end now, by input.
func (p *port) delivered(step int) []amount { return p.sent[(step+1)%len(p.sent)] }

// serve computes a step of the port.
func (p *port) serve(m *model) {
	p.obeyPause(m)
	arrived := p.arrive(m)
	out := p.sent[m.step%len(p.sent)]
	clear(out)
	budget := p.rate * p.copies * m.h
	if p.paused {
		budget = 0
		p.count.pausedSteps++
	}
	before := p.length
	p.length += arrived
	left := p.take(m, out, min(budget, p.length))
	p.fill = (p.length - before) / m.h
	p.mark(m, out, left)
	p.account(m, out, left)
}

// arrive appends what arrives to the queue, and returns how much that is.
func (p *port) arrive(m *model) float64 {
	var of []amount
	if n := len(p.free); n > 0 {
		of, p.free = p.free[n-1], p.free[:n-1]
	} else {
		of = make([]amount, len(p.inputs))
	}
	if p.fromHost {
		p.sendFrom(m, of)
	} else {
		for i := range p.inputs {
			in := &p.inputs[i]
			of[i] = in.from.delivered(m.step)[in.slot]
			in.from.held += of[i].bytes
		}
	}
	var total float64
	for i := range of {
		total += of[i].bytes
	}
	if total == 0 {
		p.free = append(p.free, of)
		return 0
	}
	if !p.fromHost {
		m.nodes[p.node].used += total
	}
	p.count.in += total
	p.queue = append(p.queue, parcel{step: m.step, total: total, left: 1, of: of})
	return total
}

// sendFrom takes what the host's sources send. Flows share the port in turn and wait for it, so
// that none has more than its share, and the port's queue holds bursts alone.
func (p *port) sendFrom(m *model, of []amount) {
	budget := max(p.rate*p.copies*m.h-p.length, 0)
	if p.paused {
		budget = 0
	}
	var open int // flows that want more than their share
	for i := range p.inputs {
		s := p.inputs[i].source
		of[i] = amount{bytes: s.wants(m)}
		if s.unresponsive() {
			s.send(of[i].bytes)
			continue
		}
		open++
	}
	if open == 0 {
		return
	}
	p.share(of, budget, open)
	for i := range p.inputs {
		if s := p.inputs[i].source; !s.unresponsive() {
			s.send(of[i].bytes)
		}
	}
}

// share cuts what flows want to the fair shares of a budget: those that want less leave the rest to
// the others.
func (p *port) share(of []amount, budget float64, open int) {
	var wanted float64
	for i := range p.inputs {
		if !p.inputs[i].source.unresponsive() {
			wanted += of[i].bytes
		}
	}
	if wanted <= budget {
		return
	}
	level, flows := budget/p.flows(), 0.0
	for range open { // the level rises until it is stable
		rest, flows0 := budget, 0.0
		for i := range p.inputs {
			s := p.inputs[i].source
			switch {
			case s.unresponsive():
			case of[i].bytes <= level*s.flows:
				rest -= of[i].bytes
			default:
				flows0 += s.flows
			}
		}
		if flows0 == 0 || flows0 == flows {
			break
		}
		flows, level = flows0, rest/flows0
	}
	for i := range p.inputs {
		if s := p.inputs[i].source; !s.unresponsive() {
			of[i].bytes = min(of[i].bytes, level*s.flows)
		}
	}
}

// flows is how many flows send at the host.
func (p *port) flows() float64 {
	var n float64
	for _, in := range p.inputs {
		if !in.source.unresponsive() {
			n += in.source.flows
		}
	}
	return n
}

// take removes up to a budget from the queue's front, and returns how much it took.
func (p *port) take(m *model, out []amount, budget float64) float64 {
	var taken float64
	p.wait = 0
	for p.head < len(p.queue) && budget > taken {
		c := &p.queue[p.head]
		p.wait = float64(m.step-c.step) * m.h
		whole := c.total
		share := c.left // of what the parcel had at first
		if whole > budget-taken {
			share *= (budget - taken) / whole
		}
		for i, a := range c.of {
			if a.bytes == 0 {
				continue
			}
			out[i].bytes += a.bytes * share
			out[i].marked += a.marked * share
		}
		if whole > budget-taken {
			c.left -= share
			c.total -= budget - taken
			taken = budget
			break
		}
		taken += whole
		p.free = append(p.free, c.of)
		c.of = nil
		p.head++
	}
	p.length -= taken
	switch {
	case p.head == len(p.queue):
		p.queue, p.head, p.length = p.queue[:0], 0, 0
	case p.head > 64 && p.head > len(p.queue)/2:
		p.queue, p.head = p.queue[:copy(p.queue, p.queue[p.head:])], 0
	}
	return taken
}

// mark marks what leaves, at switches, by the queue that it leaves behind.
func (p *port) mark(m *model, out []amount, left float64) {
	if p.fromHost || left == 0 {
		return
	}
	mark := m.setup.marker
	if mark.notify != nil {
		mark.notify(m, p, out, left)
	}
	if mark.share == nil {
		return
	}
	share := mark.share(p, left)
	if share == 0 {
		return
	}
	for i := range out {
		a := &out[i]
		if p.inputs[i].source.unresponsive() && !p.inputs[i].source.capable {
			continue
		}
		more := (a.bytes - a.marked) * share
		a.marked += more
		p.count.marked += more
		p.bin.marked += more
	}
}

// account counts what left, and has the switch pause those that it came from.
func (p *port) account(m *model, out []amount, left float64) {
	p.count.out += left
	p.bin.out += left
	p.bin.longest = max(p.bin.longest, p.length)
	p.count.longest = max(p.count.longest, p.length)
	if p.fromHost {
		return
	}
	n := &m.nodes[p.node]
	n.used -= left
	if limit := float64(m.exp.Switch.Buffer); n.used > limit && !n.over {
		n.over = true
		m.reasons = append(m.reasons, "switch "+m.setup.names[p.node]+
			" holds more than its buffer: the fluid models lose nothing")
	}
	limit := float64(m.exp.Switch.PortBuffer) * p.copies
	if limit > 0 && p.length > limit && !n.over {
		n.over = true
		m.reasons = append(m.reasons, "the queue of port "+p.name+
			" is longer than port_buffer: the fluid models lose nothing")
	}
	for i := range out {
		if from := p.inputs[i].from; from != nil {
			from.held = max(from.held-out[i].bytes, 0)
		}
	}
	if m.lossy {
		return
	}
	for i := range p.inputs {
		if from := p.inputs[i].from; from != nil {
			from.checkPause(m)
		}
	}
}

// checkPause sends PAUSE or RESUME back to the port, if the next switch holds as much of its fluid.
func (p *port) checkPause(m *model) {
	xoff, xon := m.thresholds(p.peer)
	kind := result.Pause
	switch {
	case !p.stop && p.held > xoff*p.copies:
		p.count.pausesSent++
	case p.stop && p.held <= xon*p.copies:
		kind = result.Resume
		p.count.resumesSent++
	default:
		return
	}
	p.stop = !p.stop
	p.toggle = append(p.toggle, m.step+p.loop)
	m.record.pause(m, p, kind)
}

// thresholds returns XOFF and XON of a switch's ingress ports now.
func (m *model) thresholds(node int) (xoff, xon float64) {
	c := m.exp.Switch.PFC
	if d := c.Dynamic; d != nil {
		free := float64(m.exp.Switch.Buffer) - m.nodes[node].used
		xoff = max(float64(d.Alpha)*free, 0)
		return xoff, max(xoff-float64(d.XONOffset), 0)
	}
	return float64(c.XOFF), float64(c.XON)
}

// obeyPause lets PAUSE and RESUME take effect.
func (p *port) obeyPause(m *model) {
	for len(p.toggle) > 0 && p.toggle[0] <= m.step {
		p.toggle = p.toggle[1:]
		p.paused = !p.paused
		if p.paused {
			p.count.pausesReceived++
			continue
		}
		p.count.resumesReceived++
		p.unmarked = p.length // NP-ECN: PN is what stands in the queue
	}
}

// portRow returns the counters of a port. Packets are full frames.
func (m *model) portRow(id physical, tier string) result.Port {
	p := id.port
	n := func(bytes float64) float64 { return bytes / p.copies }
	packets := func(bytes float64) uint64 { return round(n(bytes) / m.setup.frame) }
	r := result.Port{
		Name: id.name, Node: m.setup.names[id.node], Peer: m.setup.names[id.peer], Tier: tier,
		RateBps: id.link.RateBps, DelayNs: int64(id.link.DelayNs),
		EnqueuedBytes: round(n(p.count.in)), SentBytes: round(n(p.count.out)),
		SentPackets: packets(p.count.out), QueuedPackets: packets(p.length),
		MarkedPackets: packets(p.count.marked),
		PauseReceived: p.count.pausesReceived, ResumeReceived: p.count.resumesReceived,
		PausedNs:      int64(float64(p.count.pausedSteps) * m.stepNs),
		QueueMaxBytes: round(n(p.count.longest)),
	}
	r.EnqueuedPackets = r.SentPackets + r.QueuedPackets
	return r
}
