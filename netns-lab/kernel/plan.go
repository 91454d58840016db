// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/network"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// Classes of the lab: DSCP's class selectors.
const (
	DataDSCP    = 26 // class 3, lossless, as RoCE is usually set up: data of priority 0
	ControlDSCP = 48 // class 6, never paused: CNPs, pure ACKs
	dataClass   = DataDSCP >> 3
	ctrlClass   = ControlDSCP >> 3
)

// dataDSCP is that of data of a priority: 26, 18, 10 and 2.
func dataDSCP(priority int) int { return int(experiment.DataClass(priority))<<3 | DataDSCP&7 }

// dataClasses are those that data of the experiment has, by its priorities. Class 3 is always there.
func dataClasses(e *experiment.Experiment) []uint8 {
	used := [experiment.Priorities]bool{0: true}
	for _, f := range e.Flows {
		used[f.Priority] = true
	}
	for _, b := range e.Bursts {
		used[b.Priority] = true
	}
	var classes []uint8
	for priority, is := range used {
		if is {
			classes = append(classes, experiment.DataClass(priority))
		}
	}
	return classes
}

const (
	ethHeader   = 14
	tcpIPHeader = 20 + 20 + 12 // IPv4, TCP, timestamps
	udpIPHeader = 20 + 8
	minFrame    = 54 // a bare ACK
	ctrlSlots   = 4096
	hostSlots   = 4096
	quantumNs   = 1024
)

// plan is all that follows from the experiment: who is there, and how it is connected.
type plan struct {
	exp    *experiment.Experiment
	nodes  []node // hosts first
	ports  []port // index is the port id; 0 is none
	hosts  int
	number map[string]int // of a node
	paths  *network.Routes
}

type node struct {
	name   string
	tier   string
	isHost bool
	addr   netip.Addr // of a host
	ports  []uint32
}

// port is an egress port: its device is in its node's namespace and has its peer's name, and the link's suffix.
type port struct {
	name   string // node->peer
	node   int
	peer   int    // node
	suffix string // of one of several links to the peer
	back   uint32 // port id at the other end

	rateBps, delayNs uint64 // of the link
}

// newPlan lays the experiment out.
func newPlan(e *experiment.Experiment) (*plan, error) {
	net := e.Topology.Network()
	p := &plan{exp: e, ports: make([]port, 1), hosts: len(net.Hosts), number: map[string]int{}}
	tiers := make(map[string]string)
	for _, t := range net.Tiers() {
		for _, name := range t.Nodes {
			tiers[name] = t.Name
		}
	}
	for i, name := range net.Nodes() {
		p.number[name] = i
		n := node{name: name, tier: tiers[name], isHost: i < p.hosts}
		if n.isHost {
			n.addr = network.HostAddr(i)
		}
		p.nodes = append(p.nodes, n)
	}
	for _, l := range net.Links {
		a, b := p.number[l.A], p.number[l.B]
		id := uint32(len(p.ports))
		names := l.Ports()
		p.ports = append(p.ports,
			port{name: names[0], node: a, peer: b, suffix: l.Suffix, back: id + 1, rateBps: l.RateBps, delayNs: l.DelayNs},
			port{name: names[1], node: b, peer: a, suffix: l.Suffix, back: id, rateBps: l.RateBps, delayNs: l.DelayNs})
		p.nodes[a].ports = append(p.nodes[a].ports, id)
		p.nodes[b].ports = append(p.nodes[b].ports, id+1)
	}
	if len(p.ports) > 1<<15 {
		return nil, fmt.Errorf("%d ports are more than a packet's mark has room to name", len(p.ports))
	}
	var err error
	if p.paths, err = net.Routes(); err != nil {
		return nil, err
	}
	return p, errors.Join(p.checkPaths(), p.checkDilation())
}

// tcpTimeoutInitNs is TCP's first retransmission timeout, while it knows no round trip.
const tcpTimeoutInitNs = 1_000_000_000

