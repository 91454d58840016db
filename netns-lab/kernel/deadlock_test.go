// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/network"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// ringYAML is five switches in a ring, and flows that go two links along it: each link's packets wait for the next one's,
// all the way around.
const ringYAML = `
name: ring
topology: {file: ring.txt}
switch: {pfc: {xoff: 20KB}}
schemes: [pfc]
warmup: 0ms
duration: 1ms
flows: [{name: F, from: H0..H4, to: [H2, H3, H4, H0, H1]}]
files:
  ring.txt: |
    10 5 10
    5 6 7 8 9
    0 5 40Gbps 5us 0
    1 6 40Gbps 5us 0
    2 7 40Gbps 5us 0
    3 8 40Gbps 5us 0
    4 9 40Gbps 5us 0
    5 6 40Gbps 5us 0
    6 7 40Gbps 5us 0
    7 8 40Gbps 5us 0
    8 9 40Gbps 5us 0
    9 5 40Gbps 5us 0
`

func deadlockOf(t *testing.T, yaml string) *result.Run {
	t.Helper()
	run := runShort(t, yaml, "pfc")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid), qt.Commentf("%s", run.Manifest.Reasons))
	return run
}

// TestCyclicDependencyIsFound: nothing moves any more, and it is said who waits for whom.
func TestCyclicDependencyIsFound(t *testing.T) {
	run := deadlockOf(t, ringYAML)
	d := run.Manifest.Deadlock
	qt.Assert(t, qt.IsNotNil(d))
	qt.Check(t, qt.DeepEquals(d.Ports, []string{"S5->S6", "S6->S7", "S7->S8", "S8->S9", "S9->S5"}))
	qt.Check(t, qt.Equals(d.Behind, 5)) // the hosts' ports
	qt.Check(t, qt.Equals(d.Class, dataClass))
	for _, s := range run.Series {
		if s.Kind == result.KindPort && slices.Contains(d.Ports, s.Name) && s.TimeNs > d.SinceNs {
			qt.Check(t, qt.Equals(s.RateBps, 0))
		}
	}
	found, err := run.Measure(experiment.Measure{Metric: experiment.Deadlock})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(found[0].Value, 1.))
}

// TestAcyclicIsNoDeadlock: pauses everywhere, also on both directions of the same links, and all goes on.
func TestAcyclicIsNoDeadlock(t *testing.T) {
	for name, yaml := range map[string]string{
		"row": strings.Replace(ringYAML, "{file: ring.txt}", "{file: ring.txt, failed: S9-S5}", 1),
		"both ways": `
name: both-ways
topology: {kind: dumbbell, senders: 4, bottleneck: {rate: 100Gbps}}
switch: {pfc: {xoff: 20KB}}
schemes: [pfc]
warmup: 0ms
duration: 1ms
flows:
  - {name: F, from: A0..A3, to: B0}
  - {name: G, from: B0..B3, to: A0}
`,
	} {
		t.Run(name, func(t *testing.T) {
			run := deadlockOf(t, yaml)
			qt.Check(t, qt.IsNil(run.Manifest.Deadlock))
			paused := map[string]bool{}
			for _, e := range run.PFC {
				paused[network.PortName(e.To, e.From)] = true
			}
			qt.Check(t, qt.IsTrue(paused["S6->S7"] || paused["S0->S1"] && paused["S1->S0"]))
		})
	}
}

// The thresholds of the random networks below.
func randomXON(ingress uint32, stuckBytes uint64) uint64 {
	return uint64(ingress%4)*10 - min(uint64(ingress%4)*10, stuckBytes/8)
}

// randomPaused is a random network of queues, of which each node has some. Port p and p^1 are the ends of a link.
func randomPaused(rng *rand.Rand) (all pausedQueues, nodeOf func(uint32) int) {
	nodes := 2 + rng.IntN(4)
	var at []int // node of each port
	for range 2 + rng.IntN(3) {
		a := rng.IntN(nodes)
		at = append(at, a, (a+1+rng.IntN(nodes-1))%nodes)
	}
	nodeOf = func(port uint32) int { return at[port] }
	all = pausedQueues{}
	for port := range uint32(len(at)) {
		if rng.IntN(5) == 0 {
			continue
		}
		p := &pausedQueue{ingress: port ^ 1, node: at[port^1], held: map[uint32]uint64{}}
		for in := range uint32(len(at)) {
			if at[in] == at[port] && in != port && rng.IntN(3) > 0 {
				p.held[in] = rng.Uint64N(40)
			}
		}
		all[classQueue{port, uint8(rng.IntN(2))}] = p
	}
	return all, nodeOf
}

// TestStuckAgainstAllSubsets: the union of all sets of queues that hold themselves.
func TestStuckAgainstAllSubsets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var some, none int
	for range 300 {
		all, nodeOf := randomPaused(rng)
		queues := slices.SortedFunc(maps.Keys(all), compareQueues)
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
					for in, bytes := range all[other].held {
						if nodeOf(in) == all[q].node {
							stays += bytes
						}
						if in == all[q].ingress && other.class == q.class {
							waitsFor += bytes
						}
					}
				}
				if waitsFor <= randomXON(all[q].ingress, stays) {
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
		want := []classQueue{}
		for i, q := range queues {
			if union>>i&1 == 1 {
				want = append(want, q)
			}
		}
		stuck := all.stuck(nodeOf, randomXON)
		got := append([]classQueue{}, slices.SortedFunc(maps.Keys(stuck), compareQueues)...)
		qt.Assert(t, qt.DeepEquals(queueNames(got), queueNames(want)))
		qt.Assert(t, qt.Equals(bits.OnesCount(union) > 0, stuck.waits().cycle() != nil)) // who is stuck waits for one who is
		if union != 0 {
			some++
		} else {
			none++
		}
	}
	qt.Check(t, qt.IsTrue(some > 30 && none > 30), qt.Commentf("%d with a deadlock, %d without", some, none))
}

func queueNames(queues []classQueue) []string {
	names := []string{}
	for _, q := range queues {
		names = append(names, fmt.Sprintf("%d.%d", q.port, q.class))
	}
	return names
}

// TestCycleAgainstDistances: there is a cycle where a queue is at a distance of itself, by Floyd and Warshall, and it is as
// long as the least such distance.
func TestCycleAgainstDistances(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	lengths := map[int]int{}
	for range 300 {
		n := 1 + rng.IntN(9)
		const far = 1000
		distance := make([][]int, n)
		w := waits{}
		for i := range n {
			distance[i] = slices.Repeat([]int{far}, n)
			q := classQueue{uint32(i), 3}
			w[q] = nil
			for k := range n {
				back := k < i && distance[k][i] == 1
				if k != i && rng.IntN(n) < 2 && !(back && rng.IntN(8) > 0) { // few cycles of two
					w[q] = append(w[q], classQueue{uint32(k), 3})
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
		cycle := w.cycle()
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
