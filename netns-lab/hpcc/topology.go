// SPDX-License-Identifier: Apache-2.0

package hpcc

import "strconv"

// Topology is the content of a topology file. Nodes are numbered from 0.
type Topology struct {
	Switch []bool // by node: switch or host
	Links  []Link
}

// Link is a full-duplex cable between two nodes.
type Link struct {
	A, B    int
	RateBps uint64
	DelayNs uint64
	// ErrorRate is the share of packets that the link loses.
	ErrorRate float64
	Line      int // in the file
}

// ParseTopology parses a topology file: the numbers of nodes, switches and links, the list of
// switches, then each link's nodes, rate, delay and error rate. What follows may be text, but no
// further link. An error is an [*Error].
func ParseTopology(text string) (*Topology, error) {
	r := newReader(text)
	nodes := r.integer("the number of nodes", maxNodes)
	switches := r.integer("the number of switches", nodes)
	links := r.integer("the number of links", maxCount)
	t := &Topology{Switch: make([]bool, nodes)}
	for range switches {
		id := r.integer("the number of a switch", nodes-1)
		if r.err == nil && t.Switch[id] {
			r.fail("node %d is listed as a switch twice", id)
		}
		if r.err != nil {
			return nil, r.err
		}
		t.Switch[id] = true
	}
	for range links {
		l := Link{A: r.integer("the number of a node", nodes-1)}
		l.Line = r.last
		l.B = r.integer("the number of a node", nodes-1)
		l.RateBps = r.quantity("a rate such as 100Gbps", rateUnits, maxRate)
		l.DelayNs = r.quantity("a delay such as 1us", timeUnits, maxTime)
		l.ErrorRate = r.errorRate()
		if l.A == l.B {
			r.fail("a link connects node %d to itself", l.A)
		}
		if r.err != nil {
			return nil, r.err
		}
		t.Links = append(t.Links, l)
	}
	r.noMore("link", links)
	return t, r.error()
}

// errorRate reads the share of packets that a link loses.
func (r *reader) errorRate() float64 {
	const what, most = "an error rate", 0.5
	text := r.next(what)
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil || !(rate >= 0 && rate <= most) {
		r.fail("%q is not %s: want a share of packets, 0 to %v", text, what, most)
		return 0
	}
	return rate
}
