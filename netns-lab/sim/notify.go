// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	"github.com/tetratelabs/wazero"
)

// notifier runs a notification point.
type notifier struct {
	*module
	packet *function
	bytes  uint32 // of a flow's state
}

func newNotifier(
	ctx context.Context, runtime wazero.Runtime, name string, code, params []byte, tcd bool,
) (*notifier, error) {
	m, err := newModule(ctx, runtime, name, code)
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
	return &notifier{module: m, packet: needed[0], bytes: uint32(needed[1].call())}, nil
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
	stack := &n.packet.stack
	stack[0], stack[1], stack[2], stack[3] = uint64(f.notify), uint64(now), uint64(frame), ecn
	return notification(n.packet.call())
}

// notification is what simulate_packet in bpf/include/notify.h returns.
type notification uint64

func (n notification) send() bool      { return n&1 != 0 }
func (n notification) ce() uint64      { return uint64(n >> 1 & 1) }
func (n notification) ue() uint64      { return uint64(n >> 2 & 1) }
func (n notification) recRate() uint32 { return uint32(n >> 32) }
