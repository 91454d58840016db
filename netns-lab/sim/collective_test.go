// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// Of the star in these tests.
const (
	starFrame   = 4160
	starPayload = starFrame - 66 // headers of Ethernet, IPv4 and TCP with time stamps
	starRate    = 400e9
	starDelayNs = 500
)

// collectiveYAML has the collective on a star. It is in the form of HPCC's simulator: our own kind
// has fewer hosts.
func collectiveYAML(kind string, ranks, size, chunks int) string {
	links := ""
	for host := range ranks {
		links += fmt.Sprintf("%d %d 400Gbps 0.0005ms 0\\n", host, ranks)
	}
	star := fmt.Sprintf("%d 1 %d\\n%d\\n%s", ranks+1, ranks, ranks, links)
	return fmt.Sprintf(`name: collective
topology: {file: star.txt}
files: {star.txt: "%s"}
schemes: [pfc]
engine: sim
warmup: 0ms
duration: 1s
sample: 10ms
frame: 4160B
collective: {kind: %s, ranks: H0..H%d, size: %dB, chunks: %d}
`, star, kind, ranks-1, size, chunks)
}

func jobTime(t *testing.T, run *result.Run, flows ...string) float64 {
	t.Helper()
	values, err := run.Measure(experiment.Measure{Metric: experiment.JobTime, Flows: flows})
	qt.Assert(t, qt.IsNil(err))
	return values[0].Value
}

// stepNs is how long a step takes in which each rank sends a message to one other and receives one:
// data frames and the ACKs of what comes the other way share a link, and a message arrives two
// delays and, at the switch, a frame later than its bytes take.
func stepNs(message int) float64 {
	frames := (message + starPayload - 1) / starPayload
	last := message - (frames-1)*starPayload + 66
	bytes := float64((frames-1)*(starFrame+66) + last)
	return bytes*8e9/starRate + 2*starDelayNs + float64(min(last, starFrame))*8e9/starRate
}

// Collectives take as long as the formula of their algorithm says: steps times the time of a step.
func TestCollectivesTakeTheirLowerBound(t *testing.T) {
	perRank := map[string]func(n int) int{ // steps
		"ring-all-reduce": func(n int) int { return 2 * (n - 1) },
		"reduce-scatter":  func(n int) int { return n - 1 },
		"all-gather":      func(n int) int { return n - 1 },
		"all-to-all":      func(n int) int { return n - 1 },
	}
	for _, ranks := range []int{2, 8, 64, 512} {
		for kind, steps := range perRank {
			message := 40 * starPayload
			if ranks >= 512 {
				message = 2 * starPayload // else it takes long
			}
			if ranks >= 512 && testing.Short() {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", kind, ranks), func(t *testing.T) {
				run := simulate(t, parse(t, collectiveYAML(kind, ranks, ranks*message, 1)), "pfc")
				got, want := jobTime(t, run, "c"), float64(steps(ranks))*stepNs(message)
				qt.Check(t, qt.IsTrue(math.Abs(got/want-1) < 0.01),
					qt.Commentf("%.0f ns, want %.0f", got, want))
			})
		}
	}
}

// The case of astra-sim's and SimAI's users: 14 steps of 12.5 MB. 3.5 ms are the data alone.
func TestRingOfEightRanks(t *testing.T) {
	run := simulate(t, parse(t, collectiveYAML("ring-all-reduce", 8, 100e6, 1)), "pfc")
	const withHeaders = 3.5e6 * (starFrame + 66) / starPayload // and those of ACKs
	got := jobTime(t, run, "c")
	qt.Check(t, qt.IsTrue(math.Abs(got/withHeaders-1) < 0.005), qt.Commentf("%.0f ns", got))
}

// In a tree of three ranks the root receives two vectors, and ACKs of two. From seven on an inner
// rank receives three: of two children, and of its parent; their shares of its link are even, while
// the least time would need others.
func TestTreeIsBoundByItsInnerRanks(t *testing.T) {
	const chunks, chunk = 256, 16 * starPayload
	for _, tc := range []struct {
		ranks         int
		vectors, most float64
	}{{3, 2, 1.01}, {7, 3, 1.5}, {64, 3, 1.5}} {
		file := collectiveYAML("tree-all-reduce", tc.ranks, chunks*chunk, chunks)
		got := jobTime(t, simulate(t, parse(t, file), "pfc"), "c")
		bound := tc.vectors * float64(chunks*chunk) * 8e9 / starRate * (starFrame + 66) /
			starPayload
		qt.Check(t, qt.IsTrue(got >= bound && got <= tc.most*bound),
			qt.Commentf("%d ranks: %.0f ns, at least %.0f", tc.ranks, got, bound))
	}
}

// A straggler delays all ranks by what it is late, in each round, and computing adds up.
func TestStragglersAndRounds(t *testing.T) {
	yaml := collectiveYAML("ring-all-reduce", 4, 4*40*starPayload, 1)
	with := func(keys string) float64 {
		file := yaml[:len(yaml)-2] + keys + "}\n"
		return jobTime(t, simulate(t, parse(t, file), "pfc"), "c")
	}
	plain := with("")
	rounds := with(", rounds: 3")
	qt.Check(t, qt.IsTrue(math.Abs(rounds/(3*plain)-1) < 0.001), qt.Commentf("%.0f", rounds))
	computes := with(", rounds: 3, compute: 100us")
	// the first round starts the clock
	qt.Check(t, qt.IsTrue(math.Abs(computes-rounds-2*100e3) < 10), qt.Commentf("%.0f", computes))
	late := with(", rounds: 3, compute: 100us, stragglers: [{host: H2, late: 50us}]")
	qt.Check(t, qt.IsTrue(late > computes+3*40e3 && late <= computes+3*50e3),
		qt.Commentf("%.0f, without %.0f", late, computes))
}

// A flow starts when the last byte of all that it waits for has arrived, and a delay has passed.
func TestFlowsAfterOthers(t *testing.T) {
	run := simulate(t, parse(t, `name: after
topology: {kind: star, hosts: 6, rate: 100Gbps, delay: 1us}
schemes: [pfc]
engine: sim
warmup: 0ms
duration: 1ms
flows:
  - {name: a, from: [H0, H1], to: [H2, H3], size: 100KB, start: 0ms}
  - {name: b, from: H2, to: H4, size: 50KB, start: 100us}
  - {name: c, from: H3, to: H5, size: 50KB, after: [a + 7us, b]}
  - {name: d, from: H5, to: H0, size: 10KB, after: c-x + 0us}
  - {name: c-x, from: H4, to: H0, size: 10KB, after: c + 300ns}
  - {name: never, from: H4, to: H1, size: 10KB, after: d + 950us}
`), "pfc")
	flows := map[string]result.Flow{}
	for _, f := range run.Flows {
		flows[f.Name] = f
	}
	end := func(name string) int64 { return *flows[name].EndNs }
	last := max(end("a-H0-0")+7000, end("a-H1-0")+7000, end("b"))
	qt.Check(t, qt.Equals(flows["c"].StartNs, last))
	qt.Check(t, qt.Equals(flows["c-x"].StartNs, end("c")+300))
	qt.Check(t, qt.Equals(flows["d"].StartNs, end("c-x")))
	qt.Check(t, qt.IsNil(flows["never"].EndNs))
	qt.Check(t, qt.Equals(flows["never"].StartNs, 1e6))
	_, err := run.Measure(experiment.Measure{Metric: experiment.JobTime,
		Flows: []string{"a", "never"}})
	qt.Check(t, qt.ErrorIs(err, result.ErrNotReached))
}
