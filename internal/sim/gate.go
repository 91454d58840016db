// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math"

	"github.com/pcn-linux/pcn/internal/gate"
)

// message returns how many packets a message of the flow has.
func (f *flow) message() uint32 { return cmp.Or(f.messagePackets, f.packets) }

// addGates sets what flows wait for. Without waits there are no gates.
func (t *transport) addGates() {
	waits := len(t.plan.exp.Waits) > 0
	if waits {
		t.gates = gate.New(t.plan.exp)
	}
	for i := range t.flows[:t.streams] {
		f := &t.flows[i]
		f.tellAt = math.MaxUint32
		if waits {
			t.setGate(f)
		}
	}
}

// setGate gives a flow what it may send, and when the gates are to hear of its arrivals.
func (t *transport) setGate(f *flow) {
	f.allowed = uint32(t.gates.Passed(int(f.id))) * f.message()
	f.tellAt = math.MaxUint32
	if next := t.gates.Next(int(f.id)); next != 0 {
		f.tellAt = uint32(next) * f.message()
	}
}

// tell has the gates hear of the messages of a flow that have arrived.
func (t *transport) tell(f *flow) {
	t.gates.Arrived(int(f.id), int(f.expected/f.message()), func(wait int) {
		t.events.push(t.now+int64(t.plan.exp.Waits[wait].Delay), evRelease, uint32(wait))
	})
	t.setGate(f)
}

// release ends a wait.
func (t *transport) release(wait int) {
	if t.draining {
		return
	}
	for _, p := range t.gates.Release(wait) {
		f := &t.flows[p.Flow]
		t.setGate(f)
		switch {
		case f.started:
			t.trySend(f)
		case f.allowed > 0 && t.now >= f.start:
			f.start = t.now
			t.begin(f)
		}
	}
}

// neverStarted gives flows that still wait the end of the run as their start.
func (t *transport) neverStarted() {
	for i := range t.flows[:t.streams] {
		if f := &t.flows[i]; f.packets != 0 && f.allowed == 0 {
			f.start = t.end
		}
	}
}
