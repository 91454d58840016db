// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestTiers(t *testing.T) {
	const us5 = 5 * Microsecond
	for _, c := range []struct {
		topology string
		want     []Tier // with the first and last of the nodes
	}{
		{"{kind: fig1}", []Tier{
			{"host", []string{"H0", "R1"}, []LinkGroup{{18, 40e9, us5}}, 0},
			{"switch", []string{"S0", "S1"}, []LinkGroup{{1, 40e9, us5}}, 0},
		}},
		{"{kind: star, bottleneck: {rate: 1Gbps}}", []Tier{
			{"host", []string{"H0", "R0"}, []LinkGroup{{10, 40e9, us5}, {1, 1e9, us5}}, 0},
			{"switch", []string{"S0", "S0"}, nil, 0},
		}},
		{"{kind: leaf-spine, hosts: 6, spines: 1, rate: 10Gbps, spine_links: {rate: 40Gbps, delay: 1us}}", []Tier{
			{"host", []string{"H0", "H11"}, []LinkGroup{{12, 10e9, us5}}, 0},
			{"leaf", []string{"L0", "L1"}, []LinkGroup{{2, 40e9, Microsecond}}, 1.5},
			{"spine", []string{"S0", "S0"}, nil, 0},
		}},
		{pcnClos, []Tier{
			{"host", []string{"H0", "H511"}, []LinkGroup{{512, 10e9, us5}}, 0},
			{"ToR", []string{"T0", "T31"}, []LinkGroup{{128, 40e9, us5}}, 1},
			{"leaf", []string{"L0", "L15"}, []LinkGroup{{128, 40e9, us5}}, 1},
			{"spine", []string{"S0", "S7"}, nil, 0},
		}},
		{pcnClos[:len(pcnClos)-1] + ", failed: [L0-T3, S0-L0, S1-L0]}", []Tier{
			{"host", []string{"H0", "H511"}, []LinkGroup{{512, 10e9, us5}}, 0},
			{"ToR", []string{"T0", "T31"}, []LinkGroup{{126, 40e9, us5}}, 2},
			{"leaf", []string{"L0", "L15"}, []LinkGroup{{126, 40e9, us5}}, 1}, // L0: 240 to 240
			{"spine", []string{"S0", "S7"}, nil, 0},
		}},
		// L1 has no way up, and its hosts none but by T1; it still is a leaf, as T0 that has lost it is a ToR
		{"{kind: clos, pods: 1, tors: 2, spines: 1, hosts: 1, failed: [L1-S0, L1-T0]}", []Tier{
			{"host", []string{"H0", "H1"}, []LinkGroup{{2, 40e9, us5}}, 0},
			{"ToR", []string{"T0", "T1"}, []LinkGroup{{3, 40e9, us5}}, 1},
			{"leaf", []string{"L0", "L1"}, []LinkGroup{{1, 40e9, us5}}, math.Inf(1)},
			{"spine", []string{"S0", "S0"}, nil, 0},
		}},
		// L1 is a leaf, although the next host is by way of S0 and L0
		{"{kind: clos, pods: 1, tors: 2, spines: 1, hosts: 1, failed: [L1-T0, L1-T1]}", []Tier{
			{"host", []string{"H0", "H1"}, []LinkGroup{{2, 40e9, us5}}, 0},
			{"ToR", []string{"T0", "T1"}, []LinkGroup{{2, 40e9, us5}}, 1},
			{"leaf", []string{"L0", "L1"}, []LinkGroup{{2, 40e9, us5}}, 2},
			{"spine", []string{"S0", "S0"}, nil, 0},
		}},
	} {
		tiers := topologyOf(t, c.topology).Network().Tiers()
		for i := range tiers {
			nodes := tiers[i].Nodes
			tiers[i].Nodes = []string{nodes[0], nodes[len(nodes)-1]}
		}
		qt.Check(t, qt.DeepEquals(tiers, c.want), qt.Commentf(c.topology))
	}
}

func TestTiersOfNoKind(t *testing.T) {
	n := &Network{Hosts: []string{"H0"}, Switches: []string{"S1", "S2", "S3"}, Links: []Link{{A: "H0", B: "S1"}, {A: "S2", B: "S1"}}}
	var names []string
	for _, tier := range n.Tiers() {
		names = append(names, tier.Name)
		names = append(names, tier.Nodes...)
	}
	qt.Check(t, qt.DeepEquals(names, []string{"host", "H0", "tier 1", "S1", "S3", "tier 2", "S2"})) // S3 has no link
}

func TestBisection(t *testing.T) {
	for topology, want := range map[string]Rate{
		pcnClos: 2560e9,
		"{kind: dumbbell, senders: 5, bottleneck: {rate: 10Gbps}}":                                       10e9,
		"{kind: star, hosts: 3, rate: 10Gbps, bottleneck: {rate: 1Gbps}}":                                11e9,
		"{kind: parking-lot, bottlenecks: 5, bottleneck: {rate: 3Gbps}}":                                 163e9, // S1 to S4 have a sender and a receiver each
		"{kind: leaf-spine, leaves: 4, hosts: 8, rate: 10Gbps, spine_links: {rate: 40Gbps}}":             160e9,
		"{kind: leaf-spine, leaves: 4, hosts: 8, rate: 10Gbps, failed: [L0-S0, L1-S0]}":                  20e9,
		"{kind: leaf-spine, leaves: 4, hosts: 8, rate: 10Gbps, spine_links: {rate: 1Gbps, parallel: 3}}": 12e9,
	} {
		qt.Check(t, qt.Equals(topologyOf(t, topology).Network().Bisection(), want), qt.Commentf(topology))
	}
}

// TestBisectionIsTheSmallestCut tries all cuts between the halves of the hosts.
func TestBisectionIsTheSmallestCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := randomNetwork(rng)
		for i := range n.Links {
			n.Links[i].Rate = Rate(1 + rng.IntN(10))
		}
		least := Rate(math.MaxUint64)
		for cut := range 1 << len(n.Switches) {
			left := func(node string) bool {
				if i := slices.Index(n.Switches, node); i >= 0 {
					return cut>>i&1 == 1
				}
				return slices.Index(n.Hosts, node) < len(n.Hosts)/2
			}
			var across Rate
			for _, l := range n.Links {
				if left(l.A) != left(l.B) {
					across += l.Rate
				}
			}
			least = min(least, across)
		}
		qt.Assert(t, qt.Equals(n.Bisection(), least))
	}
}

// TestLongest holds the longest path against those of all pairs of hosts.
func TestLongest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		n := randomNetwork(rng)
		for i := range n.Links {
			n.Links[i].Delay = Duration(1 + rng.IntN(50))
		}
		routes, err := n.Routes()
		qt.Assert(t, qt.IsNil(err))
		if routes.check() != nil {
			continue // some have no path, which no file may have
		}
		var want Duration
		for from := range n.Hosts {
			for to := range n.Hosts {
				if from != to {
					want = max(want, routes.Delay(from, to))
				}
			}
		}
		_, got := routes.Longest()
		qt.Assert(t, qt.Equals(got, want))
	}
	routes, err := topologyOf(t, pcnClos).Network().Routes()
	qt.Assert(t, qt.IsNil(err))
	hops, delay := routes.Longest()
	qt.Check(t, qt.DeepEquals([]any{hops, delay}, []any{6, 30 * Microsecond}))
}
