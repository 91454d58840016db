// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// Bytes of a frame before its payload.
const (
	ethHeader   = 14
	tcpIPHeader = 20 + 20 + 12 // IPv4, TCP, timestamps
	udpIPHeader = 20 + 8
)

// plan is the network of an experiment with numbers for nodes and ports, and its traffic counted.
type plan struct {
	exp    *experiment.Experiment
	nodes  []node // hosts first
	ports  []port // index is the port id; 0 is none
	hosts  int
	number map[string]int // of a node
	// routers are the nodes of switches that are routers
	routers []int
	paths   *network.Routes
	rttNs   uint64 // the base round trip

	virtualTime bool // CPUs take no time
}

type node struct {
	name   string
	tier   string
	isHost bool
	addr   netip.Addr // of a host or router
	ports  []uint32
	// a host has TCP flows that come in, and that go out
	receives, sends bool
}

// port is an egress port: its device is in its node's namespace and has its peer's name, and the
// link's suffix.
type port struct {
	name   string // node->peer
	node   int
	peer   int    // node
	suffix string // of one of several links to the peer
	back   uint32 // port id at the other end

	rateBps, delayNs uint64 // of the link
	link             network.Link
}

// newPlan lays the experiment out.
func newPlan(e *experiment.Experiment) (*plan, error) {
	if most := experiment.EngineKernel.MaxFlows(); len(e.Flows) > most {
		return nil, fmt.Errorf("%d flows are too many for Linux: have at most %d, or run them "+
			"with `--engine sim`", len(e.Flows), most)
	}
	net := e.Topology.Network()
	p := &plan{exp: e, ports: make([]port, 1), hosts: len(net.Hosts), number: net.Numbers()}
	p.addNodes(net)
	for i, name := range e.Routers() {
		p.routers = append(p.routers, p.number[name])
		p.nodes[p.number[name]].addr = p.target(p.hosts + i)
	}
	p.addFlows()
	for _, l := range net.Links {
		p.addLink(l)
	}
	if len(p.ports) > 1<<15 {
		return nil, fmt.Errorf("%d ports are too many: a packet's mark can name 32767",
			len(p.ports)-1)
	}
	var err error
	if p.paths, err = net.Routes(); err != nil {
		return nil, err
	}
	p.rttNs = e.BaseRTTNs(p.paths)
	if p.virtualTime, err = inVirtualTime(); err != nil {
		return nil, err
	}
	return p, errors.Join(p.checkPaths(), p.checkDilation())
}

func (p *plan) addNodes(net *network.Network) {
	tiers := make(map[string]string)
	for _, t := range net.Tiers() {
		for _, name := range t.Nodes {
			tiers[name] = t.Name
		}
	}
	for i, name := range net.Nodes() {
		n := node{name: name, tier: tiers[name], isHost: i < p.hosts}
		if n.isHost {
			n.addr = network.HostAddr(i)
		}
		p.nodes = append(p.nodes, n)
	}
}

// addFlows notes which hosts flows come to and go from.
func (p *plan) addFlows() {
	for _, f := range p.exp.Flows {
		p.nodes[p.number[f.To]].receives = true
		p.nodes[p.number[f.From]].sends = true
	}
}

func (p *plan) addLink(l network.Link) {
	a, b := p.number[l.A], p.number[l.B]
	id := uint32(len(p.ports))
	names := l.Ports()
	there := port{suffix: l.Suffix, rateBps: l.RateBps, delayNs: l.DelayNs, link: l}
	back := there
	there.name, there.node, there.peer, there.back = names[0], a, b, id+1
	back.name, back.node, back.peer, back.back = names[1], b, a, id
	p.ports = append(p.ports, there, back)
	p.nodes[a].ports = append(p.nodes[a].ports, id)
	p.nodes[b].ports = append(p.nodes[b].ports, id+1)
}

// checkDilation fails if round trips last so long on the machine's clock that TCP gives them up
// while it connects.
func (p *plan) checkDilation() error {
	most := min(p.exp.Dilation.Shift, experiment.MostDilation(p.rttNs))
	if most == p.exp.Dilation.Shift {
		return nil
	}
	return fmt.Errorf("with dilation %d a round trip of %s lasts longer than the second in which "+
		"TCP waits for an answer when it connects: write `dilation: %d` or less",
		p.exp.Dilation.Shift, experiment.Duration(p.rttNs), most)
}

// device is the name of a port's network device.
func (p *plan) device(id uint32) string {
	return p.nodes[p.ports[id].peer].name + p.ports[id].suffix
}

// fromHost says whether a switch port's peer is a host.
func (p *plan) fromHost(id uint32) bool { return p.nodes[p.ports[id].peer].isHost }

func (p *plan) host(name string) int {
	if i, ok := p.number[name]; ok && i < p.hosts {
		return i
	}
	return -1
}

// routes gives, for every switch, the ports on shortest paths to every host and router:
// routes[switch node][host].
func (p *plan) routes() map[int][][]uint32 { return p.routesOver(p.paths) }

func (p *plan) routesOver(paths *network.Routes) map[int][][]uint32 {
	out := map[int][][]uint32{}
	for n := p.hosts; n < len(p.nodes); n++ {
		out[n] = p.routesFrom(n, paths)
	}
	return out
}

// routesFrom gives the ports of a switch on shortest paths to every host and then every router.
func (p *plan) routesFrom(n int, paths *network.Routes) [][]uint32 {
	var out [][]uint32
	add := func(ports []int) {
		var ids []uint32
		for _, port := range ports {
			ids = append(ids, uint32(port+1)) // port ids start at 1
		}
		out = append(out, ids)
	}
	for h := range p.hosts {
		add(paths.Ports(n, h))
	}
	for _, router := range p.routers {
		add(paths.SwitchPorts(n, router))
	}
	return out
}

// targets is how many addresses there are: of hosts, and behind them of routers.
func (p *plan) targets() int { return p.hosts + len(p.routers) }

// target returns the address of a host or router.
func (p *plan) target(i int) netip.Addr { return network.HostAddr(i) }

// hashSeed is the seed of a switch's flow hash: switches in a row must not pick alike.
func hashSeed(node int) uint32 { return uint32(node) }

// seed32 starts random choices in the kernel; not 0.
func (p *plan) seed32() uint32 { return max(rand.New(rand.NewPCG(p.exp.Seed, 1)).Uint32()>>8, 1) }

// rng is the run's source of random choices.
func (p *plan) rng() *rand.Rand { return rand.New(rand.NewPCG(p.exp.Seed, 0)) }

// flows is how many flows there are, bursts' too.
func (p *plan) flows() uint32 {
	n := len(p.exp.Flows)
	for _, b := range p.exp.Bursts {
		n += len(b.From) * b.Flows * len(b.Starts(p.exp.Duration))
	}
	return uint32(n)
}

// flowTable is the size of tables that have an entry for each flow. The kernel keeps some entries
// of a table aside for each CPU, and forgets flows when the others are used up.
func (p *plan) flowTable() uint32 {
	const least = 4096
	return max(least, 2*p.flows())
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
