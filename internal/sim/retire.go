// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/pcn-linux/pcn/internal/result"

// This file frees what a flow has in the memory of wasm when nothing can change it any more: a
// workload has a million flows, and a few thousand at a time. Its row of the results is written
// then. With any number of parts, and whenever it happens, that row is the same.

// pool is places of equal size in a module's memory, which flows have one after the other.
type pool struct {
	zeros []byte // as large as a place
	free  []uint32
}

func newPool(bytes uint32) pool { return pool{zeros: make([]byte, bytes)} }

// take returns the address of a place, which is all zero.
func (p *pool) take(m *module) (uint32, error) {
	last := len(p.free) - 1
	if last < 0 {
		return m.alloc(uint32(len(p.zeros)))
	}
	at := p.free[last]
	p.free = p.free[:last]
	m.write(at, p.zeros)
	return at, nil
}

// give takes a place back that is no longer used. It ignores 0, which is none.
func (p *pool) give(at uint32) {
	if at != 0 {
		p.free = append(p.free, at)
	}
}

// setRetiring chooses the flows whose states go when they are done: all that end, and are not in
// the series. QCN's stay, as its notifications come from switches, which nobody counts by flow.
func (w *world) setRetiring() {
	t := &w.transport
	if t.control != nil && t.control.cnm != nil {
		return
	}
	for i := range t.flows[:t.streams] {
		f := &t.flows[i]
		f.retires = f.size != 0 && !w.record.watched[i]
		f.split = w.home(f.key.src) != w.home(f.key.dst)
		if f.retires && t.rows == nil {
			t.rows = make([]result.Flow, len(t.flows))
		}
	}
}

// quiet reports whether nothing happens to the flow any more: all is acknowledged, nothing of it is
// under way, and no timer of its notification point runs.
func (f *flow) quiet() bool {
	return f.completed != 0 && f.arrived == f.segments && f.answersHeard == f.answers &&
		f.pending == 0 && !f.windowTimer
}

// retire frees the states of a flow that is done, if it is quiet. Both of its ends are in the
// transport's part of the run, or all parts stand still; n is the notification point of its
// receiver.
func (t *transport) retire(f *flow, n *notifier) {
	if f.retired || t.draining || !f.quiet() {
		return
	}
	t.rows[f.id] = t.flowRow(f)
	f.retired, f.board, f.ahead = true, nil, nil
	if c := t.control; c != nil {
		c.socks.give(f.sock)
		c.entries.give(f.entry)
	}
	if n != nil {
		n.states.give(f.notify)
	}
	f.sock, f.entry, f.notify = 0, 0, 0
}

// retireSoon retires a flow that has all its data acknowledged, now or when all parts stand still.
func (t *transport) retireSoon(f *flow) {
	if !f.split {
		t.retire(f, t.notifier)
		return
	}
	t.done = append(t.done, f.id)
}

// retireSplit retires the flows that are done and have their ends in two parts.
func (w *world) retireSplit() {
	for _, x := range w.worlds() {
		t := &x.transport
		left := t.done[:0]
		for _, id := range t.done {
			f := &t.flows[id]
			if t.retire(f, w.home(f.key.dst).transport.notifier); !f.retired {
				left = append(left, id)
			}
		}
		t.done = left
	}
}
