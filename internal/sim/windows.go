// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math"
	goruntime "runtime"
	"sync"
	"sync/atomic"
)

// This file runs one simulation on several cores. The nodes are divided into parts (parts.go),
// each a world of its own with its events, packets and modules; what is fixed, ports, nodes and
// flows are in memory that they share, and of each port and flow every part writes its own fields.
//
// Time goes by in windows that are no longer than the shortest delay of a link between parts. So
// what a part sends in a window takes effect behind it, and parts need to hear of each other only
// at its end: see exchange.go, which also says why results are the same bytes with any number of
// parts. What looks at the whole network (bins of the series, the search for deadlocks, the end)
// happens between two windows, when all parts stand still.

// team is the parts of a run.
type team struct {
	division
	worlds  []*world
	whole   eventHeap // events of the whole run
	barrier barrier
	stepped func(w *world, s step) // a test measures; else nil
}

// part is what a world has as a part of a run. What other parts read is there twice: while they
// read that of a window, the next one is written.
type part struct {
	team   *team
	index  int32
	window int        // number of the window
	both   [2]sending // by window, modulo 2
}

// sent returns what a part has told the others in the window.
func (p *part) sent() *sending { return &p.both[p.window&1] }

// home returns the part of the run that has a node.
func (w *world) home(node int32) *world {
	if w.part == nil {
		return w
	}
	t := w.part.team
	return t.worlds[t.part[node]]
}

// worlds returns all parts of the run.
func (w *world) worlds() []*world {
	if w.part == nil {
		return []*world{w}
	}
	return w.part.team.worlds
}

// split makes the world the first of several parts, with modules in runtimes of their own.
func (w *world) split(ctx context.Context, more func() runtime, d division) error {
	t := &team{division: d}
	t.barrier.init(d.parts)
	for i := range d.parts {
		x := w
		if i > 0 {
			x = &world{plan: w.plan, clock: w.clock, ranks: w.ranks, lossless: w.lossless,
				watch: w.watch}
			x.setTransport()
			if err := x.loadGuarded(ctx, more()); err != nil {
				return err
			}
		}
		x.part = &part{team: t, index: int32(i)}
		for k := range x.part.both {
			x.part.both[k].to = make([]outbox, d.parts)
		}
		t.worlds = append(t.worlds, x)
	}
	return nil
}

// share gives the other parts what they have in common with the first.
func (w *world) share() {
	for _, x := range w.worlds()[1:] {
		own := *x
		*x = *w
		x.part, x.core, x.packets = own.part, own.core, newSlab()
		t := &x.transport
		t.clock, t.packets, t.enqueue = &x.clock, &x.packets, x.enqueue
		t.control, t.notifier = own.transport.control, own.transport.notifier
		t.telemetry = own.transport.telemetry
	}
	for id := range w.ports {
		p := &w.ports[id]
		p.cut = w.home(p.node) != w.home(p.peer)
	}
}

// pushWhole pushes an event of the whole run.
func (w *world) pushWhole(at int64, k kind) {
	if w.part == nil {
		w.events.push(at, k, 0)
		return
	}
	w.part.team.whole.push(newEvent(at, at, k, 0, 0))
}

// runParts is run for several parts.
func (w *world) runParts(ctx context.Context, progress func(done float64)) error {
	t := w.part.team
	first := int64(math.MaxInt64)
	for _, x := range t.worlds {
		first = min(first, x.events.first())
	}
	tell := func(now int64) error {
		progress(w.progress(now))
		return ctx.Err()
	}
	var others sync.WaitGroup
	for _, x := range t.worlds[1:] {
		others.Go(func() { t.work(x, first, nil) })
	}
	t.work(w, first, tell)
	others.Wait()
	for _, x := range t.worlds {
		if err := x.part.sent().err; err != nil {
			return err
		}
	}
	return nil
}

