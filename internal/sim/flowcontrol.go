// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/pcn-linux/pcn/internal/result"

// The link events of evLink.
const (
	linkResume = iota
	linkPause
	linkCredits
	linkExpired // a PAUSE of limited time is over
)

func linkArg(port int32, class uint8, what uint32) uint32 {
	return uint32(port)<<5 | uint32(class)<<2 | what
}

// account counts a packet that came into a switch by a port, or leaves it.
func (w *world) account(ingress int32, class uint8, size uint32, enters bool, n *node) {
	in := &w.ports[ingress]
	q := &in.queues[class]
	if !q.lossless {
		if w.mmu && class != w.ranks.control { // a lossy class uses the shared part too
			n.share(size, enters)
		}
		return
	}
	if w.cbfc {
		w.accountCredits(in, q, class, size, enters)
		return
	}
	if w.mmu {
		w.act(ingress, in, q, class, w.accountShared(q, &w.nodes[in.node], uint64(size), enters))
		return
	}
	if enters {
		q.held += uint64(size)
	} else {
		q.held -= uint64(size)
	}
	if q.held <= w.calmBytes && n.used <= w.calmUsed && !q.pausing || in.down || q.deaf {
		return // the core says nothing below the lowest threshold, and needs to know nothing
	}
	free := n.bufferBytes - min(n.used, n.bufferBytes)
	action, frames := w.core.check(w.now, q, q.ingress, enters, free)
	if w.repeatPairs {
		frames = w.checkPairs(q, enters, free)
	}
	q.frames += frames
	w.act(ingress, in, q, class, action)
}

// checkPairs returns how many PAUSE frames a switch would have sent that repeats them by pairs of
// ports. If a packet entered, it leaves by w.leavesBy.
func (w *world) checkPairs(q *queue, enters bool, free uint64) (frames uint64) {
	for _, p := range q.pairs {
		_, more := w.core.check(w.now, q, p.core, enters && p.out == w.leavesBy, free)
		frames += more
	}
	return frames
}

// act pauses the peer of an ingress port, or has it go on.
func (w *world) act(ingress int32, in *port, q *queue, class uint8, action uint64) {
	if q.deaf {
		return // its watchdog has turned PFC off
	}
	switch action {
	case w.core.pause:
		q.pausing = true
		q.pauseSent++
		w.tellPeer(ingress, in, class, linkPause)
	case w.core.resume:
		q.pausing = false
		q.resumeSent++
		w.tellPeer(ingress, in, class, linkResume)
	}
}

// tellPeer sends a PAUSE or a RESUME, which takes effect when the link's delay is over.
func (w *world) tellPeer(id int32, in *port, class uint8, what uint32) {
	at := w.now + in.delay
	w.pushLink(in, at, linkArg(in.back, class, what))
	w.logPFC(id, in, class, what, at)
	if what == linkPause && w.pauseRepeat != 0 {
		w.repeatLater(in, class, linkArg(id, class, what))
	}
}

// logPFC records a PAUSE or a RESUME.
func (w *world) logPFC(id int32, in *port, class uint8, what uint32, at int64) {
	e := result.PFCEvent{
		SentNs: w.sinceStart(w.now), EffectNs: w.sinceStart(at),
		From: w.plan.nodeNames[in.node], To: w.plan.devices[id],
		Class: w.ranks.class[class], Kind: result.Resume,
	}
	if what == linkPause {
		e.Kind = result.Pause
	}
	w.record.pfc = append(w.record.pfc, e)
}

// accountCredits lends what is free again at the end of an update period.
func (w *world) accountCredits(in *port, q *queue, class uint8, size uint32, enters bool) {
	if enters {
		w.core.takeIn(q, size)
		return
	}
	blocks := w.core.free(q, size)
	at := w.core.tickAfter(w.now) + in.delay
	up := &w.ports[in.back].queues[class]
	if n := len(up.credits); n > 0 && up.credits[n-1].at == at {
		up.credits[n-1].blocks += blocks
		return
	}
	up.credits = append(up.credits, creditUpdate{at, blocks})
	w.events.push(at, evLink, linkArg(in.back, class, linkCredits))
}

// linkEvent applies a PAUSE, a RESUME or credits.
func (w *world) linkEvent(arg uint32) {
	id, class := int32(arg>>5), uint8(arg>>2&7)
	p := &w.ports[id]
	q := &p.queues[class]
	if w.now < p.deafUntil {
		return
	}
	switch arg & 3 {
	case linkPause:
		w.pause(q, arg)
		return
	case linkExpired:
		if w.now < q.pauseEnd || !w.unpause(q) {
			return
		}
		w.expired(p.back, class)
	case linkResume:
		q.resumeReceived++
		if !w.unpause(q) {
			return
		}
	case linkCredits:
		w.core.update(q, q.credits[0].blocks)
		q.credits = q.credits[:copy(q.credits, q.credits[1:])]
		if !q.off || q.packets > 0 && !w.core.may(q, w.packets.packets[q.head].size) {
			return
		}
		q.off = false
	}
	w.goOn(id, p, q)
}

// goOn ends a queue's OFF.
func (w *world) goOn(id int32, p *port, q *queue) {
	q.readyAt = w.now
	q.pausedNs += uint64(w.now - q.pausedSince)
	if q.marked {
		w.core.goOn(w.now, q)
		if w.watch {
			w.record.offs[id] = append(w.record.offs[id], offTimes{q.pausedSince, w.now})
		}
	}
	if q.packets > 0 && !p.deciding {
		w.decideAt(id, p)
	}
}
