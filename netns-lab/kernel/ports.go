// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
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
	classes, dogs := p.exp.DataClasses(), p.watchdogs(a.Name)
	o := npecn.Options{
		Ports:         make([]npecn.Port, len(p.ports)),
		Nodes:         make([]npecn.Node, len(p.nodes)),
		SampleNs:      uint64(p.exp.Sample),
		LagNs:         p.lagNs(),
		EarlyNs:       p.earlyNs(),
		Flows:         uint32(len(p.exp.Flows)),
		DilationShift: uint32(p.exp.Dilation.Shift),
		NoiseDelaysNs: p.exp.Noise.DelaysNs(),
		Partitions:    len(p.exp.Partitions) > 0,
	}
	if a.Own != nil {
		o.Object = a.Own.Port
	}
	for i := p.hosts; i < len(p.nodes); i++ {
		o.Nodes[i].BufferBytes = p.bufferOf(i)
	}
	for id := 1; id < len(p.ports); id++ {
		o.Ports[id] = p.qdiscPort(uint32(id), a, classes)
		o.Ports[id].Watchdog = dogs[p.nodes[p.ports[id].node].name]
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

// bufferOf is how large the buffer of a switch is.
func (p *plan) bufferOf(node int) uint64 {
	return uint64(cmp.Or(p.exp.Switch.OwnOf(p.nodes[node].name).Buffer, p.exp.Switch.Buffer))
}

// pfcOptions are the thresholds of a port of a node whose link has this rate.
func (p *plan) pfcOptions(node int, rateBps uint64) npecn.PFC {
	pfc, own := p.exp.Switch.PFC, p.exp.Switch.OwnOf(p.nodes[node].name)
	if d := p.exp.Switch.DynamicOf(own); d != nil {
		alpha := d.AlphaAt(rateBps, p.exp.Topology.Rate)
		return npecn.PFC{Alpha: float64(alpha), XONOffsetBytes: uint64(d.XONOffset)}
	}
	return npecn.PFC{
		XOFFBytes: uint64(cmp.Or(own.XOFF, pfc.XOFF)), XONOffsetBytes: uint64(pfc.XOFF - pfc.XON),
	}
}

// qdiscPort configures a port for a scheme.
func (p *plan) qdiscPort(id uint32, a algorithm, classes []uint8) npecn.Port {
	port := p.ports[id]
	n := p.nodes[port.node]
	q := npecn.Port{
		Name: port.name, RateBps: port.rateBps, DelayNs: port.delayNs, PFCDelayNs: port.delayNs,
		PFC: p.pfcOptions(port.node, port.rateBps), Peer: port.back, Node: uint32(port.node),
		RateChanges: len(p.rateChanges(id, 0)),
	}
	slots := uint32(hostSlots + p.burstPackets(n.name)) // of each data class
	if n.isHost {
		q.DelayNs, q.PFCDelayNs = 0, 2*port.delayNs
		q.Seed = p.seed32() + id
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
	q.Link = p.linkOf(port)
	q.QuantumNs = p.quantumNs(&q, &p.nodes[port.peer])
	q.DecideNs = p.decideNs(&q)
	onWireNs := q.DelayNs
	if q.DelayNs > 0 { // else the packets wait where they arrive
		onWireNs += q.Link.JitterNs + q.Link.ReorderNs
	}
	if q.Noisy = p.nodes[port.peer].isHost && p.exp.Noise.Late(); q.Noisy {
		delays := p.exp.Noise.DelaysNs()
		onWireNs += slices.Max(delays[:])
	}
	q.WireSlots = wireSlots(port.mostRateBps(&q.Link), onWireNs)
	for _, class := range classes {
		q.Classes[class] = p.qdiscClass(id, a, class, slots)
	}
	q.Classes[ctrlClass] = npecn.Class{Slots: ctrlSlots}
	return q
}

// qdiscClass configures a class of data of a port with so many slots.
func (p *plan) qdiscClass(id uint32, a algorithm, class uint8, slots uint32) npecn.Class {
	lossless := p.exp.LosslessClass(a.Name, class)
	k := npecn.Class{Slots: slots, Lossless: lossless, Lossy: p.exp.PFCOn(a.Name) && !lossless}
	if lossless {
		k.Pauses = len(p.stormAt(id, class))
	}
	if !p.nodes[p.ports[id].node].isHost {
		k.Marked = true
		k.Alpha, k.Quantum = float64(p.exp.Switch.ClassOf(class).Alpha), p.exp.Quantum(class)
	}
	return k
}

// linkOf returns what the link of a port does to packets.
func (p *plan) linkOf(port port) npecn.Link {
	l := npecn.Link{
		JitterNs: port.link.JitterNs, Reorder: port.link.Reorder, ReorderNs: port.link.ReorderNs,
		Trace: p.exp.LinkTrace(port.name),
	}
	l.LoseBegin, l.LoseOn = port.link.Losses()
	return l
}

// mostRateBps is the most that a port sends: its rate, or what its trace does in its best ms.
func (p *port) mostRateBps(l *npecn.Link) uint64 {
	const bytes, perSecond = 1500, 1000
	var most, count uint64
	for i, ms := range l.Trace {
		if count++; i == 0 || ms != l.Trace[i-1] {
			count = 1
		}
		most = max(most, count)
	}
	if most > 0 {
		return most * bytes * 8 * perSecond
	}
	return p.rateBps
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
	setMarker(q, p.exp, a, sw.OwnOf(p.nodes[p.ports[id].node].name))
	q.ByPackets = sw.Schedule == experiment.ScheduleWRR
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
	buffer, pfc := p.bufferOf(node), p.pfcOptions(node, 0)
	if !p.exp.PFCOn(scheme) || p.exp.Switch.PFC.Dynamic != nil || p.exp.Switch.Lossy() {
		return buffer
	}
	var most uint64
	for _, id := range p.nodes[node].ports {
		port := p.ports[id]
		loopNs := 4*port.delayNs + 2*mostLagNs // a host is twice as far away
		most += pfc.XOFFBytes + 2*uint64(p.exp.Frame) + port.rateBps*loopNs/8e9
	}
	return min(most, buffer)
}

// rateChanges are those of a port, where t = 0 is t0Ns: its rates, and 0 while its link is down.
func (p *plan) rateChanges(id uint32, t0Ns uint64) []npecn.RateChange {
	if len(p.exp.LinkEvents) == 0 {
		return nil
	}
	net, port := p.exp.Topology.Network(), p.ports[id]
	var events []experiment.LinkEvent
	for _, e := range p.exp.LinkEvents {
		if e.Port == port.name && e.Trace == "" ||
			e.State != "" && slices.Contains(net.LinksNamed(e.Port), int(id-1)/2) {
			events = append(events, e)
		}
	}
	slices.SortStableFunc(events, func(a, b experiment.LinkEvent) int {
		return cmp.Compare(a.At, b.At)
	})
	var changes []npecn.RateChange
	rate, down := port.rateBps, false
	for _, e := range events {
		if e.State != "" {
			down = e.State == experiment.LinkDown
		} else {
			rate = uint64(e.Rate)
		}
		change := npecn.RateChange{AtNs: uint64(int64(t0Ns) + int64(e.At))}
		if !down {
			change.RateBps = rate
		}
		changes = append(changes, change)
	}
	return changes
}

// wireSlots is how many of the smallest frames fit the wire, and what a late timer leaves there.
func wireSlots(rateBps, delayNs uint64) uint32 {
	return uint32(rateBps*(delayNs+2*mostLagNs)/8/minFrame/1e9) + 64
}