// checkDilation fails if round trips last so long on the machine's clock that TCP gives them up while it connects.
func (p *plan) checkDilation() error {
	const share = 0.9 // the rest is for what propagation delays leave out
	most, limitNs := p.exp.Dilation, uint64(share*tcpTimeoutInitNs)
	for most > 0 && p.baseRTTNs()<<most > limitNs {
		most--
	}
	if most == p.exp.Dilation {
		return nil
	}
	return fmt.Errorf("with dilation %d a round trip of %s lasts longer than the second in which TCP waits for an answer when it connects: write `dilation: %d` or less",
		p.exp.Dilation, experiment.Duration(p.baseRTTNs()), most)
}

// device is the name of a port's network device.
func (p *plan) device(id uint32) string { return p.nodes[p.ports[id].peer].name + p.ports[id].suffix }

// fromHost says whether a switch port's peer is a host.
func (p *plan) fromHost(id uint32) bool { return p.nodes[p.ports[id].peer].isHost }

func (p *plan) host(name string) int {
	if i, ok := p.number[name]; ok && i < p.hosts {
		return i
	}
	return -1
}

// routes gives, for every switch, the ports on shortest paths to every host: routes[switch node][host].
func (p *plan) routes() map[int][][]uint32 {
	out := map[int][][]uint32{}
	for n := p.hosts; n < len(p.nodes); n++ {
		out[n] = make([][]uint32, p.hosts)
		for h := range p.hosts {
			for _, port := range p.paths.Ports(n, h) {
				out[n][h] = append(out[n][h], uint32(port+1)) // port ids start at 1
			}
		}
	}
	return out
}

// hashSeed is that of a switch's flow hash: switches in a row must not pick alike.
func hashSeed(node int) uint32 { return uint32(node) }

// baseRTTNs is the round trip of the longest path that a flow takes, in propagation delays alone.
func (p *plan) baseRTTNs() uint64 {
	var longestNs uint64
	see := func(from, to string) {
		longestNs = max(longestNs, p.paths.DelayNs(p.host(from), p.host(to)))
	}
	for _, f := range p.exp.Flows {
		see(f.From, f.To)
	}
	for _, b := range p.exp.Bursts {
		for _, from := range b.From {
			see(from, b.To)
		}
	}
	return 2 * longestNs
}

// flows is how many flows there are, bursts' too.
func (p *plan) flows() uint32 {
	n := len(p.exp.Flows)
	for _, b := range p.exp.Bursts {
		n += len(b.From) * b.Flows * len(b.Starts(p.exp.Duration))
	}
	return uint32(n)
}

// burstPackets is how many frames a host sends in bursts.
func (p *plan) burstPackets(host string) int {
	var n int
	for _, b := range p.exp.Bursts {
		for _, from := range b.From {
			if from == host {
				n += b.Flows * p.burstFrames(b) * len(b.Starts(p.exp.Duration))
			}
		}
	}
	return n
}

// burstFrames is how many frames carry a flow of the burst; the last may be short.
func (p *plan) burstFrames(b experiment.Burst) int {
	payload := uint64(p.exp.Frame) - ethHeader - udpIPHeader
	return int((uint64(b.Size) + payload - 1) / payload)
}

// gapNs is between the packets of a burst's flow that has a rate.
func (p *plan) gapNs(b experiment.Burst) uint64 {
	if b.Rate == 0 {
		return 0
	}
	return uint64(p.exp.Frame) * 8e9 / uint64(b.Rate)
}

