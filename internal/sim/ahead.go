// SPDX-License-Identifier: Apache-2.0

package sim

import "math/bits"

// ahead reads what the next events will need, before the first of them happens. In a large
// network each event finds its port, its packet and the next port in memory, not in a cache, and
// waits for one after the other. Here the reads of many events are independent, so the CPU waits
// for all of them at once.
type ahead struct {
	arrivals, departures []reading
	tails                []int32 // packets behind which others will be put
	off                  bool    // it is not worthwhile, or nobody knows where packets will go
	until                int     // index of the first event of the running bucket that is not read
	sum                  uint64  // of what was read, so that no read is left out
}

// reading is what is known of an event.
type reading struct {
	packet int32
	port   int32 // that the packet leaves by
	back   int32 // of an arrival: the port that it comes in by
	class  uint8
}

// fewEvents is for how many events this is not worthwhile, manyEvents how many are read at a time:
// what they need fits the smallest cache.
const fewEvents, manyEvents = 6, 64

// fewPorts is how many ports fit a cache that is near, 128 KB.
const fewPorts = 200

// due reports whether the next event needs what was not read.
func (a *ahead) due(q *eventQueue) bool { return !a.off && (q.done == a.until || q.empty()) }

// readAhead reads what the next events of the running bucket need. Events that are pushed into the
// bucket meanwhile are read late or not at all, which changes nothing but the time.
func (w *world) readAhead() {
	a, q := &w.ahead, &w.events
	if q.empty() && !q.turn() {
		return
	}
	events := q.running[q.done:]
	events = events[:min(len(events), manyEvents)]
	a.until = q.done + len(events)
	if len(events) < fewEvents {
		return
	}
	a.arrivals, a.departures, a.tails = a.arrivals[:0], a.departures[:0], a.tails[:0]
	for i := range events {
		switch e := &events[i]; e.kind() {
		case evArrive:
			p := &w.ports[e.arg]
			a.arrivals = append(a.arrivals, reading{packet: p.wire.head, back: p.back})
		case evDecide:
			p := &w.ports[e.arg]
			if class := bits.Len8(p.backlog) - 1; class >= 0 {
				q := &p.queues[class]
				a.departures = append(a.departures,
					reading{packet: q.head, port: int32(e.arg), class: uint8(class)})
			}
			a.sum += uint64(p.core) + p.counters.sentPackets
		}
	}
	w.readPackets()
	w.readPorts()
	w.readTails()
}

// readPackets reads the packets, and finds where those go that arrive.
func (w *world) readPackets() {
	a, packets := &w.ahead, w.packets.packets
	for i := range a.arrivals {
		r := &a.arrivals[i]
		k := &packets[r.packet]
		r.class, r.port, r.packet = k.class, none, k.next
		if next := k.step + 1; k.kind != packetCNM && next < uint32(len(w.transport.steps)) {
			r.port = w.transport.steps[next]
		}
	}
	for i := range a.departures {
		r := &a.departures[i]
		if p := &w.ports[r.port]; !p.cut { // else the wire is the other part's
			a.tails = append(a.tails, p.wire.tail)
		}
		r.packet = packets[r.packet].ingress
	}
}

// readPorts reads the ports that packets go to, or came from.
func (w *world) readPorts() {
	a := &w.ahead
	for _, r := range a.arrivals {
		if r.packet != none {
			a.sum += uint64(w.packets.packets[r.packet].arrived)
		}
		if r.port != none {
			p := &w.ports[r.port]
			a.tails = append(a.tails, p.queues[r.class].tail)
			a.sum += uint64(p.queues[r.class].held) + uint64(p.backlog) + p.queueMax +
				w.nodes[p.node].used + w.ports[r.back].queues[r.class].held
		}
	}
	for _, r := range a.departures {
		q := &w.ports[r.port].queues[r.class]
		if r.packet != none {
			a.sum += w.ports[r.packet].queues[r.class].held
		}
		if q.marked && q.bytes >= uint64(q.calmBytes) {
			a.sum += w.core.touch(q.core) + w.core.touch(w.ports[r.port].core)
		}
	}
}

// readTails reads the packets that are the last of a queue or a wire, or were: the next is put
// behind them.
func (w *world) readTails() {
	packets := w.packets.packets
	for _, i := range w.ahead.tails {
		if uint(i) < uint(len(packets)) { // there may have been none
			w.ahead.sum += uint64(packets[i].kind)
		}
	}
}
