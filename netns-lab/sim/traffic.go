// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// addFlows makes the flows of the experiment, and those of bursts.
func (w *world) addFlows() error {
	e, p := w.plan.exp, w.plan
	a := &addresses{plan: p, taken: map[addressRange]uint16{}}
	w.streams = len(e.Flows)
	n := w.streams
	for _, b := range e.Bursts {
		n += len(b.From) * b.Flows * len(b.Starts(e.Duration))
	}
	w.flows = make([]flow, 0, n)
	if c := w.control; c != nil {
		c.reserve(uint64(w.streams) * uint64(c.sockBytes+c.flowBytes+2*align))
	}
	if n := w.notifier; n != nil {
		n.reserve(uint64(w.streams) * uint64(n.bytes+align))
	}
	ecn := uint8(ecnNone)
	if w.setup.NeedsECN || w.setup.AccECN {
		ecn = ecnECT
	}
	for _, x := range e.Flows {
		f := flow{
			name: x.Name, group: x.Group, from: x.From, to: x.To, priority: x.Priority,
			kind: packetData, ecn: ecn, start: w.t0 + int64(x.Start), size: uint64(x.Size),
			lasts: int64(x.Lasts), initialRate: uint64(x.InitialRate),
			limitRate: uint64(x.LimitRate), lineRate: uint64(e.HostRate(x.From)),
			flightBytes: w.flightOf(uint64(e.HostRate(x.From))),
			intMulti:    w.telemetryScale(uint64(e.HostRate(x.From))),
		}
		header := ackBytes + uint64(w.overhead())
		if err := w.addFlow(f, uint64(x.Message), a, p.payload(), header); err != nil {
			return fmt.Errorf("flow %s: %w", f.name, err)
		}
	}
	for _, b := range e.Bursts {
		if err := w.addBurst(b, a); err != nil {
			return err
		}
	}
	w.addGates()
	return nil
}

func (w *world) addBurst(b experiment.Burst, a *addresses) error {
	starts := b.Starts(w.plan.exp.Duration)
	for _, from := range b.From {
		for k := range b.Flows * len(starts) {
			f := flow{
				name: fmt.Sprintf("%s-%s-%d", b.Name, from, k), group: b.Name, from: from, to: b.To,
				priority: b.Priority, kind: packetUDP, size: uint64(b.Size),
				start: w.t0 + int64(starts[k/b.Flows]),
			}
			if b.Rate != 0 {
				f.ecn = ecnECT
				f.gap = uint64(w.plan.exp.Frame) * 8_000_000_000 / uint64(b.Rate) << gapShift
			}
			payload := uint64(w.plan.exp.Frame) - ethHeader - udpIPHeader
			if err := w.addFlow(f, 0, a, payload, ethHeader+udpIPHeader); err != nil {
				return fmt.Errorf("flow %s: %w", f.name, err)
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
func (w *world) addFlow(f flow, messageBytes uint64, a *addresses, payload, header uint64) error {
	p := w.plan
	f.id = int32(len(w.flows))
	f.class = w.ranks.of[experiment.DataClass(f.priority)]
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
	f.key = key{src: int32(p.number[f.from]), dst: int32(p.number[f.to]), protocol: protoTCP}
	var err error
	if f.kind == packetUDP {
		f.key.protocol, f.key.dstPort = protoUDP, sinkPort
		f.key.srcPort, err = a.next(f.from, firstBurstPort, lastBurstPort)
	} else {
		if f.key.srcPort, err = a.next(f.from, firstSrcPort, lastSrcPort); err != nil {
			return err
		}
		f.key.dstPort, err = a.next(f.to, firstDstPort, lastDstPort)
	}
	if err != nil {
		return err
	}
	path, err := p.path(f.key)
	if err != nil {
		return err
	}
	f.step, f.nic, f.hops = w.addPath(path), path[0], uint32(len(path))
	if f.kind == packetData {
		ackPath, err := p.path(f.key.reversed())
		if err != nil {
			return err
		}
		cnpPath, err := p.path(f.key.cnp())
		if err != nil {
			return err
		}
		f.ackStep, f.ackNIC = w.addPath(ackPath), ackPath[0]
		f.cnpStep, f.cnpNIC = w.addPath(cnpPath), cnpPath[0]
		if w.notifier != nil {
			if f.notify, err = w.notifier.alloc(w.notifier.bytes); err != nil {
				return err
			}
		}
	}
	w.flows = append(w.flows, f)
	return nil
}

// addPath keeps the ports of a path, and returns where they begin.
func (w *world) addPath(path []int32) uint32 {
	begin := uint32(len(w.steps))
	w.steps = append(w.steps, path...)
	return begin
}

// dataPath returns the ports of a flow's data.
func (w *world) dataPath(f *flow) []int32 { return w.steps[f.step : f.step+f.hops] }
