// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// In any interval in which two classes always have packets, what they were served, each over its
// quantum, differs by less than 1 + the longest packet over each quantum (Shreedhar and Varghese).
func TestDeficitRoundRobinIsFair(t *testing.T) {
	e := parse(t, fmt.Sprintf(twoClasses, "{priority: 0, weight: 7}, {priority: 1, weight: 3}", ""))
	const longest = 1500
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := newRounds(e, newRanks(e.DataClasses()))
		head := map[int]int64{}
		next := func(class int) { head[class] = 1 + r.Int64N(longest) }
		a, b := 3, 2 // the ranks of priorities 0 and 1
		next(a)
		next(b)
		var served [classes]float64 // over its quantum
		low, high := 0.0, 0.0
		for range 5000 {
			class := c.choose(1<<a|1<<b, func(class int) int64 { return head[class] })
			served[class] += float64(head[class]) / float64(c.quantum[class])
			next(class)
			low, high = min(low, served[a]-served[b]), max(high, served[a]-served[b])
		}
		bound := 1 + longest/float64(c.quantum[a]) + longest/float64(c.quantum[b])
		qt.Assert(t, qt.IsTrue(high-low <= bound), qt.Commentf("%g to %g, bound %g", low, high,
			bound))
		qt.Assert(t, qt.IsTrue(served[a] > 100))
	}
}

// A class that was idle has saved nothing: it gets its share from then on, and no more.
func TestIdleClassSavesNothing(t *testing.T) {
	e := parse(t, fmt.Sprintf(twoClasses, "{priority: 0, weight: 1}, {priority: 1, weight: 1}", ""))
	c := newRounds(e, newRanks(e.DataClasses()))
	cost := func(int) int64 { return 1000 }
	for range 100 {
		qt.Assert(t, qt.Equals(c.choose(1<<3, cost), 3))
	}
	count := [classes]int{}
	for range 100 {
		count[c.choose(1<<3|1<<2, cost)]++
	}
	qt.Check(t, qt.Equals(count[3], 50))
	qt.Check(t, qt.Equals(count[2], 50))
}

const twoClasses = `
name: classes
engine: sim
topology: {kind: star, hosts: 2, rate: 10Gbps, delay: 1us}
frame: 1500B
schemes: [pfc]
warmup: 0ms
duration: 20ms
switch: {buffer: 4MB, pfc: {xoff: 200KB}, classes: [%s]%s}
flows:
  - {name: F0, from: H0, to: R0, priority: 0}
  - {name: F1, from: H1, to: R0, priority: 1}
`

// Shares of a link are those of the weights, whether PFC or drops hold the senders back.
func TestWeightsDivideALink(t *testing.T) {
	for _, tc := range []struct {
		name, classes, more string
		share               float64 // of F0
	}{
		{"strict", "{priority: 1, lossy: true, alpha: 1}", "", 1},
		{"dwrr", "{priority: 0, weight: 3}, {priority: 1, weight: 1}", "", 0.75},
		{"reverse", "{priority: 0, weight: 1}, {priority: 1, weight: 4}", "", 0.2},
		{"wrr", "{priority: 0, weight: 2}, {priority: 1, weight: 1}", ", schedule: wrr", 2. / 3},
		{"lossy", "{priority: 0, weight: 15}, {priority: 1, weight: 14, lossy: true, alpha: 1}", "",
			15. / 29},
		{"weight of one", "{priority: 0, weight: 5}", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run, _ := runField(t, fmt.Sprintf(twoClasses, tc.classes, tc.more), "pfc")
			qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
				qt.Commentf("%v", run.Manifest.Reasons))
			var port result.Port
			for _, p := range run.Ports {
				if p.Name == "S0->R0" {
					port = p
				}
			}
			f0, f1 := received(run, "F0", 0, 20e6), received(run, "F1", 0, 20e6)
			share := float64(f0) / float64(f0+f1)
			// 20 ms are 16667 frames: a round, and what a class has sent before the other began
			qt.Check(t, qt.IsTrue(math.Abs(share-tc.share) < 0.002), qt.Commentf("%g", share))
			qt.Check(t, qt.IsTrue(port.SentBytes > 24_900_000))
		})
	}
}

