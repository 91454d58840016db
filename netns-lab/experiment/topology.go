// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// Topology is a fabric of hosts and switches: one of a kind, or one out of a file. What it does not have is 0.
type Topology struct {
	// Kind is one of
	//
	//	fig1         H0, H1 - S0 - S1 - R0, R1, and H2 and on at S1 (PCN, Fig. 1)
	//	tcd-fig2     H0, H1 - S0, H2 - S1; S0, S1 - S2 - S3 - R0, R1, and A0 and on at S3 (TCD, Fig. 2)
	//	dumbbell     A0, A1 and on - S0 - S1 - B0, B1 and on
	//	star         H0, H1 and on, and R0, all at S0
	//	parking-lot  S0 - S1 - S2 and on; H0 at S0 and R0 at the last, and for each link in between its own H1, R1 and on (PCN, Fig. 19)
	//	leaf-spine   H0, H1 and on - L0, L1 and on - S0, S1 and on
	//	clos         H0, H1 and on - T0, T1 and on (ToRs) - L0, L1 and on (leaves) - S0, S1 and on (spines), in pods (PCN, Fig. 14)
	Kind string `yaml:"kind"`
	// File is, in place of a kind, a topology file of HPCC's simulator. Node 7 of it is H7 if it is a host, or else S7.
	File string `yaml:"file"`
	// BurstHosts is how many hosts, from H2 on, are at S1 of fig1, default 14, or from A0 on at S3 of tcd-fig2, default 15. 1 to 62.
	BurstHosts int `yaml:"burst_hosts"`
	// Senders is how many hosts are at S0 of a dumbbell. 1 to 62, default 3.
	Senders int `yaml:"senders"`
	// Receivers is how many hosts are at S1 of a dumbbell. 1 to 62, default Senders.
	Receivers int `yaml:"receivers"`
	// HostCount is how many hosts a star has beside R0, each leaf of a leaf-spine, or each ToR of a clos. 1 to 62, default 10, 2 and 16.
	HostCount int `yaml:"hosts"`
	// Bottlenecks is how many links are in a row in a parking-lot. 1 to 30, default 2.
	Bottlenecks int `yaml:"bottlenecks"`
	// Pods is how many pods a clos has. 1 to 32, default 8.
	Pods int `yaml:"pods"`
	// ToRs is how many ToRs a pod of a clos has. 1 to 32, default 4.
	ToRs int `yaml:"tors"`
	// Leaves is how many leaves a leaf-spine has, 1 to 64, default 2, or a pod of a clos, 1 to 16, default 2.
	Leaves int `yaml:"leaves"`
	// Spines is how many spines a leaf-spine or a clos has; each is linked to all leaves. 0 to 16, default 2 and 8.
	Spines int `yaml:"spines"`
	// Rate is that of every link, or of those of hosts if there are tiers of switches. Default 40Gbps.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay of the same links. Default 5us.
	Delay Duration `yaml:"delay"`
	// Bottleneck is the link S0 - S1 of fig1 and a dumbbell, S0 - R0 of a star, each link between switches of a parking-lot.
	Bottleneck Bottleneck `yaml:"bottleneck"`
	// LeafLinks are those between ToRs and leaves of a clos.
	LeafLinks Uplinks `yaml:"leaf_links"`
	// SpineLinks are those between leaves and spines of a leaf-spine or a clos.
	SpineLinks Uplinks `yaml:"spine_links"`
	// Failed are links that are not there, such as L0-T3: all between the two, or L0-T3.1 for one of several.
	Failed LinkList `yaml:"failed"`

	// Imported is what File has; nil without one.
	Imported *Network
}

// Bottleneck is what one link has in place of the values of every link.
type Bottleneck struct {
	// Rate is that of the link. 1Mbps to 800Gbps, default that of every link.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay. 100ns to 10ms, default that of every link.
	Delay Duration `yaml:"delay"`
}

// Uplinks are the links between two tiers of switches.
type Uplinks struct {
	// Rate is that of each link. 1Mbps to 800Gbps, default that of hosts' links.
	Rate Rate `yaml:"rate"`
	// Delay is the one-way propagation delay. 100ns to 10ms, default that of hosts' links.
	Delay Duration `yaml:"delay"`
	// Parallel is how many links there are between two switches. 1 to 16, default 1.
	Parallel int `yaml:"parallel"`
}

// kind is a kind of topology.
type kind struct {
	counts []count
	links  []string // which of bottleneck, leaf_links and spine_links it has
	tiers  []string // what its switches are called, from the hosts on
	build  func(*Network, Topology)
}

