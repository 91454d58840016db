// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"maps"
	"slices"

	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// pausedPorts returns the queues that are paused, or soon will be, by the log of PFC.
type pausedPorts map[network.Queue]bool

func (p pausedPorts) see(e npecn.PFCEvent) {
	if q := (network.Queue{Port: e.Port, Class: e.Class}); e.Pause {
		p[q] = true
	} else {
		delete(p, q)
	}
}

// suspects returns the paused queues that wait for a port that is paused too. Without them there is
// no deadlock.
func (p pausedPorts) suspects(ports []port) []network.Queue {
	left := maps.Clone(p)
	for changed := true; changed; {
		changed = false
		pausedAt := map[int]map[uint8]bool{} // classes, by node
		for q := range left {
			n := ports[q.Port].node
			if pausedAt[n] == nil {
				pausedAt[n] = map[uint8]bool{}
			}
			pausedAt[n][q.Class] = true
		}
		for q := range left {
			if !pausedAt[ports[q.Port].peer][q.Class] {
				delete(left, q)
				changed = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(left), network.CompareQueues)
}

// deadlockWatch looks for a deadlock during the run. A deadlock lasts, so the first is the only
// one.
type deadlockWatch struct {
	fabric *fabric
	window window
	paused pausedPorts
	found  *result.Deadlock // nil before a deadlock
}

// watch looks for a deadlock now.
func (d *deadlockWatch) watch() (err error) {
	if d.found == nil {
		d.found, err = d.find()
	}
	return err
}

func (d *deadlockWatch) find() (*result.Deadlock, error) {
	ports := d.fabric.plan.ports
	suspects := d.paused.suspects(ports)
	if len(suspects) == 0 {
		return nil, nil
	}
	all, states, err := d.readPaused(suspects)
	if err != nil {
		return nil, err
	}
	stuck := all.Stuck(func(port uint32) int { return ports[port].node }, d.xonBytes)
	if len(stuck) == 0 {
		return nil, nil
	}
	if still, err := d.still(stuck, states); !still || err != nil {
		return nil, err
	}
	return d.describe(stuck), nil
}

// still reports whether no queue has moved since it was read. Queues are read one by one: only then
// were they stuck together.
func (d *deadlockWatch) still(
	stuck network.PausedQueues, states map[network.Queue]npecn.ClassState,
) (bool, error) {
	for q := range stuck {
		now, err := d.readState(q)
		if err != nil || !now.Paused || now.SentPackets != states[q].SentPackets ||
			now.PauseReceived != states[q].PauseReceived {
			return false, err
		}
	}
	return true, nil
}

func (d *deadlockWatch) describe(stuck network.PausedQueues) *result.Deadlock {
	out := result.NewDeadlock(stuck,
		func(port uint32) string { return d.fabric.plan.ports[port].name })
	out.SinceNs = d.window.since(uint64(out.SinceNs))
	return out
}

// readPaused reads the suspects that are paused, and for which no RESUME is under way.
func (d *deadlockWatch) readPaused(
	suspects []network.Queue,
) (network.PausedQueues, map[network.Queue]npecn.ClassState, error) {
	all, states := network.PausedQueues{}, map[network.Queue]npecn.ClassState{}
	for _, q := range suspects {
		state, err := d.readState(q)
		if err != nil {
			return nil, nil, err
		}
		if !state.Paused || state.QueuedPackets == 0 {
			continue
		}
		held, err := d.fabric.qdisc.Held(q.Port, q.Class)
		if err != nil {
			return nil, nil, err
		}
		p := d.fabric.plan.ports[q.Port]
		all[q] = &network.PausedQueue{
			SinceNs: state.PausedSinceNs, Ingress: p.back, Node: p.peer, Held: held,
		}
		states[q] = state
	}
	return all, states, nil
}

// readState reads a queue. It is paused only if the port at the other end has not sent a RESUME.
func (d *deadlockWatch) readState(q network.Queue) (npecn.ClassState, error) {
	peer, err := d.fabric.qdisc.ClassState(d.fabric.plan.ports[q.Port].back, q.Class)
	if err != nil {
		return npecn.ClassState{}, err
	}
	state, err := d.fabric.qdisc.ClassState(q.Port, q.Class)
	state.Paused = state.Paused && peer.Pausing
	return state, err
}

// xonBytes returns the RESUME threshold of a port's peer if so many bytes stay in the peer's node.
func (d *deadlockWatch) xonBytes(ingress uint32, stuckBytes uint64) uint64 {
	o := d.fabric.options
	buffer := o.Nodes[d.fabric.plan.ports[ingress].node].BufferBytes
	return o.Ports[ingress].PFC.XONBytes(buffer - min(buffer, stuckBytes))
}
