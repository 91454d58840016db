// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// The thresholds of the random networks below.
func randomXON(ingress uint32, stuckBytes uint64) uint64 {
	return uint64(ingress%4)*10 - min(uint64(ingress%4)*10, stuckBytes/8)
}

// randomPaused is a random network of queues, of which each node has some. Port p and p^1 are the
// ends of a link.
func randomPaused(rng *rand.Rand) (all PausedQueues, nodeOf func(uint32) int) {
	nodes := 2 + rng.IntN(4)
	var at []int // node of each port
	for range 2 + rng.IntN(3) {
		a := rng.IntN(nodes)
		at = append(at, a, (a+1+rng.IntN(nodes-1))%nodes)
	}
	nodeOf = func(port uint32) int { return at[port] }
	all = PausedQueues{}
	for port := range uint32(len(at)) {
		if rng.IntN(5) == 0 {
			continue
		}
		p := &PausedQueue{Ingress: port ^ 1, Node: at[port^1], Held: map[uint32]uint64{}}
		for in := range uint32(len(at)) {
			if at[in] == at[port] && in != port && rng.IntN(3) > 0 {
				p.Held[in] = rng.Uint64N(40)
			}
		}
		all[Queue{port, uint8(rng.IntN(2))}] = p
	}
	return all, nodeOf
}

// TestStuckAgainstAllSubsets: the union of all sets of queues that hold themselves.
func TestStuckAgainstAllSubsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var some, none int
	for range 300 {
		all, nodeOf := randomPaused(rng)
		queues := slices.SortedFunc(maps.Keys(all), CompareQueues)
		holdsItself := func(subset uint) bool {
			for i, q := range queues {
				if subset>>i&1 == 0 {
					continue
				}
				var waitsFor, stays uint64
				for k, other := range queues {
					if subset>>k&1 == 0 {
						continue
					}
					for in, bytes := range all[other].Held {
						if nodeOf(in) == all[q].Node {
							stays += bytes
						}
						if in == all[q].Ingress && other.Class == q.Class {
							waitsFor += bytes
						}
					}
				}
				if waitsFor <= randomXON(all[q].Ingress, stays) {
					return false
				}
			}
			return true
		}
		var union uint
		for subset := range uint(1) << len(queues) {
			if holdsItself(subset) {
				union |= subset
			}
		}
		want := []Queue{}
		for i, q := range queues {
			if union>>i&1 == 1 {
				want = append(want, q)
			}
		}
		stuck := all.Stuck(nodeOf, randomXON)
		got := append([]Queue{}, slices.SortedFunc(maps.Keys(stuck), CompareQueues)...)
		qt.Assert(t, qt.DeepEquals(queueNames(got), queueNames(want)))
		qt.Assert(t, qt.Equals(bits.OnesCount(union) > 0, stuck.WaitGraph().Cycle() != nil)) // who is stuck waits for one who is
		if union != 0 {
			some++
		} else {
			none++
		}
	}
	qt.Check(t, qt.IsTrue(some > 30 && none > 30), qt.Commentf("%d with a deadlock, %d without", some, none))
}

func queueNames(queues []Queue) []string {
	names := []string{}
	for _, q := range queues {
		names = append(names, fmt.Sprintf("%d.%d", q.Port, q.Class))
	}
	return names
}

// TestCycleAgainstDistances: there is a cycle where a queue is at a distance of itself, by Floyd
// and Warshall, and it is as long as the least such distance.
func TestCycleAgainstDistances(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	lengths := map[int]int{}
	for range 300 {
		n := 1 + rng.IntN(9)
		const far = 1000
		distance := make([][]int, n)
		w := WaitGraph{}
		for i := range n {
			distance[i] = slices.Repeat([]int{far}, n)
			q := Queue{uint32(i), 3}
			w[q] = nil
			for k := range n {
				back := k < i && distance[k][i] == 1
				if k != i && rng.IntN(n) < 2 && !(back && rng.IntN(8) > 0) { // few cycles of two
					w[q] = append(w[q], Queue{uint32(k), 3})
					distance[i][k] = 1
				}
			}
		}
		for via := range n {
			for i := range n {
				for k := range n {
					distance[i][k] = min(distance[i][k], distance[i][via]+distance[via][k])
				}
			}
		}
		shortest := far
		for i := range n {
			shortest = min(shortest, distance[i][i])
		}
		cycle := w.Cycle()
		lengths[len(cycle)]++
		if shortest == far {
			qt.Assert(t, qt.HasLen(cycle, 0))
			continue
		}
		qt.Assert(t, qt.HasLen(cycle, shortest))
		for i, q := range cycle {
			qt.Assert(t, qt.IsTrue(slices.Contains(w[q], cycle[(i+1)%len(cycle)])))
		}
	}
	qt.Check(t, qt.IsTrue(lengths[0] > 10 && lengths[2] > 10 && lengths[3] > 10), qt.Commentf("%v", lengths))
}
