// SPDX-License-Identifier: Apache-2.0

package network

// toyPair is H0 and on, and R0, at one switch each.
var toyPair = Kind{
	Name:   "toy-pair",
	Counts: []Count{{Name: "hosts", Low: 1, High: maxHosts, Default: 2}},
	Links:  []string{"bottleneck"},
	Tiers:  []string{"switch"},
	build: func(n *Network, s Shape) {
		n.addSwitches("S", 2)
		n.addHosts(s.Access, "S0", "H", 0, s.Counts["hosts"])
		n.Hosts = append(n.Hosts, "R0")
		n.addLink("R0", "S1", s.Access)
		n.addLink("S0", "S1", s.Bottleneck)
	},
}
