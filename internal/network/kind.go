// SPDX-License-Identifier: Apache-2.0

package network

import "slices"

// Kind is a kind of topology: its parameters, and how it is wired. Each kind has its own file.
type Kind struct {
	Name   string
	Counts []Count
	// Links are which of bottleneck, leaf_links and spine_links the kind has.
	Links []string
	// Tiers are the names of the tiers of switches, from the hosts on.
	Tiers []string

	build func(*Network, Shape)
}

// Count is a number of nodes that a kind of topology is built from.
type Count struct {
	Name      string
	Low, High int
	Default   int
	// SameAs is an earlier count whose value is the default, in place of Default.
	SameAs string
}

// Shape is the values of one topology of a kind. Counts that its kind does not have are ignored.
type Shape struct {
	Kind   string
	Counts map[string]int // by the names in [Kind.Counts]
	// Access are the links of hosts, and those between switches that have no values of their own.
	Access                Cable
	Bottleneck            Cable
	LeafLinks, SpineLinks Trunk
}

// Cable is the values of a link.
type Cable struct {
	RateBps uint64 // of each direction
	DelayNs uint64 // one-way propagation delay
}

// Trunk is the links between two switches of neighbouring tiers.
type Trunk struct {
	Cable
	Parallel int // links between two switches
}

// maxHosts is how many hosts of one kind may be at a switch.
const maxHosts = 62

// kinds are in the order of their names.
var kinds = []Kind{clos, dumbbell, fig1, leafSpine, parkingLot, star, tcdFig2}

// KindNames returns the names of all kinds, in order.
func KindNames() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// FindKind returns the kind of the name, and false if there is none.
func FindKind(name string) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// Build returns the network of a shape; an empty one if its kind is unknown.
func Build(s Shape) *Network {
	k, ok := FindKind(s.Kind)
	if !ok {
		return &Network{}
	}
	n := &Network{tiers: k.Tiers}
	k.build(n, s)
	return n
}
