// SPDX-License-Identifier: Apache-2.0

package network

// star is H0, H1 and on, and R0, all at S0. The link of R0 is the bottleneck.
var star = Kind{
	Name:   "star",
	Counts: []Count{{Name: "hosts", Low: 1, High: maxHosts, Default: 10}},
	Links:  []string{"bottleneck"},
	Tiers:  []string{"switch"},
	build: func(n *Network, s Shape) {
		n.addSwitches("S", 1)
		n.addHosts(s.Access, "S0", "H", 0, s.Counts["hosts"])
		n.Hosts = append(n.Hosts, "R0")
		n.addLink("R0", "S0", s.Bottleneck)
	},
}
