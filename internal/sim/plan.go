// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// Bytes of frames before their payload, and of frames without one.
const (
	ethHeader   = 14
	tcpIPHeader = 20 + 20 + 12 // IPv4, TCP, timestamps
	udpIPHeader = 20 + 8
	ackBytes    = ethHeader + tcpIPHeader
	cnpBytes    = ethHeader + 60
	cnmBytes    = 102
)

// controlClass is the class of ACKs, CNPs and CNMs, which is never paused.
const controlClass = 6

// plan is what is fixed before a run: the experiment, one of its schemes, and the network with
// numbers for nodes and ports, as in package network.
type plan struct {
	exp       *experiment.Experiment
	scheme    scheme.Scheme
	setup     scheme.Setup
	network   *network.Network
	routes    *network.Routes
	nodeNames []string
	tiers     []string // of each node
	portNames []string
	devices   []string       // name of each port's peer, with the link's suffix
	number    map[string]int // of each node
	access    []int32        // port of each host
	addrs     []string       // of hosts
	ends      [][2]int32     // node and peer of each port
}

func newPlan(e *experiment.Experiment, name string) (*plan, error) {
	s, err := e.Scheme(name)
	if err != nil {
		return nil, err
	}
	if s.Object == nil {
		return nil, fmt.Errorf("scheme %s is Linux's own and not in the simulator: run it with "+
			"`--engine kernel`, or simulate one of the others", name)
	}
	net := e.Topology.Network()
	routes, err := net.Routes()
	if err != nil {
		return nil, err
	}
	p := &plan{
		exp: e, scheme: s, setup: e.Setup(s),
		network: net, routes: routes, nodeNames: net.Nodes(), portNames: net.Ports(),
		number: net.Numbers(), access: make([]int32, len(net.Hosts)),
	}
	for host := range p.access {
		p.addrs = append(p.addrs, network.HostAddr(host).String())
	}
	p.tiers = make([]string, len(p.nodeNames))
	for _, tier := range net.Tiers() {
		for _, name := range tier.Nodes {
			p.tiers[p.number[name]] = tier.Name
		}
	}
	for _, l := range net.Links {
		a, b := int32(p.number[l.A]), int32(p.number[l.B])
		p.addPort(a, b, l)
		p.addPort(b, a, l)
	}
	return p, nil
}

func (p *plan) addPort(node, peer int32, l network.Link) {
	if int(node) < len(p.access) {
		p.access[node] = int32(len(p.ends))
	}
	p.ends = append(p.ends, [2]int32{node, peer})
	p.devices = append(p.devices, p.nodeNames[peer]+l.Suffix)
}

func (p *plan) isHost(node int32) bool { return int(node) < len(p.access) }

// bdpBytes is the most that a flow has in flight when it fills its path and no queue: of the path
// where this is the most, as in HPCC's simulator.
func (p *plan) bdpBytes(frameBytes uint64) uint64 {
	var most uint64
	p.exp.EachPath(func(from, to string) {
		a, b := p.number[from], p.number[to]
		rate := uint64(math.MaxUint64)
		for _, l := range p.routes.Path(a, b) {
			rate = min(rate, l.RateBps)
		}
		most = max(most, bytesIn(p.roundTripNs(a, b, frameBytes), rate))
	})
	return most
}

// bytesIn is how many bytes a rate brings in so many ns.
func bytesIn(ns, rateBps uint64) uint64 { return ns * (rateBps / 1000) / 8_000_000 }

// pathRTTNs is the round trip of the longest path: propagation both ways, and the time of a frame
// on each link.
func (p *plan) pathRTTNs(frameBytes uint64) uint64 {
	var longestNs uint64
	p.exp.EachPath(func(from, to string) {
		a, b := p.number[from], p.number[to]
		longestNs = max(longestNs, p.roundTripNs(a, b, frameBytes))
	})
	return longestNs
}

// roundTripNs is the round trip between two hosts, as in pathRTTNs.
func (p *plan) roundTripNs(a, b int, frameBytes uint64) uint64 {
	ns := p.routes.DelayNs(a, b) + p.routes.DelayNs(b, a)
	for _, l := range p.routes.Path(a, b) {
		ns += frameBytes * 8_000_000_000 / l.RateBps
	}
	return ns
}

// seed32 starts random choices of switches; not 0.
func (p *plan) seed32() uint32 { return max(rand.New(rand.NewPCG(p.exp.Seed, 1)).Uint32()>>8, 1) }

// rng is the run's source of random choices.
func (p *plan) rng() *rand.Rand { return rand.New(rand.NewPCG(p.exp.Seed, 0)) }

// payload is what a full frame of a controlled flow carries.
func (p *plan) payload() uint64 { return uint64(p.exp.Frame) - ackBytes }

