// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"math"
	"math/rand/v2"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// linkChange is that of a port's rate, of whether links work, or of a storm.
type linkChange struct {
	at    int64 // after t = 0
	port  int32
	rate  uint64
	links []int // if these go down or come back; nil: the port has a new rate
	down  bool
	storm *stormChange
}

// linkChanges returns all of the experiment.
func (p *plan) linkChanges() []linkChange {
	var changes []linkChange
	for _, e := range p.exp.LinkEvents {
		if e.State != "" {
			changes = append(changes, linkChange{
				at: int64(e.At), port: none, links: p.network.LinksNamed(e.Port),
				down: e.State == experiment.LinkDown,
			})
			continue
		}
		for id, name := range p.portNames {
			if name == e.Port {
				changes = append(changes,
					linkChange{at: int64(e.At), port: int32(id), rate: uint64(e.Rate)})
			}
		}
	}
	return changes
}

// changeLink applies a change.
func (w *world) changeLink(c linkChange) {
	if c.storm != nil {
		w.changeStorm(c.storm)
		return
	}
	if c.links != nil {
		w.changeState(c.links, c.down)
		return
	}
	p := &w.ports[c.port]
	p.rate = c.rate
	if p.core != 0 {
		w.core.put64(p.core+w.core.rate, c.rate)
	}
}

// changeState has links fail or come back. Routes follow at once.
func (w *world) changeState(links []int, down bool) {
	state := map[int]bool{}
	maps.Copy(state, w.down)
	for _, l := range links {
		if state[l] == down {
			continue
		}
		state[l] = down
		for _, id := range []int32{int32(2 * l), int32(2*l + 1)} {
			if down {
				w.fail(id)
			} else {
				w.comeBack(id)
			}
		}
	}
	w.down = state
	w.setRoutes()
	w.changeHosts()
}

// setRoutes has paths avoid the links that are down.
func (w *world) setRoutes() { w.routes = w.plan.routes.Without(w.down) }

// changeHosts has hosts with several links use those that work.
func (w *world) changeHosts() {
	change := func(at *int32, k key) {
		if !w.routes.HasSeveral(int(k.src)) {
			return
		}
		if id := w.plan.hostPort(w.routes, k); id != none {
			*at = id
		}
	}
	for i := range w.transport.flows {
		f := &w.transport.flows[i]
		change(&f.nic, f.key)
		if f.kind == packetData {
			change(&f.ackNIC, f.key.reversed())
			change(&f.cnpNIC, f.key.cnp())
		}
	}
	for id := range w.ports {
		if p := &w.ports[id]; p.down && p.fromHost && w.routes.HasSeveral(int(p.node)) {
			w.moveQueued(p)
		}
	}
}

// moveQueued moves what waits at a host's failed port to ports that work.
func (w *world) moveQueued(p *port) {
	for c := range p.queues {
		q := &p.queues[c]
		for range q.packets {
			i := q.pop(&w.packets)
			k := &w.packets.packets[i]
			p.bytes -= uint64(k.size)
			p.counters.enqueuedPackets--
			p.counters.enqueuedBytes -= uint64(k.size)
			f := &w.transport.flows[k.flow]
			to := f.nic
			switch k.kind {
			case packetACK:
				to = f.ackNIC
			case packetCNP:
				to = f.cnpNIC
			}
			if q.packets == 0 {
				p.backlog &^= 1 << c
			}
			w.enqueue(to, i, none)
		}
	}
}

// fail stops a port. What is on its wire, or in its queues if it is a switch's, is lost. Neither
// end knows of a PAUSE any more.
func (w *world) fail(id int32) {
	p := &w.ports[id]
	p.down = true
	p.doomed, p.unsound = p.wire.packets, true
	p.deafUntil = w.now + p.delay
	for c := range p.queues {
		q := &p.queues[c]
		if q.deaf {
			w.unpause(q)
		}
		if q.pausing {
			w.forgetPause(id, p, q, uint8(c))
		}
		loses := q.packets > 0 && !p.fromHost // a host's packets wait
		// before it goes on: then the core asks how many packets PAUSE has held back
		for loses && q.packets > 0 {
			w.loseQueued(id, p, q, uint8(c))
		}
		switch {
		case q.paused:
			q.paused = false
			w.goOn(id, p, q)
		case loses && q.marked:
			w.core.goOn(w.now, q) // those of an earlier PAUSE are gone too
		}
	}
}

