// SPDX-License-Identifier: Apache-2.0

package network

// parkingLot is S0 - S1 - S2 and on (PCN, Fig. 19). The flow from H0 at S0 to R0 at the last switch
// crosses every link between switches, and each such link has a pair H1, R1 and on of its own.
var parkingLot = Kind{
	Name:   "parking-lot",
	Counts: []Count{{Name: "bottlenecks", Low: 1, High: 30, Default: 2}},
	Links:  []string{"bottleneck"},
	Tiers:  []string{"switch"},
	build:  buildParkingLot,
}

func buildParkingLot(n *Network, s Shape) {
	bottlenecks := s.Counts["bottlenecks"]
	n.addSwitches("S", bottlenecks+1)
	n.addHosts(s.Access, n.Switches[0], "H", 0, 1)
	for i := range bottlenecks {
		n.addHosts(s.Access, n.Switches[i], "H", i+1, 1)
	}
	n.addHosts(s.Access, n.Switches[bottlenecks], "R", 0, 1)
	for i := range bottlenecks {
		n.addHosts(s.Access, n.Switches[i+1], "R", i+1, 1)
	}
	for i := range bottlenecks {
		n.addLink(n.Switches[i], n.Switches[i+1], s.Bottleneck)
	}
}
