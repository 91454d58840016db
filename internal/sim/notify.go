// SPDX-License-Identifier: Apache-2.0

package sim

import "context"

// notifier runs a notification point.
type notifier struct {
	*module
	packet *function
	states pool // of flows
	marked bool // packets without a mark change nothing, so it is not asked about them
	// due and expire are nil unless windows end by a timer.
	due, expire *function
}

func newNotifier(
	ctx context.Context, r runtime, name string, code, params []byte, tcd bool,
) (*notifier, error) {
	m, err := newModule(ctx, r, name, code)
	if err != nil {
		return nil, err
	}
	needed, err := m.need("simulate_packet", "simulate_state_bytes")
	if err != nil {
		return nil, err
	}
	m.set("params", params)
	if tcd {
		m.set("tcd", []byte{1})
	}
	n := &notifier{module: m, packet: needed[0], states: newPool(uint32(needed[1].call())),
		marked: m.function("simulate_ignores_unmarked") != nil}
	if timed := m.function("simulate_timed"); timed != nil && timed.call() != 0 {
		needed, err := m.need("simulate_due", "simulate_expire")
		if err != nil {
			return nil, err
		}
		n.due, n.expire = needed[0], needed[1]
	}
	return n, nil
}

// Codepoints of the ECN field (bpf/include/packet.h).
const (
	ecnNone = 0
	ecnECT  = 1 // ECT(1): TCD needs the other codepoint
	ecnUE   = 2
	ecnCE   = 3
)

// receive hands a data packet of the flow to the notification point, and returns its answer.
func (n *notifier) receive(now int64, f *flow, frame uint32, ecn uint64) notification {
	if n.marked && ecn < ecnUE {
		return 0
	}
	if f.notify == 0 {
		var err error
		if f.notify, err = n.states.take(n.module); err != nil {
			panic(trap{err})
		}
	}
	stack := &n.packet.stack
	stack[0], stack[1], stack[2], stack[3] = uint64(f.notify), uint64(now), uint64(frame), ecn
	return notification(n.packet.call())
}

// dueAt returns when the flow's window ends; 0 if it has none, or none that a timer ends.
func (n *notifier) dueAt(f *flow) int64 {
	if n.due == nil {
		return 0
	}
	n.due.stack[0] = uint64(f.notify)
	return int64(n.due.call())
}

// timer closes the flow's window if it has ended, and returns the answer.
func (n *notifier) timer(now int64, f *flow) notification {
	n.expire.stack[0], n.expire.stack[1] = uint64(f.notify), uint64(now)
	return notification(n.expire.call())
}

// notification is what simulate_packet in bpf/include/notify.h returns.
type notification uint64

func (n notification) send() bool      { return n&1 != 0 }
func (n notification) ce() uint64      { return uint64(n >> 1 & 1) }
func (n notification) ue() uint64      { return uint64(n >> 2 & 1) }
func (n notification) recRate() uint32 { return uint32(n >> 32) }