// count is a number that a kind of topology has.
type count struct {
	key                  string
	low, high, byDefault int
}

var kinds = map[string]kind{
	"fig1": {
		counts: []count{{"burst_hosts", 1, maxHosts, 14}},
		links:  []string{"bottleneck"}, tiers: []string{"switch"}, build: fig1,
	},
	"tcd-fig2": {
		counts: []count{{"burst_hosts", 1, maxHosts, 15}},
		tiers:  []string{"switch"}, build: tcdFig2,
	},
	"dumbbell": {
		counts: []count{{"senders", 1, maxHosts, 3}, {"receivers", 1, maxHosts, asSenders}},
		links:  []string{"bottleneck"}, tiers: []string{"switch"}, build: dumbbell,
	},
	"star": {
		counts: []count{{"hosts", 1, maxHosts, 10}},
		links:  []string{"bottleneck"}, tiers: []string{"switch"}, build: star,
	},
	"parking-lot": {
		counts: []count{{"bottlenecks", 1, 30, 2}},
		links:  []string{"bottleneck"}, tiers: []string{"switch"}, build: parkingLot,
	},
	"leaf-spine": {
		counts: []count{{"leaves", 1, 64, 2}, {"spines", 0, MaxPaths, 2}, {"hosts", 1, maxHosts, 2}},
		links:  []string{"spine_links"}, tiers: []string{"leaf", "spine"}, build: leafSpine,
	},
	"clos": {
		counts: []count{{"pods", 1, 32, 8}, {"tors", 1, 32, 4}, {"leaves", 1, MaxPaths, 2}, {"spines", 0, MaxPaths, 8}, {"hosts", 1, maxHosts, 16}},
		links:  []string{"leaf_links", "spine_links"}, tiers: []string{"ToR", "leaf", "spine"}, build: clos,
	},
}

// asSenders is the default of receivers.
const asSenders = 0

// keys are those of the file that the kind has, beside those that all have.
func (k kind) keys() []string {
	var keys []string
	for _, c := range k.counts {
		keys = append(keys, c.key)
	}
	return append(keys, k.links...)
}

// count is the number of the key.
func (t *Topology) count(key string) *int {
	v := reflect.ValueOf(t).Elem()
	for _, f := range config.KeyedFields(v.Type()) {
		if f.Key == key {
			return v.FieldByIndex(f.Index).Addr().Interface().(*int)
		}
	}
	panic("experiment: topologies have no " + key)
}

// fig1 is the compact and typical network scenario of PCN, Fig. 1.
func fig1(n *Network, t Topology) {
	n.addSwitches("S", 2)
	n.addHosts(t, "S0", "H", 0, 2)
	n.addHosts(t, "S1", "H", 2, t.BurstHosts)
	n.addHosts(t, "S1", "R", 0, 2)
	n.addBottleneck(t, "S0", "S1")
}

// tcdFig2 is the unit of a multi-rooted topology that TCD's observations are made on. Its ports are P0 S0->S2, P1 S1->S2,
// P2 S2->S3 and P3 S3->R1; where the senders are is read from the authors' simulator (config/bursttopolong.txt).
func tcdFig2(n *Network, t Topology) {
	n.addSwitches("S", 4)
	n.addHosts(t, "S0", "H", 0, 2)
	n.addHosts(t, "S1", "H", 2, 1)
	n.addHosts(t, "S3", "R", 0, 2)
	n.addHosts(t, "S3", "A", 0, t.BurstHosts)
	for _, l := range [][2]string{{"S0", "S2"}, {"S1", "S2"}, {"S2", "S3"}} {
		n.addLinks(Link{A: l[0], B: l[1], Rate: t.Rate, Delay: t.Delay}, 1)
	}
}

// dumbbell has all senders on one side of a link, and all receivers on the other.
func dumbbell(n *Network, t Topology) {
	n.addSwitches("S", 2)
	n.addHosts(t, "S0", "A", 0, t.Senders)
	n.addHosts(t, "S1", "B", 0, t.Receivers)
	n.addBottleneck(t, "S0", "S1")
}

// star has one switch, and one receiver whose link may be slower than those of the senders.
func star(n *Network, t Topology) {
	n.addSwitches("S", 1)
	n.addHosts(t, "S0", "H", 0, t.HostCount)
	n.Hosts = append(n.Hosts, "R0")
	n.addBottleneck(t, "R0", "S0")
}

