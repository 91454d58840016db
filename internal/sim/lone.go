// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	"github.com/pcn-linux/pcn/config/scheme"
)

// LoneFlow runs a scheme's control as runs do, compiled from the same C files, on one flow and
// without a network. A test hands it events, and compares what it decides with an oracle. Times are
// in ns and begin where the caller likes. A control that traps makes its methods panic.
type LoneFlow struct {
	scheme  scheme.Scheme
	runtime runtime
	control *control
	flow    flow
}

// loneCache has the machine code of controls for all lone flows.
var loneCache = newCache()

// LoneACK is what an ACK tells a sender.
type LoneACK struct {
	Packets uint32 // that it newly acknowledges, and that were sent before
	Marked  uint32 // of which with CE
	RTTNs   int64  // 0: it was not measured
	Limited bool   // the window was full before the ACK
}

// NewLoneFlow starts a flow of a scheme at a time. It starts at the line rate, as flows of
// experiments do, with ECN. Parameters are by their keys, in bit/s, ns, bytes or without unit;
// those that are not given have their defaults in the network. The packets are full frames.
func NewLoneFlow(
	s scheme.Scheme, n scheme.Network, parameters map[string]float64, nowNs int64,
) (_ *LoneFlow, err error) {
	given := map[string]scheme.Value{}
	for key, number := range parameters {
		p := s.Object.Param(key)
		if p == nil {
			return nil, fmt.Errorf("scheme %s has no parameter %s: want one of %v",
				s.Name, key, s.Object.Keys())
		}
		given[key] = scheme.Value{Kind: p.Kind, Number: number}
	}
	variables, err := newSender(s, scheme.Settings{Given: given}, n)
	if err != nil {
		return nil, err
	}
	code, err := controlCode(s)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	l := &LoneFlow{scheme: s, runtime: newRuntime(ctx, loneCache)}
	l.flow = flow{lineRate: n.LineRateBps, mss: uint32(n.FrameBytes - ethHeader - tcpIPHeader)}
	defer func() {
		if err != nil {
			_ = l.Close()
		}
	}()
	senders := map[uint64]sender{n.LineRateBps: variables}
	if l.control, err = newControl(ctx, l.runtime, s, code, senders, 1); err != nil {
		return nil, err
	}
	if l.control.congControl == nil {
		return nil, fmt.Errorf("control %s has no cong_control: TCP, which a lone flow lacks, "+
			"would set its window", s.Control)
	}
	defer catch(&err)
	return l, l.control.establish(nowNs, &l.flow, l.flow.mss, true, n.LineRateBps)
}

// Close frees the flow's memory.
func (l *LoneFlow) Close() error { return l.runtime.Close(context.Background()) }

// ACK tells the control of an ACK.
func (l *LoneFlow) ACK(nowNs int64, a LoneACK) {
	f := &l.flow
	before := uint32(0)
	if a.Limited {
		before = l.control.window(f)
	}
	f.una += a.Packets
	f.nxt = f.una
	f.segments += a.Packets
	f.payloadBytes += uint64(a.Packets) * uint64(f.mss)
	f.delivered += a.Packets
	f.deliveredCE += a.Marked
	if a.RTTNs != 0 {
		f.measure(a.RTTNs)
	}
	l.control.ack(nowNs, f, a.Packets, before, a.RTTNs)
}

// Loss tells the control that a recovery from a loss begins, and is over at once.
func (l *LoneFlow) Loss(nowNs int64) {
	l.control.changeState(nowNs, &l.flow, stateRecovery)
	l.control.changeState(nowNs, &l.flow, stateOpen)
}

// CNM hands the control the quantised feedback of a switch.
func (l *LoneFlow) CNM(nowNs int64, feedback uint32) { l.control.hearCNM(nowNs, &l.flow, feedback) }

// CNP hands the control a CNP that says CE, UE or neither, with PCN's RecRate.
func (l *LoneFlow) CNP(nowNs int64, recRate uint32, ce, ue bool) {
	n := notification(recRate) << 32
	if ce {
		n |= 1 << 1
	}
	if ue {
		n |= 1 << 2
	}
	l.control.hearCNP(nowNs, &l.flow, n)
}

// RateBps returns the rate at which the flow is paced.
func (l *LoneFlow) RateBps() uint64 { return l.control.rateBps(&l.flow) }

// Window returns how many packets may be in flight.
func (l *LoneFlow) Window() uint32 { return l.control.window(&l.flow) }

// Stat returns a statistic of the flow by its key. It panics if the scheme has none.
func (l *LoneFlow) Stat(key string) float64 {
	for _, s := range l.scheme.Object.Stats {
		if s.Key == key {
			return s.Read(l.control.bytes(l.flow.entry, uint32(len(l.control.entries.zeros))))
		}
	}
	panic(fmt.Sprintf("scheme %s has no statistic %s", l.scheme.Name, key))
}
