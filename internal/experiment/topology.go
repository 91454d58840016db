// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/network"
)

// Topology is a network of hosts and switches: one of a kind, or one from a file. Keys that its
// kind does not have are 0.
type Topology struct {
	// Kind is one of
	//
	//	fig1         H0, H1 - S0 - S1 - R0, R1, and H2 and on at S1 (PCN, Fig. 1)
	//	tcd-fig2     H0, H1 - S0, H2 - S1; S0, S1 - S2 - S3 - R0, R1, and A0 and on at S3 (TCD,
	//	             Fig. 2)
	//	dumbbell     A0, A1 and on - S0 - S1 - B0, B1 and on
	//	star         H0, H1 and on, and R0, all at S0
	//	parking-lot  S0 - S1 - S2 and on; H0 at S0, R0 at the last, and for each link in between a
	//	             pair H1, R1 and on of its own (PCN, Fig. 19)
	//	leaf-spine   H0, H1 and on - L0, L1 and on - S0, S1 and on
	//	clos         H0, H1 and on - T0, T1 and on (ToRs) - L0, L1 and on (leaves) - S0, S1 and on
	//	             (spines), in pods (PCN, Fig. 14)
	Kind string `yaml:"kind"`
	// File is, in place of a kind, a topology file of HPCC's simulator. Its node 7 becomes H7 if it
	// is a host, else S7.
	File string `yaml:"file"`
	// BurstHosts is how many hosts, from H2 on, are at S1 of fig1, default 14, or from A0 on at S3
	// of tcd-fig2, default 15. 1 to 62.
	BurstHosts int `yaml:"burst_hosts"`
	// Senders is how many hosts are at S0 of a dumbbell. 1 to 62, default 3.
	Senders int `yaml:"senders"`
	// Receivers is how many hosts are at S1 of a dumbbell. 1 to 62, default Senders.
	Receivers int `yaml:"receivers"`
	// HostCount is how many hosts a star has beside R0, each leaf of a leaf-spine, or each ToR of a
	// clos. 1 to 62, default 10, 2 and 16.
	HostCount int `yaml:"hosts"`
	// Bottlenecks is how many links are in a row in a parking-lot. 1 to 30, default 2.
	Bottlenecks int `yaml:"bottlenecks"`
	// Pods is how many pods a clos has. 1 to 32, default 8.
	Pods int `yaml:"pods"`
	// ToRs is how many ToRs a pod of a clos has. 1 to 32, default 4.
	ToRs int `yaml:"tors"`
	// Leaves is how many leaves a leaf-spine has, 1 to 64, default 2, or a pod of a clos, 1 to 64,
	// default 2. More than 16 shortest paths from a switch are in the simulator only.
	Leaves int `yaml:"leaves"`
	// Spines is how many spines a leaf-spine or a clos has; each is linked to all leaves. 0 to 64,
	// default 2 and 8.
	Spines int `yaml:"spines"`
	// Rate is the rate of every link, or of hosts' links if there are tiers of switches. Default
	// 40Gbps.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay of the same links. Default 5us.
	Delay Duration `yaml:"delay"`
	// ErrorRate is the share of packets that every link loses. 0 to 0.5, default 0. A topology file
	// gives it for each link.
	ErrorRate Ratio `yaml:"error_rate"`
	// Disturbance is what else every link does.
	Disturbance `yaml:",inline"`
	// Bottleneck is the link S0 - S1 of fig1 and a dumbbell, S0 - R0 of a star, each link between
	// switches of a parking-lot.
	Bottleneck Bottleneck `yaml:"bottleneck"`
	// LeafLinks are the links between ToRs and leaves of a clos.
	LeafLinks Uplinks `yaml:"leaf_links"`
	// SpineLinks are the links between leaves and spines of a leaf-spine or a clos.
	SpineLinks Uplinks `yaml:"spine_links"`
	// Links are links with values of their own. A topology file gives those of each link.
	Links []OwnLink `yaml:"links"`
	// Failed are missing links, such as L0-T3 for all links between the two, or L0-T3.1 for one of
	// several.
	Failed LinkList `yaml:"failed"`

	// Imported is the network of File; nil without one.
	Imported *network.Network
}

// OwnLink holds the values of a link that differ from those of its kind.
type OwnLink struct {
	// Link is such as L0-S1, for all links between the two, or L0-S1.1 for one of several.
	// Required.
	Link string `yaml:"link"`
	// Rate is that of both directions. 1kbps to 800Gbps, in the simulator to 4Tbps; default
	// that of its kind.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay. 500ns to 10s, in the simulator from 1ns; default
	// that of its kind.
	Delay Duration `yaml:"delay"`
	// ErrorRate is the share of packets that it loses. 0 to 0.5, default that of every link.
	ErrorRate *Ratio `yaml:"error_rate"`
	// Qdisc is where packets wait for the link at switches, as in switch.qdisc. Default: that.
	Qdisc string `yaml:"qdisc"`
	// Disturbance is what else it does. Default that of every link.
	Disturbance `yaml:",inline"`
}