// Queues of lossy classes come to alpha / (1 + n alpha) of the buffer, n of them (Choudhury and
// Hahne, 1998, equation 3).
func TestDynamicThresholdOfLossyQueues(t *testing.T) {
	const text = `
name: thresholds
engine: sim
topology: {kind: star, hosts: 12, rate: 10Gbps, delay: 1us}
frame: 1500B
schemes: [pfc]
warmup: 0ms
duration: 5ms
switch: {buffer: %dB, pfc: {off: %t}, classes: [{priority: 0, lossy: true, alpha: %g}]}
flows:
`
	const buffer = 2_000_000
	for _, alpha := range []float64{0.25, 0.5, 1, 4} {
		for n := 1; n <= 4; n++ {
			for _, off := range []bool{false, true} {
				file := fmt.Sprintf(text, buffer, off, alpha)
				for i := range n {
					file += fmt.Sprintf("  - {name: F%d, from: [H%d, H%d], to: H%d}\n", i, 3*i,
						3*i+1, 3*i+2)
				}
				run, _ := runField(t, file, "pfc")
				qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid))
				want := alpha / (1 + float64(n)*alpha) * buffer
				for i := range n {
					for _, p := range run.Ports {
						if p.Name != fmt.Sprintf("S0->H%d", 3*i+2) {
							continue
						}
						got := float64(p.QueueMaxBytes)
						// each queue's packet moves all thresholds by alpha packets
						bound := (1 + float64(n)*alpha) * 1500
						qt.Check(t, qt.IsTrue(math.Abs(got-want) <= bound), qt.Commentf(
							"alpha %g, %d queues: %g, want %g", alpha, n, got, want))
					}
				}
			}
		}
	}
}

// A storm of PAUSE stops the lossless class of an adapter, and not its lossy class: PFC is off for
// that, whatever the frame says.
func TestPauseOfOneClassDoesNotStopTheOther(t *testing.T) {
	const text = `
name: storm
engine: sim
topology: {kind: star, hosts: 1, rate: 10Gbps, delay: 1us}
schemes: [pfc]
warmup: 0ms
duration: 10ms
switch: {buffer: 4MB, pfc: {xoff: 200KB}, classes: [{priority: 1, lossy: true, weight: 1},
  {priority: 0, weight: 1}]}
storms: [{hosts: R0, at: 2ms}]
flows:
  - {name: F0, from: H0, to: R0, priority: 0}
  - {name: F1, from: H0, to: R0, priority: 1}
`
	run, _ := runField(t, text, "pfc")
	// half of the link, as they share it; then nothing, and what its host gives the other
	qt.Check(t, qt.Equals(received(run, "F0", 3e6, 10e6), 0))
	qt.Check(t, qt.IsTrue(received(run, "F0", 0, 2e6) > 1_000_000))
	qt.Check(t, qt.IsTrue(received(run, "F1", 3e6, 10e6) > 8_000_000))
}

// What makes no sense is refused by its line.
func TestClassesThatAreNone(t *testing.T) {
	for _, tc := range []struct{ classes, more, want string }{
		{"{weight: 1}", "", `.*"priority" is missing.*`},
		{"{priority: 0, alpha: 1}", "", ".*a lossless class drops nothing.*"},
		{"{priority: 0, lossy: true, alpha: 100}", "", ".*out of range.*"},
		{"{priority: 0, weight: 101}", "", ".*101 is out of range.*"},
		{"{priority: 2, weight: 1}", "", ".*no flow has priority 2.*"},
		{"{priority: 0, weight: 1}, {priority: 0}", "", ".*priority 0 has two classes.*"},
		{"{priority: 0, weight: 1}", ", schedule: fair", ".*schedule.*"},
		{"{priority: 0, lossy: true}", ", schedule: wrr", ".*no class has a weight.*"},
		{"{priority: 0, weight: 1}", ", flow_control: cbfc", ".*CBFC lends credits.*"},
	} {
		_, err := experiment.Parse("f.yaml", fmt.Appendf(nil, twoClasses, tc.classes, tc.more))
		qt.Check(t, qt.ErrorMatches(err, "(?s)f.yaml:9:"+tc.want))
	}
}