// idealNs returns the completion time of a flow that is alone and sends at line rate, up to its
// last ACK. Switches store and forward.
func (p *plan) idealNs(from, to string, size uint64) int64 {
	a, b := p.number[from], p.number[to]
	frame, payload := uint64(p.exp.Frame), p.payload()
	full := (size - 1) / payload // frames before the last
	last := size - full*payload + ackBytes
	// at is when the last frame has left a link, free when the link was free for it. As at a port,
	// what a link needs is rounded down: no flow is faster than alone.
	var at, slowest, first, ack uint64
	for _, l := range p.routes.Path(a, b) {
		ns := func(bytes uint64) uint64 { return wireNs(bytes, l.RateBps) }
		slowest = max(slowest, ns(frame*(max(full, 1)-1)))
		first += ns(frame)
		free := uint64(0)
		if full > 0 {
			free = first + slowest
		}
		at = max(at, free) + ns(last)
		ack += ns(uint64(p.exp.Transport.AckSize))
	}
	return int64(at + ack + p.routes.DelayNs(a, b) + p.routes.DelayNs(b, a))
}

// wireNs returns how many ns so many bytes take on a link, rounded down.
func wireNs(bytes, rateBps uint64) uint64 {
	high, low := bits.Mul64(bytes, 8_000_000_000)
	ns, _ := bits.Div64(high, low, rateBps)
	return ns
}

// addresses hands out the ports of hosts, one after the other.
type addresses struct {
	plan  *plan
	taken map[addressRange]uint16
}

type addressRange struct {
	host        int
	first, last uint16
}

// next returns the next port of a host in a range.
func (a *addresses) next(host string, first, last uint16) (uint16, error) {
	at := addressRange{a.plan.number[host], first, last}
	if a.taken[at] > last-first {
		return 0, fmt.Errorf("host %s has ports for %d flows only: spread them over more hosts",
			host, a.taken[at])
	}
	port := first + a.taken[at]
	a.taken[at]++
	return port, nil
}

// key identifies a flow in its packets.
type key struct {
	src, dst         int32 // hosts
	srcPort, dstPort uint16
	protocol         uint8
}

// The protocols of IP, and the port of CNPs.
const (
	protoTCP = 6
	protoUDP = 17
	rocePort = 4791
)

func (k key) reversed() key { return key{k.dst, k.src, k.dstPort, k.srcPort, k.protocol} }

// cnp returns the key of the flow's CNPs.
func (k key) cnp() key {
	return key{k.dst, k.src, 0xc000 | (k.srcPort^k.dstPort)&0x3fff, rocePort, protoUDP}
}

// path returns the ports from a host to another. Where several are as short, a switch chooses by a
// hash of the key.
func (p *plan) path(k key) ([]int32, error) {
	id := p.hostPort(p.routes, k)
	if id == none {
		return nil, p.noPath(k)
	}
	path := []int32{id}
	for at := p.ends[id][1]; at != k.dst; at = p.ends[id][1] {
		choices := p.routes.Ports(int(at), int(k.dst))
		if len(choices) == 0 {
			return nil, p.noPath(k)
		}
		id = int32(choices[0])
		if n := uint64(len(choices)); n > 1 {
			id = int32(choices[uint64(k.hash(uint32(at)))*n>>32])
		}
		path = append(path, id)
	}
	return path, nil
}

func (p *plan) noPath(k key) error {
	return fmt.Errorf("no path leads from %s to %s", p.nodeNames[k.src], p.nodeNames[k.dst])
}

// hostPort returns the port by which a flow's packets leave their host. Where several lead there as
// fast, the host chooses as a switch does. It is none if no path leads there.
func (p *plan) hostPort(routes *network.Routes, k key) int32 {
	if !routes.HasSeveral(int(k.src)) {
		return p.access[k.src]
	}
	choices := routes.HostPorts(int(k.src), int(k.dst))
	n := uint64(len(choices))
	if n == 0 {
		return none
	}
	return int32(choices[uint64(k.hash(uint32(k.src)))*n>>32])
}

// hash is murmur3's, over the fields in the order of the packet. The seed is the switch's: switches
// in a row must choose differently.
func (k key) hash(seed uint32) uint32 {
	h := mix(mix(mix(seed, hostWord(k.src)), hostWord(k.dst)), uint32(k.protocol))
	h = mix(h, uint32(swap(k.srcPort))|uint32(swap(k.dstPort))<<16)
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// hostWord is a host's address as a little-endian machine reads it.
func hostWord(host int32) uint32 {
	a := network.HostAddr(int(host)).As4()
	return uint32(a[0]) | uint32(a[1])<<8 | uint32(a[2])<<16 | uint32(a[3])<<24
}

func swap(port uint16) uint16 { return port<<8 | port>>8 }

func mix(h, v uint32) uint32 {
	v *= 0xcc9e2d51
	v = v<<15 | v>>17
	v *= 0x1b873593
	h ^= v
	h = h<<13 | h>>19
	return h*5 + 0xe6546b64
}
