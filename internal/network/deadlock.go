// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"maps"
	"slices"
)

// A port is paused until the switch at the other end has sent most of what came from it. If that
// waits in ports that are paused themselves, and so on until one waits for the first, then none of
// them can send again: a deadlock. It depends on what waits where, and not on how long.

// Queue is the queue of a class at a port.
type Queue struct {
	Port  uint32
	Class uint8
}

// CompareQueues orders queues by port, then by class.
func CompareQueues(a, b Queue) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class))
}

// PausedQueue is the state of a queue that is paused.
type PausedQueue struct {
	SinceNs uint64
	Ingress uint32            // port at the other end of its link, which paused it
	Node    int               // node of that port
	Held    map[uint32]uint64 // bytes, by the port of its own node that they came in by
}

// PausedQueues are all queues that are paused.
type PausedQueues map[Queue]*PausedQueue

// Stuck returns the queues that can never send again. Each waits for more bytes than its threshold for
// a RESUME, and they are in queues which are stuck too. xon is the threshold of a port when its node
// holds so many bytes for good. The result is the largest set of queues that block each other: Stuck
// takes away queues that can go on until there are none.
func (all PausedQueues) Stuck(
	nodeOf func(port uint32) int, xon func(ingress uint32, stuckBytes uint64) uint64,
) PausedQueues {
	left := maps.Clone(all)
	for changed := true; changed; {
		changed = false
		from := map[Queue]uint64{} // bytes in stuck queues, by the port and class that they came by
		at := map[int]uint64{}     // and by node
		for q, p := range left {
			for ingress, bytes := range p.Held {
				from[Queue{ingress, q.Class}] += bytes
				at[nodeOf(q.Port)] += bytes
			}
		}
		for q, p := range left {
			if from[Queue{p.Ingress, q.Class}] <= xon(p.Ingress, at[p.Node]) {
				delete(left, q)
				changed = true
			}
		}
	}
	return left
}

// WaitGraph has, for each queue, the queues that hold what it waits for, in order.
type WaitGraph map[Queue][]Queue

// WaitGraph returns which queues wait for which.
func (all PausedQueues) WaitGraph() WaitGraph {
	holders := map[Queue][]Queue{} // of what came in by a port, in a class
	ordered := slices.SortedFunc(maps.Keys(all), CompareQueues)
	for _, q := range ordered {
		for ingress, bytes := range all[q].Held {
			if bytes > 0 {
				from := Queue{ingress, q.Class}
				holders[from] = append(holders[from], q)
			}
		}
	}
	w := WaitGraph{}
	for _, q := range ordered {
		w[q] = holders[Queue{all[q].Ingress, q.Class}]
	}
	return w
}

// Cycle returns a shortest cycle of queues that wait for each other, from its lowest queue on; nil if
// there is none.
func (w WaitGraph) Cycle() []Queue {
	var shortest []Queue
	for _, first := range slices.SortedFunc(maps.Keys(w), CompareQueues) {
		if c := w.cycleFrom(first); c != nil && (shortest == nil || len(c) < len(shortest)) {
			shortest = c
		}
	}
	return shortest
}

// cycleFrom returns a shortest cycle through a queue, breadth first.
func (w WaitGraph) cycleFrom(first Queue) []Queue {
	cameFrom := map[Queue]Queue{}
	for queue := []Queue{first}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range w[at] {
			if next == first {
				path := []Queue{at}
				for ; at != first; path = append(path, at) {
					at = cameFrom[at]
				}
				slices.Reverse(path)
				return path
			}
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}
