// SPDX-License-Identifier: Apache-2.0

package network

// dumbbell is A0, A1 and on - S0 - S1 - B0, B1 and on: senders on one side, receivers on the other.
var dumbbell = Kind{
	Name: "dumbbell",
	Counts: []Count{
		{Name: "senders", Low: 1, High: maxHosts, Default: 3},
		{Name: "receivers", Low: 1, High: maxHosts, SameAs: "senders"},
	},
	Links: []string{"bottleneck"},
	Tiers: []string{"switch"},
	build: func(n *Network, s Shape) {
		n.addSwitches("S", 2)
		n.addHosts(s.Access, "S0", "A", 0, s.Counts["senders"])
		n.addHosts(s.Access, "S1", "B", 0, s.Counts["receivers"])
		n.addLink("S0", "S1", s.Bottleneck)
	},
}
