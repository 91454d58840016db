// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"slices"
	"strconv"
	"strings"
)

// Network is what a topology consists of.
type Network struct {
	Hosts, Switches []string
	Links           []Link // in the order they are wired
	Failed          []Link // those that would be there too

	tiers []string // what switches are called, by how far from hosts they are
}

// maxLinks is how many links a network may have: each of their ports has a netdev group of its own.
const maxLinks = 1<<15 - 1

// Link is a full-duplex cable between the nodes A and B.
type Link struct {
	A, B string
	// Suffix tells links between the same nodes apart: .0, .1 and on; empty if there is only one.
	Suffix string
	// Rate is that of both directions.
	Rate Rate
	// Delay is the one-way propagation delay.
	Delay Duration
}

// Name returns the name of the link, such as L0-T3, or L0-T3.1 if there are several.
func (l Link) Name() string {
	return l.A + "-" + l.B + l.Suffix
}

// Ports returns the names of the two egress ports of the link, A->B and B->A.
func (l Link) Ports() [2]string {
	return [2]string{PortName(l.A, l.B+l.Suffix), PortName(l.B, l.A+l.Suffix)}
}

// PortName returns the name of the egress port of node towards peer, such as S0->S1,
// or S0->S1.0 with the suffix of the link if there are several.
func PortName(node, peer string) string {
	return node + "->" + peer
}

// SplitPort returns the node and the peer of a port name such as S0->S1 or S0->S1.0.
func SplitPort(name string) (node, peer string, ok bool) {
	node, peer, _, ok = splitPort(name)
	return node, peer, ok
}

// splitPort returns the suffix of the link too.
func splitPort(name string) (node, peer, suffix string, ok bool) {
	node, peer, ok = strings.Cut(name, "->")
	if i := strings.IndexByte(peer, '.'); i >= 0 {
		peer, suffix = peer[:i], peer[i:]
	}
	return node, peer, suffix, ok
}

// ReversePort returns the name of the port at the other end of the link: S1->S0
// for S0->S1. PAUSE frames sent on a link stop the reverse port. A name that is
// not a port's is returned as is.
func ReversePort(name string) string {
	node, peer, suffix, ok := splitPort(name)
	if !ok {
		return name
	}
	return PortName(peer, node+suffix)
}

// Nodes returns the names of the hosts and then of the switches.
func (n *Network) Nodes() []string {
	return slices.Concat(n.Hosts, n.Switches)
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

// addLinks adds so many links that are alike. One too many is kept to tell, and no more.
func (n *Network) addLinks(l Link, parallel int) {
	for i := range parallel {
		if len(n.Links) > maxLinks {
			return
		}
		if parallel > 1 {
			l.Suffix = "." + strconv.Itoa(i)
		}
		n.Links = append(n.Links, l)
	}
}

// names are all that the link can be failed by: the end that comes first does not matter, and without its suffix
// it is one of all between the two.
func (l Link) names() []string {
	back := Link{A: l.B, B: l.A, Suffix: l.Suffix}
	return []string{l.Name(), back.Name(), l.A + "-" + l.B, l.B + "-" + l.A}
}

// fail takes the named links away.
func (n *Network) fail(names []string) {
	if len(names) == 0 {
		return
	}
	failed := setOfNames(names)
	working := make([]Link, 0, len(n.Links))
	for _, l := range n.Links {
		if slices.ContainsFunc(l.names(), func(name string) bool { return failed[name] }) {
			n.Failed = append(n.Failed, l)
			continue
		}
		working = append(working, l)
	}
	n.Links = working
}

func setOfNames(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
