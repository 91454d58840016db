// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// addFlows makes the flows of the experiment, and those of bursts.
func (t *transport) addFlows() error {
	e, p := t.plan.exp, t.plan
	a := &addresses{plan: p, taken: map[addressRange]uint16{}}
	t.streams = len(e.Flows)
	n := t.streams
	for _, b := range e.Bursts {
		n += len(b.From) * b.Flows * len(b.Starts(e.Duration))
	}
	t.flows = make([]flow, 0, n)
	ecn := uint8(ecnNone)
	if t.plan.setup.NeedsECN || t.plan.setup.AccECN {
		ecn = ecnECT
	}
	for i := range e.Flows {
		x := &e.Flows[i]
		f := flow{
			spec: x, kind: packetData, ecn: ecn, start: t.t0 + int64(x.Start),
			size: uint64(x.Size), lasts: int64(x.Lasts),
			limitRate: uint64(x.LimitRate), lineRate: uint64(e.HostRate(x.From)),
			flightBytes: t.flightOf(uint64(e.HostRate(x.From))),
			intMulti:    t.telemetryScale(uint64(e.HostRate(x.From))),
		}
		header := ackBytes + uint64(p.overhead())
		if err := t.addFlow(f, uint64(x.Message), a, p.payload(), header); err != nil {
			return fmt.Errorf("flow %s: %w", f.spec.Name, err)
		}
	}
	for _, b := range e.Bursts {
		if err := t.addBurst(b, a); err != nil {
			return err
		}
	}
	t.addGates()
	return nil
}

func (t *transport) addBurst(b experiment.Burst, a *addresses) error {
	starts := b.Starts(t.plan.exp.Duration)
	for _, from := range b.From {
		for k := range b.Flows * len(starts) {
			f := flow{
				spec: &experiment.Flow{
					Name:  fmt.Sprintf("%s-%s-%d", b.Name, from, k),
					Group: b.Name, From: from, To: b.To, Priority: b.Priority,
				},
				kind: packetUDP, size: uint64(b.Size), start: t.t0 + int64(starts[k/b.Flows]),
			}
			if b.Rate != 0 {
				f.ecn = ecnECT
				f.gap = uint64(t.plan.exp.Frame) * 8_000_000_000 / uint64(b.Rate) << gapShift
			}
			payload := uint64(t.plan.exp.Frame) - ethHeader - udpIPHeader
			if err := t.addFlow(f, 0, a, payload, ethHeader+udpIPHeader); err != nil {
				return fmt.Errorf("flow %s: %w", f.spec.Name, err)
			}
		}
	}
	return nil
}

// Ranges of ports: of senders and receivers of controlled flows, and of bursts' senders; and the
// port that bursts go to.
const (
	firstSrcPort, lastSrcPort     = 10000, 19999
	firstDstPort, lastDstPort     = 20000, 65535
	firstBurstPort, lastBurstPort = 30000, 65535
	sinkPort                      = 9
)

// addFlow adds a flow whose full frames carry so many bytes behind a header, in messages of so many
// bytes; 0: it has one.
func (t *transport) addFlow(
	f flow, messageBytes uint64, a *addresses, payload, header uint64,
) error {
	p := t.plan
	f.id = int32(len(t.flows))
	f.class = t.ranks.of[experiment.DataClass(f.spec.Priority)]
	f.frame, f.mss = uint32(payload+header), uint32(payload)
	if f.size != 0 {
		message, n := f.size, uint32(1)
		if messageBytes != 0 {
			message, n = messageBytes, uint32(f.size/messageBytes)
		}
		frames := uint32((message + payload - 1) / payload)
		f.lastFrame = uint32(message - uint64(frames-1)*payload + header)
		f.packets = n * frames
		if n > 1 {
			f.messagePackets = frames
		}
		f.allowed = f.packets
	}
	f.key = key{
		src: int32(p.number[f.spec.From]), dst: int32(p.number[f.spec.To]), protocol: protoTCP,
	}
	var err error
	if f.kind == packetUDP {
		f.key.protocol, f.key.dstPort = protoUDP, sinkPort
		f.key.srcPort, err = a.next(f.spec.From, firstBurstPort, lastBurstPort)
	} else {
		if f.key.srcPort, err = a.next(f.spec.From, firstSrcPort, lastSrcPort); err != nil {
			return err
		}
		f.key.dstPort, err = a.next(f.spec.To, firstDstPort, lastDstPort)
	}
	if err != nil {
		return err
	}
	path, err := p.path(f.key)
	if err != nil {
		return err
	}
	f.step, f.nic, f.hops = t.addPath(path), path[0], uint16(len(path))
	if f.kind == packetData {
		ackPath, err := p.path(f.key.reversed())
		if err != nil {
			return err
		}
		cnpPath, err := p.path(f.key.cnp())
		if err != nil {
			return err
		}
		f.ackStep, f.ackNIC = t.addPath(ackPath), ackPath[0]
		f.cnpStep, f.cnpNIC = t.addPath(cnpPath), cnpPath[0]
	}
	t.flows = append(t.flows, f)
	return nil
}

// reserveStates makes room for the states of flows in the modules of their hosts. More than a few
// thousand are seldom there at a time.
func (w *world) reserveStates() {
	const many = 1 << 12
	streams := uint64(min(w.transport.streams/len(w.worlds())+1, many))
	for _, x := range w.worlds() {
		if c := x.transport.control; c != nil {
			c.reserve(streams * uint64(len(c.socks.zeros)+len(c.entries.zeros)+2*align))
		}
		if n := x.transport.notifier; n != nil {
			n.reserve(streams * uint64(len(n.states.zeros)+align))
		}
	}
}

// addPath keeps the ports of a path, and returns where they begin.
func (t *transport) addPath(path []int32) uint32 {
	begin := uint32(len(t.steps))
	t.steps = append(t.steps, path...)
	return begin
}

// dataPath returns the ports of a flow's data.
func (t *transport) dataPath(f *flow) []int32 { return t.steps[f.step : f.step+uint32(f.hops)] }
