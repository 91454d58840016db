// SPDX-License-Identifier: Apache-2.0

package network

// fig1 is H0, H1 - S0 - S1 - R0, R1, and H2 and on at S1: the compact scenario of PCN, Fig. 1.
var fig1 = Kind{
	Name:   "fig1",
	Counts: []Count{{Name: "burst_hosts", Low: 1, High: maxHosts, Default: 14}},
	Links:  []string{"bottleneck"},
	Tiers:  []string{"switch"},
	build: func(n *Network, s Shape) {
		n.addSwitches("S", 2)
		n.addHosts(s.Access, "S0", "H", 0, 2)
		n.addHosts(s.Access, "S1", "H", 2, s.Counts["burst_hosts"])
		n.addHosts(s.Access, "S1", "R", 0, 2)
		n.addLink("S0", "S1", s.Bottleneck)
	},
}
