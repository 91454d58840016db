// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

const (
	minFrame  = 54 // a bare ACK
	ctrlSlots = 4096
	hostSlots = 4096
	// mostLagNs is how long ports wait before they decide, if their link is long enough.
	mostLagNs = 2048
	// mostQuantumNs is the coarsest rounding of ports' timers.
	mostQuantumNs = 1024
	// A frame of 1000 bytes takes 200 ns at 40 Gbit/s, so it leaves a host with the decision to
	// send it. That saves half of the guest's halts, and an eighth of its instructions.
	mostEarlyNs = 256
)

// qdiscOptions configures the ports for a scheme.
//
// A host port only serialises: its propagation is added to that of the port towards it (2 * delay),
// so that TCP sees its own host's queue and nothing else. This shifts the host's clock by one
// delay; every round trip, one-way sum and PFC loop is as it would be.
func (p *plan) qdiscOptions(a algorithm) npecn.Options {
	sw, classes := p.exp.Switch, p.exp.DataClasses()
	o := npecn.Options{
		Ports:         make([]npecn.Port, len(p.ports)),
		Nodes:         make([]npecn.Node, len(p.nodes)),
		SampleNs:      uint64(p.exp.Sample),
		LagNs:         p.lagNs(),
		EarlyNs:       p.earlyNs(),
		Flows:         uint32(len(p.exp.Flows)),
		DilationShift: uint32(p.exp.Dilation.Shift),
	}
	if a.Own != nil {
		o.Object = a.Own.Port
	}
	for i := p.hosts; i < len(p.nodes); i++ {
		o.Nodes[i].BufferBytes = uint64(sw.Buffer)
	}
	for id := 1; id < len(p.ports); id++ {
		o.Ports[id] = p.qdiscPort(uint32(id), a, classes)
	}
	return o
}

// exact reports whether all is done in a ns of the papers' time that is due: where CPUs take no
// time, or where it lasts 66 us. Then ports need not wait for what comes late, and round no time.
// Else XOFF may count what one port decides before what another has yet to: they are up to
// decide_ns apart.
func (p *plan) exact() bool {
	return p.virtualTime || p.exp.Dilation.Shift == experiment.MaxDilation
}

// lagNs is how long ports wait before they decide.
func (p *plan) lagNs() uint64 {
	if p.exact() {
		return 1
	}
	return mostLagNs
}

// earlyNs is how early hosts hand packets over: less than the shortest link of a switch makes its
// port wait before it decides.
func (p *plan) earlyNs() uint64 {
	if p.exact() {
		return 0
	}
	early := uint64(mostEarlyNs)
	for _, port := range p.ports[1:] {
		early = min(early, port.delayNs/2)
	}
	return early
}

// pfcOptions are the thresholds of a port whose link has this rate.
func (p *plan) pfcOptions(rateBps uint64) npecn.PFC {
	pfc := p.exp.Switch.PFC
	if d := pfc.Dynamic; d != nil {
		alpha := d.AlphaAt(rateBps, p.exp.Topology.Rate)
		return npecn.PFC{Alpha: float64(alpha), XONOffsetBytes: uint64(d.XONOffset)}
	}
	return npecn.PFC{XOFFBytes: uint64(pfc.XOFF), XONOffsetBytes: uint64(pfc.XOFF - pfc.XON)}
}

// qdiscPort configures a port for a scheme.
func (p *plan) qdiscPort(id uint32, a algorithm, classes []uint8) npecn.Port {
	port := p.ports[id]
	n := p.nodes[port.node]
	q := npecn.Port{
		Name: port.name, RateBps: port.rateBps, DelayNs: port.delayNs, PFCDelayNs: port.delayNs,
		PFC: p.pfcOptions(port.rateBps), Peer: port.back, Node: uint32(port.node),
		RateChanges: len(p.rateChanges(id, 0)),
	}
	slots := uint32(hostSlots + p.burstPackets(n.name)) // of each data class
	if n.isHost {
		q.DelayNs, q.PFCDelayNs = 0, 2*port.delayNs
	} else {
		if p.fromHost(id) {
			q.DelayNs, q.PFCDelayNs = 2*port.delayNs, 2*port.delayNs
		}
		slots = uint32(p.mostBuffered(port.node, a.Name)/uint64(p.exp.Frame)) + hostSlots
		if p.exp.Transport.Acks == experiment.ReplyData {
			slots *= 2 // an ACK for each frame
		}
		p.setSwitchPort(&q, id, a)
	}
	q.QuantumNs = p.quantumNs(&q, &p.nodes[port.peer])
	q.DecideNs = p.decideNs(&q)
	q.WireSlots = wireSlots(q.RateBps, q.DelayNs)
	for _, class := range classes {
		q.Classes[class] = npecn.Class{
			Slots: slots, Lossless: p.exp.PFCOn(a.Name), Marked: !n.isHost,
		}
	}
	q.Classes[ctrlClass] = npecn.Class{Slots: ctrlSlots}
	return q
}

