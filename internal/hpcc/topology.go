// SPDX-License-Identifier: Apache-2.0

package hpcc

import "strconv"

// Topology is the content of a topology file. Nodes are numbered from 0.
type Topology struct {
	Switch []bool // by node: switch or host
	Links  []Link
	// Surplus is the line of a further link than the file says that it has; 0 if there is none.
	Surplus int
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
// switches, then each link's nodes, rate, delay and error rate. As in the simulators the number of
// links rules, whatever follows. The first line may be that of a simulator that derives from
// HPCC's. An error is an [*config.Error].
func ParseTopology(text string) (*Topology, error) {
	r := newReader(text)
	r.notOther()
	nodes, switches, links := r.header()
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
		r.linkValues()
		l := Link{A: r.integer("the number of a node", nodes-1)}
		l.Line = r.last
		l.B = r.integer("the number of a node", nodes-1)
		l.RateBps = r.quantity("a rate such as 100Gbps", rateUnits)
		l.DelayNs = r.quantity("a delay such as 1us", timeUnits)
		l.ErrorRate = r.errorRate()
		if l.A == l.B {
			r.fail("a link connects node %d to itself", l.A)
		}
		if r.err != nil {
			return nil, r.err
		}
		t.Links = append(t.Links, l)
	}
	t.Surplus = r.more()
	return t, r.error()
}

// linkValues fails if the next line is that of a link with more or fewer values, as simulators have
// that derive from HPCC's. All links may be on one line.
func (r *reader) linkValues() {
	const want = 5
	n := r.onFirstLine()
	if n > want && n < 2*want {
		if _, err := strconv.ParseFloat(r.words[want].text, 64); err != nil {
			return // a remark
		}
	}
	if n != want && n < 2*want && len(r.words) > n {
		r.last = r.words[0].line
		r.fail("a link has %d values: want %d, which are two nodes, a rate, a delay and an error "+
			"rate", n, want)
	}
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

// header reads the numbers of nodes, switches and links. PowerTCP's simulator has that of ToRs
// before the last, and Reverie's the rates of two kinds of links behind it. SimAI's has the GPUs of
// a server, and NVSwitches apart from the others; its last word is the kind of GPU.
func (r *reader) header() (nodes, switches, links int) {
	words := r.onFirstLine()
	if words == 1 || words == 2 {
		r.last = r.words[0].line
		r.fail("the first line has fewer than 3 values: want the numbers of nodes, switches and " +
			"links (a list of nodes to trace is no topology)")
	}
	isSimAI := false
	if words == 6 {
		_, err := strconv.ParseFloat(r.words[5].text, 64)
		isSimAI = err != nil
	}
	nodes = r.integer("the number of nodes", maxNodes)
	if nodes == 0 {
		r.fail("a topology has 0 nodes: want 1 or more")
	}
	switch {
	case isSimAI:
		r.integer("the number of GPUs of a server", maxNodes)
		switches = r.integer("the number of NVSwitches", nodes)
		switches += r.integer("the number of switches", nodes-switches)
		links = r.integer("the number of links", maxCount)
		r.next("the kind of GPUs")
	case words == 4 || words == 6:
		switches = r.integer("the number of switches", nodes)
		r.integer("the number of ToRs", switches)
		links = r.integer("the number of links", maxCount)
		for range words - 4 {
			r.quantity("a rate such as 100Gbps", rateUnits)
		}
	default:
		switches = r.integer("the number of switches", nodes)
		links = r.integer("the number of links", maxCount)
	}
	return nodes, switches, links
}
