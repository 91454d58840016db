// SPDX-License-Identifier: Apache-2.0

package network

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"
)

// tiersCase is a network, and its tiers with the first and the last of their nodes.
type tiersCase struct {
	name    string
	network *Network
	want    []Tier
}

func tiersCases() []tiersCase {
	star := shapeOf("star", 40e9, nil)
	star.Bottleneck.RateBps = 1e9
	leafSpine := shapeOf("leaf-spine", 10e9, map[string]int{"hosts": 6, "spines": 1})
	leafSpine.SpineLinks.Cable = Cable{40e9, 1000}
	pod := Build(shapeOf("clos", 40e9, map[string]int{"pods": 1, "tors": 2, "spines": 1, "hosts": 1}))
	return []tiersCase{
		{"fig1", Build(shapeOf("fig1", 40e9, nil)), []Tier{
			{"host", []string{"H0", "R1"}, []LinkGroup{{18, 40e9, 5000}}, 0},
			{"switch", []string{"S0", "S1"}, []LinkGroup{{1, 40e9, 5000}}, 0},
		}},
		{"star", Build(star), []Tier{
			{"host", []string{"H0", "R0"}, []LinkGroup{{10, 40e9, 5000}, {1, 1e9, 5000}}, 0},
			{"switch", []string{"S0", "S0"}, nil, 0},
		}},
		{"leaf-spine", Build(leafSpine), []Tier{
			{"host", []string{"H0", "H11"}, []LinkGroup{{12, 10e9, 5000}}, 0},
			{"leaf", []string{"L0", "L1"}, []LinkGroup{{2, 40e9, 1000}}, 1.5},
			{"spine", []string{"S0", "S0"}, nil, 0},
		}},
		{"PCN's Clos", Build(pcnClos()), []Tier{
			{"host", []string{"H0", "H511"}, []LinkGroup{{512, 10e9, 5000}}, 0},
			{"ToR", []string{"T0", "T31"}, []LinkGroup{{128, 40e9, 5000}}, 1},
			{"leaf", []string{"L0", "L15"}, []LinkGroup{{128, 40e9, 5000}}, 1},
			{"spine", []string{"S0", "S7"}, nil, 0},
		}},
		{"PCN's Clos, failed", Build(pcnClos()).Without([]string{"L0-T3", "S0-L0", "S1-L0"}), []Tier{
			{"host", []string{"H0", "H511"}, []LinkGroup{{512, 10e9, 5000}}, 0},
			{"ToR", []string{"T0", "T31"}, []LinkGroup{{126, 40e9, 5000}}, 2},
			{"leaf", []string{"L0", "L15"}, []LinkGroup{{126, 40e9, 5000}}, 1}, // L0: 240 to 240
			{"spine", []string{"S0", "S7"}, nil, 0},
		}},
		// L1 has no way up, and its hosts none but by T1; it still is a leaf, as T0 that has lost
		// it is a ToR
		{"pod, one leaf cut off above", pod.Without([]string{"L1-S0", "L1-T0"}), []Tier{
			{"host", []string{"H0", "H1"}, []LinkGroup{{2, 40e9, 5000}}, 0},
			{"ToR", []string{"T0", "T1"}, []LinkGroup{{3, 40e9, 5000}}, 1},
			{"leaf", []string{"L0", "L1"}, []LinkGroup{{1, 40e9, 5000}}, math.Inf(1)},
			{"spine", []string{"S0", "S0"}, nil, 0},
		}},
		// L1 is a leaf, although the next host is by way of S0 and L0
		{"pod, one leaf cut off below", pod.Without([]string{"L1-T0", "L1-T1"}), []Tier{
			{"host", []string{"H0", "H1"}, []LinkGroup{{2, 40e9, 5000}}, 0},
			{"ToR", []string{"T0", "T1"}, []LinkGroup{{2, 40e9, 5000}}, 1},
			{"leaf", []string{"L0", "L1"}, []LinkGroup{{2, 40e9, 5000}}, 2},
			{"spine", []string{"S0", "S0"}, nil, 0},
		}},
	}
}

func TestTiers(t *testing.T) {
	for _, c := range tiersCases() {
		tiers := c.network.Tiers()
		for i := range tiers {
			nodes := tiers[i].Nodes
			tiers[i].Nodes = []string{nodes[0], nodes[len(nodes)-1]}
		}
		qt.Check(t, qt.DeepEquals(tiers, c.want), qt.Commentf(c.name))
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
