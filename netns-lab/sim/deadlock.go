// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/pcn-linux/pcn/netns-lab/network"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// watchNs is the interval of looking for deadlocks.
const watchNs = 1_000_000

// watchDeadlock looks for a deadlock now. One lasts, so the first is the only one.
func (w *world) watchDeadlock() {
	if w.record.deadlock == nil && w.lossless && !w.cbfc {
		w.record.deadlock = w.findDeadlock()
	}
	if !w.draining {
		w.events.push(w.now+watchNs, evWatch, 0)
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
			paused[network.Queue{Port: uint32(id), Class: uint8(c)}] = &network.PausedQueue{
				SinceNs: uint64(q.pausedSince), Ingress: uint32(p.back), Node: int(p.peer),
				Held: w.held(q),
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
			buffer := w.nodes[w.ports[ingress].node].bufferBytes
			return w.core.xonBytes(w.ports[ingress].thresholds(), buffer-min(buffer, stuckBytes))
		})
	if len(stuck) == 0 {
		return nil
	}
	out := &result.Deadlock{Behind: len(stuck)}
	var since uint64
	for _, q := range stuck.WaitGraph().Cycle() {
		since = max(since, stuck[q].SinceNs)
		out.Ports = append(out.Ports, w.plan.portNames[q.Port])
		out.Class = w.ranks.class[q.Class]
	}
	out.Behind -= len(out.Ports)
	out.SinceNs = w.sinceStart(int64(since))
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
