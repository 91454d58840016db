// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Topology is a fabric of hosts and switches.
type Topology struct {
	// Kind is one of
	//
	//	fig1      H0, H1 - S0 - S1 - R0, R1, and H2 and on at S1 (PCN, Fig. 1)
	//	dumbbell  A0, A1 and on - S0 - S1 - B0, B1 and on
	//	star      H0, H1 and on, and R0, all at S0
	Kind string `yaml:"kind"`
	// BurstHosts is how many hosts, from H2 on, are at S1 of fig1. 1 to 62, default 14.
	BurstHosts int `yaml:"burst_hosts"`
	// Senders is how many hosts are at S0 of a dumbbell. 1 to 62, default 3.
	Senders int `yaml:"senders"`
	// Receivers is how many hosts are at S1 of a dumbbell. 1 to 62, default Senders.
	Receivers int `yaml:"receivers"`
	// StarHosts is how many hosts a star has beside R0. 1 to 62, default 10.
	StarHosts int `yaml:"hosts"`
	// Rate is that of every link in bit/s. Default 40Gbps.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay of every link. Default 5us.
	Delay Duration `yaml:"delay"`
	// Bottleneck is the link S0 - S1 of fig1 and a dumbbell, S0 - R0 of a star.
	Bottleneck Bottleneck `yaml:"bottleneck"`
}

// Bottleneck is what one link has in place of the values of every link.
type Bottleneck struct {
	// Rate is that of the link. 1Mbps to 800Gbps, default that of every link.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay. 100ns to 10ms, default that of every link.
	Delay Duration `yaml:"delay"`
}

// Link is a full-duplex cable between the nodes A and B.
type Link struct {
	A, B string
	// Rate is that of both directions.
	Rate Rate
	// Delay is the one-way propagation delay.
	Delay Duration
}

// Ports returns the names of the two egress ports of the link, A->B and B->A.
func (l Link) Ports() [2]string {
	return [2]string{PortName(l.A, l.B), PortName(l.B, l.A)}
}

// PortName returns the name of the egress port of node towards peer, such as S0->S1.
func PortName(node, peer string) string {
	return node + "->" + peer
}

// SplitPort returns the node and the peer of a port name such as S0->S1.
func SplitPort(name string) (node, peer string, ok bool) {
	return strings.Cut(name, "->")
}

// ReversePort returns the name of the port at the other end of the link: S1->S0
// for S0->S1. PAUSE frames sent on a link stop the reverse port. A name that is
// not a port's is returned as is.
func ReversePort(name string) string {
	node, peer, ok := SplitPort(name)
	if !ok {
		return name
	}
	return PortName(peer, node)
}

// graph is what a topology is made of, in the order it is wired.
type graph struct {
	hosts, switches []string
	links           []Link
}

// kind is a kind of topology.
type kind struct {
	counts []string // the keys for how many hosts it has
	build  func(Topology) graph
}

var kinds = map[string]kind{
	"fig1":     {[]string{"burst_hosts"}, fig1},
	"dumbbell": {[]string{"senders", "receivers"}, dumbbell},
	"star":     {[]string{"hosts"}, star},
}

// fig1 is the compact and typical network scenario of PCN, Fig. 1.
func fig1(t Topology) graph {
	g := graph{switches: []string{"S0", "S1"}}
	g.addHosts(t, "S0", "H", 0, 2)
	g.addHosts(t, "S1", "H", 2, t.BurstHosts)
	g.addHosts(t, "S1", "R", 0, 2)
	g.addBottleneck(t, "S0", "S1")
	return g
}

// dumbbell has all senders on one side of a link, and all receivers on the other.
func dumbbell(t Topology) graph {
	g := graph{switches: []string{"S0", "S1"}}
	g.addHosts(t, "S0", "A", 0, t.Senders)
	g.addHosts(t, "S1", "B", 0, t.Receivers)
	g.addBottleneck(t, "S0", "S1")
	return g
}

// star has one switch, and one receiver whose link may be slower than those of the senders.
func star(t Topology) graph {
	g := graph{switches: []string{"S0"}}
	g.addHosts(t, "S0", "H", 0, t.StarHosts)
	g.hosts = append(g.hosts, "R0")
	g.addBottleneck(t, "R0", "S0")
	return g
}

// addHosts connects count hosts to a switch, numbered from first on.
func (g *graph) addHosts(t Topology, sw, prefix string, first, count int) {
	for i := range count {
		host := prefix + strconv.Itoa(first+i)
		g.hosts = append(g.hosts, host)
		g.links = append(g.links, Link{host, sw, t.Rate, t.Delay})
	}
}

func (g *graph) addBottleneck(t Topology, a, b string) {
	g.links = append(g.links, Link{a, b, t.Bottleneck.Rate, t.Bottleneck.Delay})
}

func (t Topology) graph() graph {
	k, ok := kinds[t.Kind]
	if !ok {
		return graph{}
	}
	return k.build(t)
}

// Hosts returns the names of the hosts; none if the kind is unknown.
func (t Topology) Hosts() []string {
	return t.graph().hosts
}

// Switches returns the names of the switches; none if the kind is unknown.
func (t Topology) Switches() []string {
	return t.graph().switches
}

// Nodes returns the names of the hosts and then of the switches; none if the kind is unknown.
func (t Topology) Nodes() []string {
	g := t.graph()
	return slices.Concat(g.hosts, g.switches)
}

// Links returns every cable once; none if the kind is unknown.
func (t Topology) Links() []Link {
	return t.graph().links
}

// Ports returns the names of the egress ports, two for each link.
func (t Topology) Ports() []string {
	var ports []string
	for _, l := range t.Links() {
		p := l.Ports()
		ports = append(ports, p[0], p[1])
	}
	return ports
}

func topologyKinds() []string {
	return slices.Sorted(maps.Keys(kinds))
}

// NodeList is node names, written as one name, a range such as H2..H15 or a list of both.
type NodeList []string

// maxRange bounds what a range of nodes expands to.
const maxRange = 4096

// ParseNodeList parses a node name, or a range of them such as H2..H15, which
// includes both ends.
func ParseNodeList(text string) (NodeList, error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		if !nodeName.MatchString(text) {
			return nil, &valueError{fmt.Sprintf("%q is not a node name", text), "write H2 or H2..H15"}
		}
		return NodeList{text}, nil
	}
	prefix, from, ok1 := splitNumber(first)
	lastPrefix, to, ok2 := splitNumber(last)
	if !ok1 || !ok2 || prefix != lastPrefix || from > to || to-from >= maxRange {
		return nil, &valueError{fmt.Sprintf("%q is not a range of nodes", text), "write H2..H15"}
	}
	var nodes NodeList
	for i := from; i <= to; i++ {
		nodes = append(nodes, prefix+strconv.Itoa(i))
	}
	return nodes, nil
}

// splitNumber splits H12 into H and 12.
func splitNumber(name string) (prefix string, number int, ok bool) {
	prefix = strings.TrimRight(name, "0123456789")
	number, err := strconv.Atoi(name[len(prefix):])
	canonical := err == nil && name == prefix+strconv.Itoa(number)
	return prefix, number, canonical && nodeName.MatchString(name)
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (l *NodeList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return unmarshalScalar(l, n, ParseNodeList)
	}
	if n.Kind != yaml.SequenceNode {
		return &valueError{"want a node, a range of nodes or a list of them", "write H2..H15"}
	}
	*l = nil
	for _, item := range n.Content {
		var nodes NodeList
		if err := unmarshalScalar(&nodes, item, ParseNodeList); err != nil {
			return err
		}
		*l = append(*l, nodes...)
	}
	return nil
}