// Bottleneck holds the values of one link that differ from those of all others.
type Bottleneck struct {
	// Rate is that of the link. 1kbps to 800Gbps, in the simulator to 4Tbps; default
	// that of every link.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay. 500ns to 10s, in the simulator from
	// 1ns; default that of every link.
	Delay Duration `yaml:"delay"`
}

// Uplinks are the links between two tiers of switches.
type Uplinks struct {
	// Rate is that of each link. 1kbps to 800Gbps, in the simulator to 4Tbps; default
	// that of hosts' links.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay. 500ns to 10s, in the simulator from
	// 1ns; default that of hosts' links.
	Delay Duration `yaml:"delay"`
	// Parallel is how many links there are between two switches. 1 to 64, default 1.
	Parallel int `yaml:"parallel"`
}

// keysOfKind returns the keys of a kind, without those that every kind has.
func keysOfKind(k network.Kind) []string {
	var keys []string
	for _, c := range k.Counts {
		keys = append(keys, c.Name)
	}
	return append(keys, k.Links...)
}

// count returns the field with the number of nodes for a key.
func (t *Topology) count(key string) *int {
	v := reflect.ValueOf(t).Elem()
	for _, f := range config.KeyedFields(v.Type()) {
		if f.Key == key {
			return v.FieldByIndex(f.Index).Addr().Interface().(*int)
		}
	}
	panic("experiment: topologies have no " + key)
}

// Network builds the network of the topology, without its failed links. It is empty if the kind is
// unknown.
func (t *Topology) Network() *network.Network {
	n := t.Imported
	if n == nil {
		n = network.Build(t.shape())
		n.SetErrorRate(float64(t.ErrorRate))
		for i := range n.Links {
			n.Links[i].Disturbance = t.Disturbance.ofLink()
		}
		t.setLinks(n)
	}
	return n.Without(t.Failed)
}

// setLinks gives links their own values. Names of no link change nothing.
func (t *Topology) setLinks(n *network.Network) {
	for _, own := range t.Links {
		for _, i := range n.LinksNamed(own.Link) {
			l := &n.Links[i]
			l.RateBps = cmp.Or(uint64(own.Rate), l.RateBps)
			l.DelayNs = cmp.Or(uint64(own.Delay), l.DelayNs)
			l.Disturbance = own.Disturbance.ofLink()
			if own.ErrorRate != nil {
				l.ErrorRate = float64(*own.ErrorRate)
			}
		}
	}
}

func (t *Topology) shape() network.Shape {
	s := network.Shape{
		Kind:       t.Kind,
		Counts:     make(map[string]int),
		Access:     cable(t.Rate, t.Delay),
		Bottleneck: cable(t.Bottleneck.Rate, t.Bottleneck.Delay),
		LeafLinks:  t.LeafLinks.trunk(),
		SpineLinks: t.SpineLinks.trunk(),
	}
	k, _ := network.FindKind(t.Kind)
	for _, c := range k.Counts {
		s.Counts[c.Name] = *t.count(c.Name)
	}
	return s
}

func cable(rate Rate, delay Duration) network.Cable {
	return network.Cable{RateBps: uint64(rate), DelayNs: uint64(delay)}
}

func (u Uplinks) trunk() network.Trunk {
	return network.Trunk{Cable: cable(u.Rate, u.Delay), Parallel: u.Parallel}
}

// LinkList is a list of link names, written as one name or a list.
type LinkList []string

// UnmarshalYAML implements [yaml.Unmarshaler].
func (l *LinkList) UnmarshalYAML(n *yaml.Node) error {
	items := n.Content
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	}
	*l = nil
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || n.Kind == yaml.MappingNode {
			return config.Bad("want a link or a list of links", "write L0-T3")
		}
		*l = append(*l, item.Value)
	}
	return nil
}

// NodeList is a list of node names, written as one name, a range such as H2..H15 or a list of both.
type NodeList []string

// maxRange is the largest number of nodes in a range.
const maxRange = 4096

// ParseNodeList parses a node name, or a range of them such as H2..H15, which
// includes both ends.
func ParseNodeList(text string) (NodeList, error) {
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		if !nodeName().MatchString(text) {
			return nil, config.Bad(
				fmt.Sprintf("%q is not a node name", text), "write H2 or H2..H15")
		}
		return NodeList{text}, nil
	}
	prefix, from, ok1 := splitNumber(first)
	lastPrefix, to, ok2 := splitNumber(last)
	if !ok1 || !ok2 || prefix != lastPrefix || from > to || to-from >= maxRange {
		return nil, config.Bad(fmt.Sprintf("%q is not a range of nodes", text), "write H2..H15")
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
	return prefix, number, canonical && nodeName().MatchString(name)
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (l *NodeList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return config.UnmarshalScalar(l, n, ParseNodeList)
	}
	if n.Kind != yaml.SequenceNode {
		return config.Bad("want a node, a range of nodes or a list of them", "write H2..H15")
	}
	*l = nil
	for _, item := range n.Content {
		var nodes NodeList
		if err := config.UnmarshalScalar(&nodes, item, ParseNodeList); err != nil {
			return err
		}
		*l = append(*l, nodes...)
	}
	return nil
}
