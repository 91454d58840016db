// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math"

	"github.com/pcn-linux/pcn/netns-lab/gate"
)

// message returns how many packets a message of the flow has.
func (f *flow) message() uint32 { return cmp.Or(f.messagePackets, f.packets) }

// addGates sets what flows wait for.
func (w *world) addGates() {
	w.gates = gate.New(w.plan.exp)
	for i := range w.flows[:w.streams] {
		w.setGate(&w.flows[i])
	}
}

// setGate gives a flow what it may send, and when the gates are to hear of its arrivals.
func (w *world) setGate(f *flow) {
	f.allowed = uint32(w.gates.Passed(int(f.id))) * f.message()
	f.tellAt = math.MaxUint32
	if next := w.gates.Next(int(f.id)); next != 0 {
		f.tellAt = uint32(next) * f.message()
	}
}

// tell has the gates hear of the messages of a flow that have arrived.
func (w *world) tell(f *flow) {
	w.gates.Arrived(int(f.id), int(f.expected/f.message()), func(wait int) {
		w.events.push(w.now+int64(w.plan.exp.Waits[wait].Delay), evRelease, uint32(wait))
	})
	w.setGate(f)
}

// release ends a wait.
func (w *world) release(wait int) {
	if w.draining {
		return
	}
	for _, p := range w.gates.Release(wait) {
		f := &w.flows[p.Flow]
		w.setGate(f)
		switch {
		case f.started:
			w.trySend(f)
		case f.allowed > 0 && w.now >= f.start:
			f.start = w.now
			w.begin(f)
		}
	}
}

// neverStarted gives flows that still wait the end of the run as their start.
func (w *world) neverStarted() {
	for i := range w.flows[:w.streams] {
		if f := &w.flows[i]; f.packets != 0 && f.allowed == 0 {
			f.start = w.end
		}
	}
}
