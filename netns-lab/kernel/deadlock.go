// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pcn-linux/pcn/netns-lab/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// A port is paused until the switch at the other end has sent most of what came from it. If that waits in ports that are
// paused themselves, and so on until one waits for the first, then nobody can go on, ever: a deadlock. So it is a
// matter of what waits where, and not of how long.

// classQueue is the queue of a class at a port.
type classQueue struct {
	port  uint32
	class uint8
}

func compareQueues(a, b classQueue) int {
	return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(a.class, b.class))
}

// pausedQueue is one that is paused.
type pausedQueue struct {
	sinceNs uint64
	ingress uint32            // port at the other end of its link, which paused it
	node    int               // of that port
	held    map[uint32]uint64 // bytes, by the port of its own node that they came in by
}

// pausedQueues are all that are paused, with the node that each waits at.
type pausedQueues map[classQueue]*pausedQueue

// stuck returns those that can't ever send again: each waits for more than its threshold for a RESUME, in bytes that are in
// queues which are stuck too. xon is the threshold of a port when its node holds so many bytes that stay. It takes the largest
// set of queues that holds itself, by taking away what can go on until nothing can.
func (all pausedQueues) stuck(nodeOf func(port uint32) int, xon func(ingress uint32, stuckBytes uint64) uint64) pausedQueues {
	left := maps.Clone(all)
	for changed := true; changed; {
		changed = false
		from := map[classQueue]uint64{} // bytes in stuck queues, by the port and class that they came in by
		at := map[int]uint64{}          // and by node
		for q, p := range left {
			for ingress, bytes := range p.held {
				from[classQueue{ingress, q.class}] += bytes
				at[nodeOf(q.port)] += bytes
			}
		}
		for q, p := range left {
			if from[classQueue{p.ingress, q.class}] <= xon(p.ingress, at[p.node]) {
				delete(left, q)
				changed = true
			}
		}
	}
	return left
}

// waits are the queues that hold what each queue waits for, in order.
type waits map[classQueue][]classQueue

func (all pausedQueues) waits() waits {
	holders := map[classQueue][]classQueue{} // of what came in by a port, in a class
	ordered := slices.SortedFunc(maps.Keys(all), compareQueues)
	for _, q := range ordered {
		for ingress, bytes := range all[q].held {
			if bytes > 0 {
				from := classQueue{ingress, q.class}
				holders[from] = append(holders[from], q)
			}
		}
	}
	w := waits{}
	for _, q := range ordered {
		w[q] = holders[classQueue{all[q].ingress, q.class}]
	}
	return w
}

// cycle returns a shortest cycle of queues that wait for each other, from the least of them on; nil if there is none.
func (w waits) cycle() []classQueue {
	var shortest []classQueue
	for _, first := range slices.SortedFunc(maps.Keys(w), compareQueues) {
		if c := w.cycleFrom(first); c != nil && (shortest == nil || len(c) < len(shortest)) {
			shortest = c
		}
	}
	return shortest
}

// cycleFrom returns a shortest way from a queue back to it, breadth first.
func (w waits) cycleFrom(first classQueue) []classQueue {
	cameFrom := map[classQueue]classQueue{}
	for queue := []classQueue{first}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range w[at] {
			if next == first {
				way := []classQueue{at}
				for ; at != first; way = append(way, at) {
					at = cameFrom[at]
				}
				slices.Reverse(way)
				return way
			}
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// pausedPorts are the queues that are paused, or soon will be, by the log of PFC.
type pausedPorts map[classQueue]bool

func (p pausedPorts) see(e npecn.PFCEvent) {
	if e.Pause {
		p[classQueue{e.Port, e.Class}] = true
	} else {
		delete(p, classQueue{e.Port, e.Class})
	}
}

// suspects are those of which each waits for a port that is paused too. There is no deadlock without any.
func (p pausedPorts) suspects(f *fabric) []classQueue {
	left := maps.Clone(p)
	for changed := true; changed; {
		changed = false
		pausedAt := map[int]map[uint8]bool{} // classes, by node
		for q := range left {
			n := f.plan.ports[q.port].node
			if pausedAt[n] == nil {
				pausedAt[n] = map[uint8]bool{}
			}
			pausedAt[n][q.class] = true
		}
		for q := range left {
			if !pausedAt[f.plan.ports[q.port].peer][q.class] {
				delete(left, q)
				changed = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(left), compareQueues)
}

// watchDeadlock looks for a deadlock now, unless there was one before: it lasts.
func (c *collector) watchDeadlock() (err error) {
	if c.deadlock == nil {
		c.deadlock, err = c.findDeadlock()
	}
	return err
}

// findDeadlock returns a deadlock that there is now, or nil.
func (c *collector) findDeadlock() (*result.Deadlock, error) {
	suspects := c.paused.suspects(c.f)
	if len(suspects) == 0 {
		return nil, nil
	}
	all, states, err := c.readPaused(suspects)
	if err != nil {
		return nil, err
	}
	stuck := all.stuck(func(port uint32) int { return c.f.plan.ports[port].node }, c.f.xonBytes)
	if len(stuck) == 0 {
		return nil, nil
	}
	// Queues were read one by one: they are stuck together if none has moved since.
	for q := range stuck {
		now, err := c.readState(q)
		if err != nil || now.SentPackets != states[q].SentPackets || now.PauseReceived != states[q].PauseReceived || !now.Paused {
			return nil, err
		}
	}
	d := &result.Deadlock{Behind: len(stuck)}
	var since uint64
	for _, q := range stuck.waits().cycle() {
		since = max(since, stuck[q].sinceNs)
		d.Ports = append(d.Ports, c.f.plan.ports[q.port].name)
		d.Class = q.class
	}
	d.Behind -= len(d.Ports)
	d.SinceNs = c.since(since)
	return d, nil
}

// readPaused reads the suspects that are paused, and will stay so for all that is said yet.
func (c *collector) readPaused(suspects []classQueue) (pausedQueues, map[classQueue]npecn.ClassState, error) {
	all, states := pausedQueues{}, map[classQueue]npecn.ClassState{}
	for _, q := range suspects {
		state, err := c.readState(q)
		if err != nil {
			return nil, nil, err
		}
		if !state.Paused || state.QueuedPackets == 0 {
			continue
		}
		held, err := c.f.qdisc.Held(q.port, q.class)
		if err != nil {
			return nil, nil, err
		}
		p := c.f.plan.ports[q.port]
		all[q] = &pausedQueue{sinceNs: state.PausedSinceNs, ingress: p.back, node: p.peer, held: held}
		states[q] = state
	}
	return all, states, nil
}

// readState reads a queue; it is paused if the port at the other end has not sent a RESUME either.
func (c *collector) readState(q classQueue) (npecn.ClassState, error) {
	peer, err := c.f.qdisc.ClassState(c.f.plan.ports[q.port].back, q.class)
	if err != nil {
		return npecn.ClassState{}, err
	}
	state, err := c.f.qdisc.ClassState(q.port, q.class)
	state.Paused = state.Paused && peer.Pausing
	return state, err
}

// xonBytes is the threshold for a RESUME of a port's peer, if so many bytes stay in its node.
func (f *fabric) xonBytes(ingress uint32, stuckBytes uint64) uint64 {
	buffer := f.options.Nodes[f.plan.ports[ingress].node].BufferBytes
	return f.options.Ports[ingress].PFC.XONBytes(buffer - min(buffer, stuckBytes))
}