// qdiscOptions configures the ports for a scheme.
//
// A host port only serialises: its propagation is added to that of the port towards it (2 * delay), so that TCP
// sees its own host's queue and nothing else. This shifts the host's clock by one delay; every round trip,
// one-way sum and PFC loop is as it would be.
func (p *plan) qdiscOptions(a algorithm) npecn.Options {
	sw, classes := p.exp.Switch, dataClasses(p.exp)
	o := npecn.Options{
		Ports:         make([]npecn.Port, len(p.ports)),
		Nodes:         make([]npecn.Node, len(p.nodes)),
		SampleNs:      uint64(p.exp.Sample),
		QuantumNs:     quantumNs,
		DilationShift: uint32(p.exp.Dilation),
	}
	if a.Own != nil {
		o.Object = a.Own.Port
	}
	for i := p.hosts; i < len(p.nodes); i++ {
		o.Nodes[i].BufferBytes = uint64(sw.Buffer)
	}
	pfc := npecn.PFC{XOFFBytes: uint64(sw.PFC.XOFF), XONOffsetBytes: uint64(sw.PFC.XOFF - sw.PFC.XON)}
	if d := sw.PFC.Dynamic; d != nil {
		pfc = npecn.PFC{Alpha: float64(d.Alpha), XONOffsetBytes: uint64(d.XONOffset)}
	}
	for id := 1; id < len(p.ports); id++ {
		port := p.ports[id]
		n := p.nodes[port.node]
		q := npecn.Port{
			Name: port.name, RateBps: port.rateBps, DelayNs: port.delayNs, PFCDelayNs: port.delayNs,
			PFC: pfc, Peer: port.back, Node: uint32(port.node), RateChanges: len(p.rateChanges(uint32(id), 0)),
		}
		data := uint32(hostSlots + p.burstPackets(n.name))
		switch {
		case n.isHost:
			q.DelayNs, q.PFCDelayNs = 0, 2*port.delayNs
		case p.fromHost(uint32(id)):
			q.DelayNs, q.PFCDelayNs = 2*port.delayNs, 2*port.delayNs
			fallthrough
		default:
			data = uint32(p.mostBuffered(port.node, a.Name)/uint64(p.exp.Frame)) + hostSlots
			q.Seed = p.seed32() + uint32(id)
			setMarker(&q, p.exp, a)
			setDetection(&q, p.exp, a)
			if sw.FlowControl == experiment.FlowCBFC {
				q.CBFC = npecn.CBFC{BufferBytes: uint64(sw.CBFC.Buffer), PeriodNs: uint64(sw.CBFC.Period)}
			}
		}
		q.WireSlots = wireSlots(q.RateBps, q.DelayNs)
		for _, class := range classes {
			q.Classes[class] = npecn.Class{Slots: data, Lossless: p.exp.PFCOn(a.Name), Marked: !n.isHost}
		}
		q.Classes[ctrlClass] = npecn.Class{Slots: ctrlSlots}
		o.Ports[id] = q
	}
	return o
}

// mostBuffered is how many bytes a switch can hold: what its ports take in until PFC has stopped their peers, or its whole buffer.
func (p *plan) mostBuffered(node int, scheme string) uint64 {
	buffer, pfc := uint64(p.exp.Switch.Buffer), p.exp.Switch.PFC
	if !p.exp.PFCOn(scheme) || pfc.Dynamic != nil {
		return buffer
	}
	var most uint64
	for _, id := range p.nodes[node].ports {
		port := p.ports[id]
		loopNs := 4*port.delayNs + 4*quantumNs // a host is twice as far away
		most += uint64(pfc.XOFF) + 2*uint64(p.exp.Frame) + port.rateBps*loopNs/8e9
	}
	return min(most, buffer)
}

// rateChanges are those of a port, where t = 0 is t0Ns.
func (p *plan) rateChanges(id uint32, t0Ns uint64) []npecn.RateChange {
	var changes []npecn.RateChange
	for _, e := range p.exp.LinkEvents {
		if e.Port == p.ports[id].name {
			changes = append(changes, npecn.RateChange{AtNs: uint64(int64(t0Ns) + int64(e.At)), RateBps: uint64(e.Rate)})
		}
	}
	slices.SortStableFunc(changes, func(a, b npecn.RateChange) int { return cmp.Compare(int64(a.AtNs), int64(b.AtNs)) })
	return changes
}

// wireSlots is how many of the smallest frames fit the wire, and what a late timer leaves there.
func wireSlots(rateBps, delayNs uint64) uint32 {
	return uint32(rateBps*(delayNs+4*quantumNs)/8/minFrame/1e9) + 64
}

// seed32 starts random choices in the kernel; not 0.
func (p *plan) seed32() uint32 { return max(rand.New(rand.NewPCG(p.exp.Seed, 1)).Uint32()>>8, 1) }

// rng is the run's source of random choices.
func (p *plan) rng() *rand.Rand { return rand.New(rand.NewPCG(p.exp.Seed, 0)) }