// parkingLot has one pair of hosts whose flow crosses every link between switches, and one for each such link.
func parkingLot(n *Network, t Topology) {
	n.addSwitches("S", t.Bottlenecks+1)
	n.addHosts(t, n.Switches[0], "H", 0, 1)
	for i := range t.Bottlenecks {
		n.addHosts(t, n.Switches[i], "H", i+1, 1)
	}
	n.addHosts(t, n.Switches[t.Bottlenecks], "R", 0, 1)
	for i := range t.Bottlenecks {
		n.addHosts(t, n.Switches[i+1], "R", i+1, 1)
	}
	for i := range t.Bottlenecks {
		n.addBottleneck(t, n.Switches[i], n.Switches[i+1])
	}
}

func leafSpine(n *Network, t Topology) {
	leaves := n.addSwitches("L", t.Leaves)
	for i, leaf := range leaves {
		n.addHosts(t, leaf, "H", i*t.HostCount, t.HostCount)
	}
	n.addUplinks(leaves, n.addSwitches("S", t.Spines), t.SpineLinks)
}

// clos links every ToR to the leaves of its pod, and every leaf to all spines.
//
// The fabric of PCN, section 7.4, has 64 hosts, 4 ToRs and 2 leaves in each of 8 pods, 8 spines, 10 Gbit/s below the ToRs
// and 40 Gbit/s above, and is 1:1 in each tier. So the 16 hosts of a ToR, 160 Gbit/s, take four links up: two to each
// leaf. The 8 links of a leaf from its ToRs, 320 Gbit/s, take eight up: one to each spine. That makes 8 * (64 + 4 + 2) +
// 8 = 568 nodes, and 512 + 8 * 4 * 2 * 2 + 8 * 2 * 8 = 768 links.
func clos(n *Network, t Topology) {
	tors := n.addSwitches("T", t.Pods*t.ToRs)
	leaves := n.addSwitches("L", t.Pods*t.Leaves)
	spines := n.addSwitches("S", t.Spines)
	for i, tor := range tors {
		n.addHosts(t, tor, "H", i*t.HostCount, t.HostCount)
	}
	for pod := range t.Pods {
		n.addUplinks(tors[pod*t.ToRs:(pod+1)*t.ToRs], leaves[pod*t.Leaves:(pod+1)*t.Leaves], t.LeafLinks)
	}
	n.addUplinks(leaves, spines, t.SpineLinks)
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
func (n *Network) addHosts(t Topology, sw, prefix string, first, count int) {
	for i := range count {
		host := prefix + strconv.Itoa(first+i)
		n.Hosts = append(n.Hosts, host)
		n.addLinks(Link{A: host, B: sw, Rate: t.Rate, Delay: t.Delay}, 1)
	}
}

func (n *Network) addBottleneck(t Topology, a, b string) {
	n.addLinks(Link{A: a, B: b, Rate: t.Bottleneck.Rate, Delay: t.Bottleneck.Delay}, 1)
}

// addUplinks connects each switch of a tier to each of the next.
func (n *Network) addUplinks(below, above []string, links Uplinks) {
	for _, a := range below {
		for _, b := range above {
			n.addLinks(Link{A: a, B: b, Rate: links.Rate, Delay: links.Delay}, links.Parallel)
		}
	}
}

// Network returns what the topology consists of; nothing if the kind is unknown.
func (t Topology) Network() *Network {
	n := &Network{}
	if t.Imported != nil {
		*n = *t.Imported
	} else if k, ok := kinds[t.Kind]; ok {
		n.tiers = k.tiers
		k.build(n, t)
	}
	n.fail(t.Failed)
	return n
}

// Hosts returns the names of the hosts.
func (t Topology) Hosts() []string {
	return t.Network().Hosts
}

// Switches returns the names of the switches.
func (t Topology) Switches() []string {
	return t.Network().Switches
}

// Nodes returns the names of the hosts and then of the switches.
func (t Topology) Nodes() []string {
	return t.Network().Nodes()
}

// Links returns every cable that works once.
func (t Topology) Links() []Link {
	return t.Network().Links
}

// Ports returns the names of the egress ports, two for each link.
func (t Topology) Ports() []string {
	return t.Network().Ports()
}

func topologyKinds() []string {
	return slices.Sorted(maps.Keys(kinds))
}

// LinkList is link names, written as one name or a list of them.
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
			return nil, config.Bad(fmt.Sprintf("%q is not a node name", text), "write H2 or H2..H15")
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
	return prefix, number, canonical && nodeName.MatchString(name)
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