// work runs a part to the end of the run. The first event of all parts is at next. The first part
// tells about every ms how far it is.
func (t *team) work(w *world, next int64, tell func(now int64) error) {
	told := w.now
	goruntime.LockOSThread() // which keeps what it has in its core's cache
	defer goruntime.UnlockOSThread()
	for {
		if next = t.stop(w, next); next == never {
			return
		}
		end := next + t.horizonNs
		if len(t.whole.events) > 0 {
			end = min(end, t.whole.events[0].at+1)
		}
		s := w.part.begin()
		t.end(w, spent)
		s.err = w.window(end)
		t.end(w, worked)
		if s.err == nil && tell != nil && next-told >= watchNs {
			told = next
			s.err = tell(next)
		}
		t.barrier.wait()
		if next = t.earliest(w.part.window); next == failed {
			return
		}
		t.end(w, waited)
		w.exchange()
		t.end(w, exchanged)
	}
}

// step is a step of a window.
type step int

// The steps, by their ends.
const (
	spent step = iota // what is between windows
	worked
	waited
	exchanged
)

// end tells a test that measures of the end of a step of a part.
func (t *team) end(w *world, s step) {
	if t.stepped != nil {
		t.stepped(w, s)
	}
}

// What the time of the next event may be beside a time: there is none, or a part has failed.
const (
	never  = math.MaxInt64
	failed = math.MinInt64
)

// earliest returns when the first event of all parts behind a window happens.
func (t *team) earliest(window int) int64 {
	next := int64(never)
	for _, x := range t.worlds {
		s := &x.part.both[window&1]
		if s.err != nil {
			return failed
		}
		next = min(next, s.earliest)
	}
	return next
}

// stop has all parts stand still while what is due of the whole run happens: what comes before the
// next event of all parts. Returns never if the run is over.
func (t *team) stop(w *world, next int64) int64 {
	for len(t.whole.events) > 0 && t.whole.events[0].at < next {
		t.barrier.wait()
		if w.part.index == 0 {
			e := t.whole.pop()
			w.now = e.at
			for _, x := range t.worlds {
				x.events.time = e.at
			}
			w.happen(&e)
		}
		t.barrier.wait()
	}
	if !w.draining || next <= w.end+drainNs || next == never {
		return next
	}
	t.barrier.wait()
	if w.part.index == 0 {
		t.happenLast()
	}
	return never
}

// happenLast has the first event of all parts happen, which is the last of the run: so run ends.
func (t *team) happenLast() {
	var last *world
	var first event
	for _, x := range t.worlds {
		if e, ok := x.events.pop(); ok && (last == nil || e.before(&first)) {
			last, first = x, e
		}
	}
	last.now = first.at
	last.happen(&first)
}

// window lets the events before end happen.
func (w *world) window(end int64) (err error) {
	defer catch(&err)
	q, s := &w.events, w.part.sent()
	for {
		if w.ahead.due(q) {
			if !q.ready(end) {
				break
			}
			w.readAhead()
		}
		if !q.ready(end) {
			break
		}
		e, _ := q.pop()
		w.now = e.at
		s.events++
		w.happen(&e)
	}
	s.earliest = min(s.earliest, q.first())
	return nil
}

// barrier lets parts go on when all have come to it.
type barrier struct {
	parts, arrived atomic.Int32
	round          atomic.Uint32
	spins          int
	mu             sync.Mutex
	next           sync.Cond
}

func (b *barrier) init(parts int) {
	b.parts.Store(int32(parts))
	b.next.L = &b.mu
	if goruntime.GOMAXPROCS(0) >= parts {
		b.spins = mostSpins
	}
}

// mostSpins is how often a part looks whether the others have come, before it sleeps: some 250 us.
// One that sleeps goes on 50 to 100 us late on a virtual machine, as long as a window of many
// packets.
const mostSpins = 500_000

func (b *barrier) wait() {
	round := b.round.Load()
	if b.arrived.Add(1) == b.parts.Load() {
		b.arrived.Store(0)
		b.mu.Lock()
		b.round.Add(1)
		b.mu.Unlock()
		b.next.Broadcast()
		return
	}
	for range b.spins {
		if b.round.Load() != round {
			return
		}
	}
	b.mu.Lock()
	for b.round.Load() == round {
		b.next.Wait()
	}
	b.mu.Unlock()
}
