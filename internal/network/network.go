// SPDX-License-Identifier: Apache-2.0

// Package network describes networks of hosts and switches: their topologies, shortest paths,
// tiers, bisection and host addresses. It knows no file format and nothing of how a network is run.
//
// [Build] makes the network of a [Kind], [Import] that of a topology file of HPCC's simulator.
// [Network.Without] takes failed links out, and [Network.Routes] finds the shortest paths.
package network

import (
	"fmt"
	"slices"
	"strconv"
)

// Network is hosts and switches, and the links between them.
type Network struct {
	Hosts, Switches []string
	Links           []Link // links that work, in the order they are wired
	Failed          []Link // links that were taken out

	tiers []string // names of the tiers of switches, from the hosts on
}

// MaxLinks is how many links a network may have: each port needs a netdev group of its own.
const MaxLinks = 1<<15 - 1

// Link is a full-duplex cable between the nodes A and B.
type Link struct {
	A, B string
	// Suffix tells links between the same nodes apart: .0, .1 and on; empty if there is only one.
	Suffix string
	// RateBps is that of both directions.
	RateBps uint64
	// DelayNs is the one-way propagation delay.
	DelayNs uint64
	// ErrorRate is the share of packets that it loses, in each direction.
	ErrorRate float64
	Disturbance
}

// NumberParallel gives links between the same two nodes their suffixes.
func (n *Network) NumberParallel() {
	count := map[[2]string]int{}
	for _, l := range n.Links {
		count[[2]string{l.A, l.B}]++
	}
	next := map[[2]string]int{}
	for i, l := range n.Links {
		pair := [2]string{l.A, l.B}
		if count[pair] > 1 {
			n.Links[i].Suffix = fmt.Sprintf(".%d", next[pair])
			next[pair]++
		}
	}
}

// Disturbance is what a link of a wide-area or radio network does to packets, in each direction by
// itself, beside losing single ones.
type Disturbance struct {
	// ErrorBurst is how many packets in a row it loses on average; 0: each loss is by itself.
	ErrorBurst float64
	// JitterNs is the most that a packet takes longer. Packets keep their order.
	JitterNs uint64
	// Reorder is the share of packets that take ReorderNs longer, and are overtaken.
	Reorder   float64
	ReorderNs uint64
}

// Losses returns the chances, of which the link is made a chain of two states (Gilbert 1960), that
// a packet is lost: behind one that was not, and behind one that was.
func (l Link) Losses() (begin, goOn float64) {
	if l.ErrorBurst == 0 || l.ErrorRate == 0 {
		return l.ErrorRate, l.ErrorRate
	}
	return l.ErrorRate / (l.ErrorBurst * (1 - l.ErrorRate)), 1 - 1/l.ErrorBurst
}

// Disturbed reports whether the link loses, delays or reorders packets.
func (l Link) Disturbed() bool { return l.ErrorRate > 0 || l.Disturbance != Disturbance{} }

// MostDelayNs returns the longest that a packet is under way.
func (l Link) MostDelayNs() uint64 { return l.DelayNs + l.JitterNs + l.ReorderNs }

// Peer returns the node at the other end of the link.
func (l Link) Peer(node string) string {
	if l.A == node {
		return l.B
	}
	return l.A
}

// Name returns the name of the link, such as L0-T3, or L0-T3.1 if there are several.
func (l Link) Name() string {
	return l.A + "-" + l.B + l.Suffix
}

// Ports returns the names of the two egress ports of the link, A->B and B->A.
func (l Link) Ports() [2]string {
	return [2]string{PortName(l.A, l.B+l.Suffix), PortName(l.B, l.A+l.Suffix)}
}

// Nodes returns the names of the hosts and then of the switches.
func (n *Network) Nodes() []string {
	return slices.Concat(n.Hosts, n.Switches)
}

// Numbers returns the place of each node in [Network.Nodes].
func (n *Network) Numbers() map[string]int {
	number := make(map[string]int, len(n.Hosts)+len(n.Switches))
	for i, name := range n.Nodes() {
		number[name] = i
	}
	return number
}

// Ports returns the names of the egress ports: 2*k is that of link k at A, and 2*k+1 that at B.
func (n *Network) Ports() []string {
	var ports []string
	for _, l := range n.Links {
		p := l.Ports()
		ports = append(ports, p[0], p[1])
	}
	return ports
}

// SetErrorRate sets the share of packets that every link loses.
func (n *Network) SetErrorRate(rate float64) {
	for i := range n.Links {
		n.Links[i].ErrorRate = rate
	}
}

// addSwitches adds switches numbered from 0, and returns their names.
func (n *Network) addSwitches(prefix string, count int) []string {
	first := len(n.Switches)
	for i := range count {
		n.Switches = append(n.Switches, prefix+strconv.Itoa(i))
	}
	return n.Switches[first:]
}

// addHosts connects count hosts to a switch, numbered from first on.
func (n *Network) addHosts(access Cable, sw, prefix string, first, count int) {
	for i := range count {
		host := prefix + strconv.Itoa(first+i)
		n.Hosts = append(n.Hosts, host)
		n.addLink(host, sw, access)
	}
}

func (n *Network) addLink(a, b string, c Cable) {
	n.addLinks(Link{A: a, B: b, RateBps: c.RateBps, DelayNs: c.DelayNs}, 1)
}

// addTrunks connects each switch of a tier to each of the next.
func (n *Network) addTrunks(below, above []string, t Trunk) {
	for _, a := range below {
		for _, b := range above {
			n.addLinks(Link{A: a, B: b, RateBps: t.RateBps, DelayNs: t.DelayNs}, t.Parallel)
		}
	}
}

// addLinks adds parallel links that are alike. It keeps one link over [MaxLinks] and no more, so
// that a caller sees that there are too many.
func (n *Network) addLinks(l Link, parallel int) {
	for i := range parallel {
		if len(n.Links) > MaxLinks {
			return
		}
		if parallel > 1 {
			l.Suffix = "." + strconv.Itoa(i)
		}
		n.Links = append(n.Links, l)
	}
}