// delayShare is the part of a link's delay by which timers may be late.
const delayShare = 8

// decideNs is what a port's decisions are rounded up to. That they are late changes nothing, as
// what they decide takes effect a link's delay later.
func (p *plan) decideNs(q *npecn.Port) uint64 {
	if p.exact() {
		return 1
	}
	return powerOfTwo(min(mostQuantumNs, q.DelayNs/delayShare))
}

// powerOfTwo rounds down to a power of two, to 1 at least.
func powerOfTwo(n uint64) uint64 { return 1 << (bits.Len64(max(n, 1)) - 1) }

// quantumNs is what a port's deliveries are rounded up to. A late one to a switch changes nothing,
// as long as it is within the lag of the switch's ports, which follows their delays; it only must
// not count as too late (result.LateShare). One to a host is a longer round trip, so these are
// rounded by 1.6% of it at most, and half of that on average.
func (p *plan) quantumNs(q *npecn.Port, to *node) uint64 {
	if p.exact() {
		return 1
	}
	const switchShare, hostShare = 24, 64
	share, most := uint64(switchShare), min(mostQuantumNs, q.DelayNs/delayShare)
	if to.isHost {
		share = hostShare
	} else {
		for _, id := range to.ports {
			most = min(most, p.ports[id].delayNs/delayShare)
		}
	}
	if p.rttNs > 0 { // else there is no traffic
		most = min(most, p.rttNs/share)
	}
	return powerOfTwo(most)
}

// setSwitchPort configures what only switches do: marking, detection, credits.
func (p *plan) setSwitchPort(q *npecn.Port, id uint32, a algorithm) {
	sw := p.exp.Switch
	q.Seed = p.seed32() + id
	setMarker(q, p.exp, a)
	setDetection(q, p.exp, a)
	if sw.FlowControl == experiment.FlowCBFC {
		q.CBFC = npecn.CBFC{
			BufferBytes: uint64(sw.CBFC.Buffer), PeriodNs: uint64(sw.CBFC.Period),
		}
	}
}

// mostBuffered is how many bytes a switch can hold: what its ports take in until PFC has stopped
// their peers, or its whole buffer.
func (p *plan) mostBuffered(node int, scheme string) uint64 {
	buffer, pfc := uint64(p.exp.Switch.Buffer), p.exp.Switch.PFC
	if !p.exp.PFCOn(scheme) || pfc.Dynamic != nil {
		return buffer
	}
	var most uint64
	for _, id := range p.nodes[node].ports {
		port := p.ports[id]
		loopNs := 4*port.delayNs + 2*mostLagNs // a host is twice as far away
		most += uint64(pfc.XOFF) + 2*uint64(p.exp.Frame) + port.rateBps*loopNs/8e9
	}
	return min(most, buffer)
}

// rateChanges are those of a port, where t = 0 is t0Ns.
func (p *plan) rateChanges(id uint32, t0Ns uint64) []npecn.RateChange {
	var changes []npecn.RateChange
	for _, e := range p.exp.LinkEvents {
		if e.Port == p.ports[id].name {
			changes = append(changes, npecn.RateChange{
				AtNs: uint64(int64(t0Ns) + int64(e.At)), RateBps: uint64(e.Rate),
			})
		}
	}
	slices.SortStableFunc(changes, func(a, b npecn.RateChange) int {
		return cmp.Compare(int64(a.AtNs), int64(b.AtNs))
	})
	return changes
}

// wireSlots is how many of the smallest frames fit the wire, and what a late timer leaves there.
func wireSlots(rateBps, delayNs uint64) uint32 {
	return uint32(rateBps*(delayNs+2*mostLagNs)/8/minFrame/1e9) + 64
}
