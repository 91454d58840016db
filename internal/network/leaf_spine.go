// SPDX-License-Identifier: Apache-2.0

package network

// leafSpine is H0, H1 and on - L0, L1 and on - S0, S1 and on: every leaf is linked to every spine.
var leafSpine = Kind{
	Name: "leaf-spine",
	Counts: []Count{
		{Name: "leaves", Low: 1, High: 64, Default: 2},
		{Name: "spines", Low: 0, High: MaxPaths, Default: 2},
		{Name: "hosts", Low: 1, High: maxHosts, Default: 2},
	},
	Links: []string{"spine_links"},
	Tiers: []string{"leaf", "spine"},
	build: func(n *Network, s Shape) {
		leaves, hosts := n.addSwitches("L", s.Counts["leaves"]), s.Counts["hosts"]
		for i, leaf := range leaves {
			n.addHosts(s.Access, leaf, "H", i*hosts, hosts)
		}
		n.addTrunks(leaves, n.addSwitches("S", s.Counts["spines"]), s.SpineLinks)
	},
}
