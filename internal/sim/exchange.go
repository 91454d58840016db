// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/pcn-linux/pcn/internal/result"
)

// This file is what parts of a run (windows.go) tell each other at the end of a window.
//
// Results are the same bytes with any number of parts because events keep their order. With one
// part they are in the order of their times, then of their kinds, then of their pushes: the
// sequence number counts the pushes of the whole run. A part does not know, in a window, how many
// pushes of others come between its own. It counts its own, which is enough for what it has pushed
// itself: all that was pushed in earlier windows comes before, and its own are in their order. At
// the end of the window each part merges the lists of events that pushed, of all parts, in the
// order of events, and so finds the number that each push would have with one part. An event that a
// part pushes in the window and that pushes again has its number by then: the event that pushed it
// comes before it in the list. Only then do events go into queues that happen behind the window.

// provisional is set in the sequence number of a push in the window that runs, which counts the
// part's own pushes.
const provisional = 1 << (kindShift - 1)

// sequence is the bits of a sequence number in the order of an event, without provisional.
const sequence = provisional - 1

// sending is what a part tells the others at the end of a window.
type sending struct {
	pushed   []pushed
	to       []outbox // by part
	pfc      []loggedPFC
	earliest int64 // when the first event happens that the part has, or sends to another
	err      error
}

// pushed is an event that pushed others: the last push of all so far was upTo.
type pushed struct {
	at    int64
	order uint64
	upTo  uint64
}

// outbox is what a part sends to another.
type outbox struct {
	links   []event
	packets []crossing
	headers []intHeader // the packets' telemetry, if the scheme has any
}

// crossing is a packet on a wire from part to part.
type crossing struct {
	port   int32  // that sent it
	push   uint64 // of its arrival; 0: another packet was on the wire, whose arrival pushes it
	packet packet
}

// loggedPFC is an event of the log of PFC, with the push that belongs to it.
type loggedPFC struct {
	push  uint64
	event result.PFCEvent
}

// begin begins a window.
func (p *part) begin() *sending {
	p.window++
	s := p.sent()
	s.pushed, s.pfc, s.earliest = s.pushed[:0], s.pfc[:0], never
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

// handOver sends a packet to the part at the other end of a port's link. The wire is there: as with
// one part, the arrival of a packet pushes that of the next.
func (w *world) handOver(id int32, p *port, i int32) {
	k := &w.packets.packets[i]
	c := crossing{port: id, packet: *k}
	if p.lastArrival <= w.now {
		w.events.next++
		c.push = w.events.next
	}
	p.lastArrival = k.arrived
	o := w.part.outbox(p.peer, k.arrived)
	o.packets = append(o.packets, c)
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
	w.events.next++
	o := w.part.outbox(in.peer, at)
	o.links = append(o.links,
		event{at: at, order: uint64(evLink)<<kindShift | w.events.next, arg: arg})
}

// exchange takes what others have sent in a window, and gives all pushes of the window their
// sequence numbers.
func (w *world) exchange() {
	p, q := w.part, &w.events
	p.rank()
	q.until = never
	for _, e := range q.later {
		e.order = p.final(p.index, e.order)
		q.add(e)
	}
	q.later = q.later[:0]
	for i, x := range p.team.worlds {
		if int32(i) == p.index {
			continue
		}
		o := &x.part.both[p.window&1].to[p.index]
		for _, e := range o.links {
			e.order = p.final(int32(i), e.order)
			q.add(e)
		}
		for k := range o.packets {
			w.takeOver(int32(i), o, k)
		}
	}
	if p.index == 0 {
		w.takeLogs()
	}
}

// takeOver puts a packet of another part on the wire of its port.
func (w *world) takeOver(from int32, o *outbox, number int) {
	c := &o.packets[number]
	i := w.packets.alloc()
	w.packets.packets[i] = c.packet
	if t := w.transport.telemetry; t != nil {
		*t.of(i) = o.headers[number]
	}
	p := &w.ports[c.port]
	push := w.part.final(from, c.push)
	if c.push == 0 {
		if p.wire.packets > 0 {
			p.wire.push(&w.packets, i)
			return
		}
		push = w.part.final(w.part.index, p.nextArrival)
	}
	p.wire.push(&w.packets, i)
	w.events.add(event{
		at: c.packet.arrived, order: uint64(evArrive)<<kindShift | push, arg: uint32(c.port),
	})
}

// takeLogs puts what the parts have logged of PFC into the record, in the order of all parts.
func (w *world) takeLogs() {
	var all []loggedPFC
	for i, x := range w.part.team.worlds {
		for _, l := range x.part.both[w.part.window&1].pfc {
			l.push = w.part.final(int32(i), l.push)
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b loggedPFC) int { return cmp.Compare(a.push, b.push) })
	for i := range all {
		w.record.pfc = append(w.record.pfc, all[i].event)
	}
}

// final returns an order with the sequence number of the whole run, for one that a part pushed.
func (p *part) final(of int32, order uint64) uint64 {
	if order&provisional == 0 {
		return order
	}
	return order&^(sequence|provisional) | p.ranks[of][order&sequence-1]
}

// pushedLog is what of a part's list is not merged.
type pushedLog struct {
	pushed
	rest []pushed
}

// next goes on to the next event of a part's list. At its end that comes behind all others.
func (h *pushedLog) next(p *part, of int32) {
	if len(h.rest) == 0 {
		h.pushed = behindAll
		return
	}
	h.pushed, h.rest = h.rest[0], h.rest[1:]
	h.order = p.final(of, h.order)
}

// behindAll comes behind all events.
var behindAll = pushed{at: math.MaxInt64, order: math.MaxUint64}

func (e *pushed) before(other *pushed) bool {
	return e.at < other.at || e.at == other.at && e.order < other.order
}

// rank finds the sequence numbers of all pushes of a window.
func (p *part) rank() {
	for i, x := range p.team.worlds {
		p.ranks[i] = p.ranks[i][:0]
		p.heads[i] = pushedLog{rest: x.part.both[p.window&1].pushed}
		p.heads[i].next(p, int32(i))
	}
	for {
		first, second := p.firstTwo()
		h := &p.heads[first]
		if h.pushed == behindAll {
			return
		}
		for ; h.before(&second); h.next(p, first) {
			ranks := p.ranks[first]
			for range h.upTo&sequence - uint64(len(ranks)) {
				p.base++
				ranks = append(ranks, p.base)
			}
			p.ranks[first] = ranks
		}
	}
}

// firstTwo returns the part whose event is the next in the order of all parts, and the event behind
// it of another part.
func (p *part) firstTwo() (first int32, second pushed) {
	second = behindAll
	for i := 1; i < len(p.heads); i++ {
		h := &p.heads[i].pushed
		if h.before(&p.heads[first].pushed) {
			second, first = p.heads[first].pushed, int32(i)
		} else if h.before(&second) {
			second = *h
		}
	}
	return first, second
}
