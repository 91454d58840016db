// SPDX-License-Identifier: Apache-2.0

package network

// tcdFig2 is H0, H1 - S0, H2 - S1; S0, S1 - S2 - S3 - R0, R1, and A0 and on at S3: the unit of a
// multi-rooted topology that TCD observes (Fig. 2). Its ports are P0 S0->S2, P1 S1->S2, P2 S2->S3
// and P3 S3->R1. Where the senders are is read from the authors' simulator
// (config/bursttopolong.txt).
var tcdFig2 = Kind{
	Name:   "tcd-fig2",
	Counts: []Count{{Name: "burst_hosts", Low: 1, High: maxHosts, Default: 15}},
	Tiers:  []string{"switch"},
	build: func(n *Network, s Shape) {
		n.addSwitches("S", 4)
		n.addHosts(s.Access, "S0", "H", 0, 2)
		n.addHosts(s.Access, "S1", "H", 2, 1)
		n.addHosts(s.Access, "S3", "R", 0, 2)
		n.addHosts(s.Access, "S3", "A", 0, s.Counts["burst_hosts"])
		for _, l := range [][2]string{{"S0", "S2"}, {"S1", "S2"}, {"S2", "S3"}} {
			n.addLink(l[0], l[1], s.Access)
		}
	},
}