// forgetPause ends the PAUSE that a switch sent by a port whose link fails, and with it the frames
// that would repeat it.
func (w *world) forgetPause(id int32, p *port, q *queue, class uint8) {
	q.pausing = false
	q.resumeSent++
	w.logPFC(id, p, class, linkResume, w.now)
	if !w.mmu {
		q.frames += w.core.endRepeats(w.now, q)
	}
}

// loseQueued drops the first packet of a switch's queue.
func (w *world) loseQueued(id int32, p *port, q *queue, class uint8) {
	i := q.pop(&w.packets)
	k := &w.packets.packets[i]
	size := uint64(k.size)
	if q.packets == 0 {
		p.backlog &^= 1 << class
	}
	p.bytes -= size
	p.droppedReset++
	if w.trace != nil {
		w.traced(PacketDropped, id, i)
	}
	n := &w.nodes[p.node]
	n.used -= size
	if k.ingress != none {
		w.account(k.ingress, class, k.size, false, n)
	}
	w.packets.release(i)
}

// comeBack has a port send again.
func (w *world) comeBack(id int32) {
	p := &w.ports[id]
	p.down = false
	for c := range p.queues {
		if q := &p.queues[c]; q.storming {
			w.act(id, p, q, uint8(c), w.core.pause)
		}
	}
	if p.backlog != 0 && !p.deciding {
		w.decideAt(id, p)
	}
}

// setErrors has the ports' links lose and delay packets.
func (w *world) setErrors() {
	for id := range w.ports {
		p, l := &w.ports[id], w.plan.network.Links[id/2]
		begin, goOn := l.Losses()
		p.losesFirst = uint64(math.Round(begin * (1 << 32)))
		p.losesOn = uint64(math.Round(goOn * (1 << 32)))
		p.unsound, p.jitter = begin > 0, l.JitterNs
		if begin > 0 && w.errors == nil {
			w.errors = rand.New(rand.NewPCG(w.plan.exp.Seed, 2))
		}
		if l.JitterNs > 0 && w.jitter == nil {
			w.jitter = rand.New(rand.NewPCG(w.plan.exp.Seed, 5))
		}
	}
}

// delayed returns when a packet that would arrive at a time does, no earlier than the one before.
func (w *world) delayed(p *port, at int64) int64 {
	p.lastAt = max(p.lastAt, at+int64(w.jitter.Uint64N(p.jitter)))
	return p.lastAt
}

// loseOnLink loses a packet on the link of a port, or behind it. Its credits come back: the
// receiver learns what was sent with the next update.
func (w *world) loseOnLink(id, i int32) {
	w.linkLosses++
	if w.trace != nil {
		w.traced(PacketLost, id, i)
	}
	w.dropAtIngress(w.ports[id].back, &w.packets.packets[i])
	w.packets.release(i)
}

// lost reports whether a packet that arrives at the end of a wire is lost on it.
func (w *world) lost(p *port) bool {
	if p.doomed > 0 {
		p.doomed--
		return true
	}
	chance := p.losesFirst
	if p.losing {
		chance = p.losesOn
	}
	p.losing = p.losesFirst != 0 && w.errors.Uint64()>>32 < chance
	return p.losing
}

// routed returns the port by which a packet leaves a switch, where paths are not fixed; none if no
// path leads on.
func (w *world) routed(node int32, k *packet) int32 {
	at := w.transport.flows[k.flow].keyOf(k.kind)
	choices := w.routes.Ports(int(node), int(at.dst))
	n := uint64(len(choices))
	switch {
	case n == 0:
		return none
	case n == 1:
		return int32(choices[0])
	case w.spray:
		return int32(choices[w.paths.Uint64N(n)])
	case k.kind == packetCNM:
		return int32(choices[0])
	}
	return int32(choices[uint64(at.hash(uint32(node)))*n>>32])
}
