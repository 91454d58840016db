// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// watchNs is the interval of looking for deadlocks.
const watchNs = 1_000_000

// watchDeadlock looks for a deadlock now. One lasts, so the first is the only one, unless PFC's
// watchdog breaks it: then the record is of the first.
func (w *world) watchDeadlock() {
	if !w.lossless || w.cbfc {
		return
	}
	switch d := w.record.deadlock; {
	case d == nil:
		w.record.deadlock = w.findDeadlock()
	case w.pfcDog != nil && d.BrokenNs == 0 && w.findDeadlock() == nil:
		d.BrokenNs = w.sinceStart(w.now)
	}
	if !w.draining {
		w.pushWhole(w.now+watchNs, evWatch)
	}
}

func (w *world) findDeadlock() *result.Deadlock {
	paused := network.PausedQueues{}
	for id := range w.ports {
		p := &w.ports[id]
		for c := range p.queues {
			q := &p.queues[c]
			if !q.paused || q.packets == 0 || !w.ports[p.back].queues[c].pausing {
				continue // a RESUME is under way
			}
			if w.ports[p.back].fromHost {
				continue // a storm, which waits for nobody
			}
			paused[network.Queue{Port: uint32(id), Class: uint8(c)}] = &network.PausedQueue{
				SinceNs: uint64(q.pausedSince), Ingress: uint32(p.back), Node: int(p.peer),
				Held: w.home(p.node).held(q),
			}
		}
	}
	if len(paused) == 0 {
		return nil
	}
	stuck := paused.Stuck(func(port uint32) int { return int(w.ports[port].node) },
		func(ingress uint32, stuckBytes uint64) uint64 {
			if w.mmu {
				return w.sharedXON(&w.ports[ingress], stuckBytes)
			}
			in := &w.ports[ingress]
			buffer := w.nodes[in.node].bufferBytes
			return w.home(in.node).core.xonBytes(in.thresholds(), buffer-min(buffer, stuckBytes))
		})
	if len(stuck) == 0 {
		return nil
	}
	out := result.NewDeadlock(stuck, func(port uint32) string { return w.plan.portNames[port] })
	out.Class, out.SinceNs = w.ranks.class[out.Class], w.sinceStart(out.SinceNs)
	return out
}

// held returns the bytes in a queue by the port that they came in by.
func (w *world) held(q *queue) map[uint32]uint64 {
	held := map[uint32]uint64{}
	for i := q.head; i != none; i = w.packets.packets[i].next {
		if k := &w.packets.packets[i]; k.ingress != none {
			held[uint32(k.ingress)] += uint64(k.size)
		}
	}
	return held
}
