// SPDX-License-Identifier: Apache-2.0

package network

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestBisection(t *testing.T) {
	eightPerLeaf := map[string]int{"leaves": 4, "hosts": 8}
	dumbbell := shapeOf("dumbbell", 40e9, map[string]int{"senders": 5})
	dumbbell.Bottleneck.RateBps = 10e9
	star := shapeOf("star", 10e9, map[string]int{"hosts": 3})
	star.Bottleneck.RateBps = 1e9
	parkingLot := shapeOf("parking-lot", 40e9, map[string]int{"bottlenecks": 5})
	parkingLot.Bottleneck.RateBps = 3e9
	fast := shapeOf("leaf-spine", 10e9, eightPerLeaf)
	fast.SpineLinks.RateBps = 40e9
	slow := shapeOf("leaf-spine", 10e9, eightPerLeaf)
	slow.SpineLinks = Trunk{Cable{1e9, 5000}, 3}
	failed := Build(shapeOf("leaf-spine", 10e9, eightPerLeaf)).Without([]string{"L0-S0", "L1-S0"})
	for name, c := range map[string]struct {
		network *Network
		wantBps uint64
	}{
		"PCN's Clos":        {Build(pcnClos()), 2560e9},
		"dumbbell":          {Build(dumbbell), 10e9},
		"star":              {Build(star), 11e9},
		"parking lot":       {Build(parkingLot), 163e9}, // S1 to S4 have a sender and a receiver each
		"fast spines":       {Build(fast), 160e9},
		"failed links":      {failed, 20e9},
		"parallel and slow": {Build(slow), 12e9},
	} {
		qt.Check(t, qt.Equals(c.network.Bisection(), c.wantBps), qt.Commentf(name))
	}
}

// TestBisectionIsTheSmallestCut tries all cuts between the halves of the hosts.
func TestBisectionIsTheSmallestCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		n := randomNetwork(rng)
		for i := range n.Links {
			n.Links[i].RateBps = uint64(1 + rng.IntN(10))
		}
		least := uint64(math.MaxUint64)
		for cut := range 1 << len(n.Switches) {
			left := func(node string) bool {
				if i := slices.Index(n.Switches, node); i >= 0 {
					return cut>>i&1 == 1
				}
				return slices.Index(n.Hosts, node) < len(n.Hosts)/2
			}
			var across uint64
			for _, l := range n.Links {
				if left(l.A) != left(l.B) {
					across += l.RateBps
				}
			}
			least = min(least, across)
		}
		qt.Assert(t, qt.Equals(n.Bisection(), least))
	}
}
