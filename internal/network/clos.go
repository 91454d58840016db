// SPDX-License-Identifier: Apache-2.0

package network

// clos is H0, H1 and on - T0, T1 and on (ToRs) - L0, L1 and on (leaves) - S0, S1 and on (spines),
// in pods (PCN, Fig. 14): every ToR is linked to the leaves of its pod, and every leaf to all
// spines.
//
// The fabric of PCN, section 7.4, has 64 hosts, 4 ToRs and 2 leaves in each of 8 pods, 8 spines, 10
// Gbit/s below the ToRs and 40 Gbit/s above, and is 1:1 in each tier. So the 16 hosts of a ToR, 160
// Gbit/s, take four links up: two to each leaf. The 8 links of a leaf from its ToRs, 320 Gbit/s,
// take eight up: one to each spine. That makes 8 * (64 + 4 + 2) + 8 = 568 nodes, and 512 + 8 * 4 *
// 2 * 2 + 8 * 2 * 8 = 768 links.
var clos = Kind{
	Name: "clos",
	Counts: []Count{
		{Name: "pods", Low: 1, High: 32, Default: 8},
		{Name: "tors", Low: 1, High: 32, Default: 4}, // of each pod
		{Name: "leaves", Low: 1, High: MaxPaths, Default: 2},
		{Name: "spines", Low: 0, High: MaxPaths, Default: 8},
		{Name: "hosts", Low: 1, High: maxHosts, Default: 16}, // of each ToR
	},
	Links: []string{"leaf_links", "spine_links"},
	Tiers: []string{"ToR", "leaf", "spine"},
	build: buildClos,
}

func buildClos(n *Network, s Shape) {
	pods, torsOfPod, leavesOfPod := s.Counts["pods"], s.Counts["tors"], s.Counts["leaves"]
	tors := n.addSwitches("T", pods*torsOfPod)
	leaves := n.addSwitches("L", pods*leavesOfPod)
	spines := n.addSwitches("S", s.Counts["spines"])
	for i, tor := range tors {
		n.addHosts(s.Access, tor, "H", i*s.Counts["hosts"], s.Counts["hosts"])
	}
	for pod := range pods {
		torsHere := tors[pod*torsOfPod : (pod+1)*torsOfPod]
		leavesHere := leaves[pod*leavesOfPod : (pod+1)*leavesOfPod]
		n.addTrunks(torsHere, leavesHere, s.LeafLinks)
	}
	n.addTrunks(leaves, spines, s.SpineLinks)
}
