// SPDX-License-Identifier: Apache-2.0

package sim

// pause stops a queue, or keeps it stopped if its PAUSE is repeated.
func (w *world) pause(q *queue, arg uint32) {
	if w.pauseTime != 0 {
		q.pauseEnd = w.now + w.pauseTime
		w.events.push(q.pauseEnd, evLink, arg&^3|linkExpired)
		if q.paused {
			return // a repetition, which no counter and no log has
		}
	}
	if q.deaf {
		w.core.hears(w.now, q, true)
		return
	}
	q.pauseReceived++
	if !q.paused {
		q.paused = true
		q.pausedSince = w.now
	}
}

// unpause ends a PAUSE, and reports whether the queue had obeyed it.
func (w *world) unpause(q *queue) bool {
	obeyed := q.paused
	if q.deaf {
		w.core.hears(w.now, q, false)
	}
	q.paused = false
	return obeyed
}

// expired tells the port that sent a PAUSE that it is over. The log has a RESUME in its place.
func (w *world) expired(ingress int32, class uint8) {
	in := &w.ports[ingress]
	q := &in.queues[class]
	if !q.pausing {
		return // a RESUME is under way
	}
	q.pausing = false
	q.resumeSent++
	w.logPFC(ingress, in, class, linkResume, w.now)
	if q.storming {
		w.act(ingress, in, q, class, w.core.pause)
	}
}

// repeat sends a PAUSE again, if it is needed still.
func (w *world) repeat(arg uint32) {
	in, class := &w.ports[arg>>5], uint8(arg>>2&7)
	q := &in.queues[class]
	if !q.pausing || in.down || w.now < q.toldAt+w.pauseRepeat {
		return
	}
	w.pushLink(in, w.now+in.delay, linkArg(in.back, class, linkPause))
	w.repeatLater(in, class, arg)
}

// repeatLater notes that a PAUSE was sent now, and has repeat look again after pauseRepeat.
func (w *world) repeatLater(in *port, class uint8, arg uint32) {
	in.queues[class].toldAt = w.now
	w.events.push(w.now+w.pauseRepeat, evRepeat, arg)
}

// mmuQueue is what an ingress port and class have of a switch's buffer, where parts of it are not
// shared. This is the memory management unit of HPCC's simulator (switch-mmu.cc).
type mmuQueue struct {
	headroom   uint64 // bytes in the headroom
	threshold  uint64 // Q8: share of the free shared buffer
	mostInRoom uint64 // the headroom's size; 0: there is none, and all else is shared
}

// shared returns what an ingress port and class hold of the shared buffer.
func (w *world) shared(q *queue) uint64 {
	own := q.held - q.mmu.headroom
	return own - min(own, w.reserve)
}

// xoff returns the most that they may hold of it.
func (n *node) xoff(q *queue) uint64 {
	return (n.sharedBytes - min(n.sharedUsed, n.sharedBytes)) * q.mmu.threshold >> alphaShift
}

// admits reports whether a switch takes a packet in.
func (w *world) admits(ingress int32, k *packet, n *node) bool {
	q := &w.ports[ingress].queues[k.class]
	size := uint64(k.size)
	return !q.lossless || q.mmu.mostInRoom == 0 || q.mmu.headroom+size <= q.mmu.mostInRoom ||
		w.shared(q)+size <= n.xoff(q)
}

// accountShared counts a packet that came in or leaves, and returns what the ingress port does
// about it.
func (w *world) accountShared(q *queue, n *node, size uint64, enters bool) (action uint64) {
	before := w.shared(q)
	if enters {
		own := q.held - q.mmu.headroom + size
		if own > w.reserve && own-w.reserve > n.xoff(q) && q.mmu.mostInRoom > 0 {
			q.mmu.headroom += size
		}
		q.held += size
	} else {
		q.mmu.headroom -= min(q.mmu.headroom, size)
		q.held -= size
	}
	after := w.shared(q)
	n.sharedUsed = n.sharedUsed + after - before
	xoff := n.xoff(q)
	if !q.pausing {
		if enters && (q.mmu.headroom > 0 || after >= xoff) {
			return w.core.pause
		}
		return 0
	}
	if !enters && q.mmu.headroom == 0 && (after == 0 || after+w.xonOffset <= xoff) {
		return w.core.resume
	}
	return 0
}

// setBuffers divides switches' buffers, if parts of them are not shared.
func (w *world) setBuffers() {
	d := w.plan.exp.Switch.PFC.Dynamic
	if d == nil || d.Headroom == 0 && d.Reserve == 0 || !w.lossless {
		return
	}
	w.mmu, w.reserve, w.xonOffset = true, uint64(d.Reserve), uint64(d.XONOffset)
	for i := range w.nodes {
		w.nodes[i].sharedBytes = w.nodes[i].bufferBytes
	}
	sw, line := &w.plan.exp.Switch, w.plan.exp.Topology.Rate
	for id := range w.ports {
		p := &w.ports[id]
		w.nodes[p.node].sharedBytes -= d.OwnBytes(p.rate, uint64(p.delay))
		for c := range p.queues {
			p.queues[c].mmu = mmuQueue{
				threshold: uint64(alphaOf(
					float64(sw.DynamicOf(*w.nodes[p.node].own).AlphaAt(p.rate, line)))),
				mostInRoom: d.HeadroomBytes(p.rate, uint64(p.delay)),
			}
		}
	}
}

// sharedXON returns the most that an ingress port may hold to go on, with so many bytes in the
// node's queues for good.
func (w *world) sharedXON(in *port, stuckBytes uint64) uint64 {
	n := w.nodes[in.node]
	n.sharedUsed = stuckBytes
	xoff := n.xoff(&in.queues[0])
	return w.reserve + xoff - min(xoff, w.xonOffset)
}

// share counts what is in the shared part of a buffer.
func (n *node) share(size uint32, enters bool) {
	if enters {
		n.sharedUsed += uint64(size)
		return
	}
	n.sharedUsed -= uint64(size)
}
