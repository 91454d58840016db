// SPDX-License-Identifier: Apache-2.0

package sim

// This file is what parts of a run (windows.go) tell each other at the end of a window.
//
// Results are the same bytes with any number of parts because events have an order that does not
// depend on parts: see [event.before]. What happens at a node depends on the order of its own
// events only, and these are all in the queue of its part before the first of them happens.

// sending is what a part tells the others at the end of a window.
type sending struct {
	to       []outbox // by part
	events   uint64   // how many happened, for a test that measures
	earliest int64    // when the first event happens that the part has, or sends to another
	err      error
}

// outbox is what a part sends to another.
type outbox struct {
	links   []event
	packets []crossing
	headers []intHeader // the packets' telemetry, if the scheme has any
}

// crossing is a packet on a wire from part to part.
type crossing struct {
	port   int32 // that sent it
	pushed int64 // when its arrival is pushed, see putOnWire
	packet packet
}

// begin begins a window.
func (p *part) begin() *sending {
	p.window++
	s := p.sent()
	s.events, s.earliest = 0, never
	for i := range s.to {
		o := &s.to[i]
		o.links, o.packets, o.headers = o.links[:0], o.packets[:0], o.headers[:0]
	}
	return s
}

// outbox returns what the part sends to that which has a node, where it happens at a time.
func (p *part) outbox(node int32, at int64) *outbox {
	s := p.sent()
	s.earliest = min(s.earliest, at)
	return &s.to[p.team.part[node]]
}

// handOver sends a packet to the part at the other end of a port's link, where the wire is.
func (w *world) handOver(id int32, p *port, i int32) {
	k := &w.packets.packets[i]
	o := w.part.outbox(p.peer, k.arrived)
	o.packets = append(o.packets, crossing{id, max(w.now, p.lastArrival), *k})
	p.lastArrival = k.arrived
	if t := w.transport.telemetry; t != nil {
		o.headers = append(o.headers, *t.of(i))
	}
	w.packets.release(i)
}

// pushLink pushes a link event at the other end of a port's link.
func (w *world) pushLink(in *port, at int64, arg uint32) {
	if !in.cut {
		w.events.push(at, evLink, arg)
		return
	}
	o := w.part.outbox(in.peer, at)
	o.links = append(o.links, newEvent(w.now, at, evLink, 0, arg))
}

// exchange takes what others have sent in a window.
func (w *world) exchange() {
	p := w.part
	for i, x := range p.team.worlds {
		if int32(i) == p.index {
			continue
		}
		o := &x.part.both[p.window&1].to[p.index]
		for _, e := range o.links {
			w.events.add(e)
		}
		for k := range o.packets {
			w.takeOver(o, k)
		}
	}
}

// takeOver puts a packet of another part on the wire of its port.
func (w *world) takeOver(o *outbox, number int) {
	c := &o.packets[number]
	i := w.packets.alloc()
	w.packets.packets[i] = c.packet
	if t := w.transport.telemetry; t != nil {
		*t.of(i) = o.headers[number]
	}
	w.putOnWire(c.port, &w.ports[c.port], i, c.pushed)
}
