// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
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

// Of two trees every rank receives two vectors and sends two, and ACKs of two, as long as there are
// four ranks: an inner rank of one half has two vectors up and one down, and one down of the other.
// No time is less; more is what a chunk takes up all levels and down again, from hop to hop. Two
// children send faster than their parent takes it, so a window keeps PAUSE away, which would also
// stop what they send to others.
func TestTreesTakeTheirLowerBound(t *testing.T) {
	for _, ranks := range []int{4, 7, 8, 64, 512} {
		chunks, chunk := 1024, 4*starPayload
		if ranks >= 512 {
			chunks, chunk = 256, 2*starPayload // else it takes long
		}
		if ranks >= 512 && testing.Short() {
			continue
		}
		file := collectiveYAML("tree-all-reduce", ranks, 2*chunks*chunk, chunks) +
			"transport: {window: bdp}\nswitch: {buffer: 64MB}\n"
		got := jobTime(t, simulate(t, parse(t, file), "pfc"), "c")
		bound := 2 * 2 * float64(chunks*chunk) * 8e9 / starRate * (starFrame + 66) / starPayload
		most := bound + 2*math.Ceil(math.Log2(float64(ranks)))*stepNs(chunk)
		qt.Check(t, qt.IsTrue(got >= bound && got <= 1.01*most),
			qt.Commentf("%d ranks: %.0f ns, want %.0f to %.0f", ranks, got, bound, most))
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

// A GOAL schedule that hands a message on from rank to rank, each of which computes 5 us first:
// three messages and 10 us, where one message alone takes what the first run says.
func TestScheduleTakesItsMessages(t *testing.T) {
	const text = `
name: schedule
engine: sim
topology: {kind: star, hosts: 4, rate: 10Gbps, delay: 1us}
schemes: [pfc]
warmup: 0ms
duration: 5ms
trace: {file: job.goal}
expect:
  - {what: job, metric: job_time, flows: [t], min: 0ms}
files:
  job.goal: |
    num_ranks 4
`
	job := func(schedule string) float64 {
		indented := strings.ReplaceAll(strings.TrimSpace(schedule), "\n", "\n    ")
		run, e := runField(t, text+"    "+indented+"\n", "pfc")
		qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid))
		return measured(t, e, run)["job"][0]
	}
	alone := job("rank 0 { send 100000b to 1 }\nrank 1 { recv 100000b from 0 }")
	qt.Check(t, qt.IsTrue(alone > 80_000), qt.Commentf("%g ns for 80 us of data", alone))
	all := job(`rank 0 { send 100000b to 1 }
rank 1 { r: recv 100000b from 0 c: calc 5000 c requires r s: send 100000b to 2 s requires c }
rank 2 { r: recv 100000b from 1 c: calc 5000 c requires r s: send 100000b to 3 s requires c }
rank 3 { recv 100000b from 2 }`)
	qt.Check(t, qt.IsTrue(math.Abs(all-3*alone-10_000) < 200), // an ACK's time or so
		qt.Commentf("%g ns, one message %g", all, alone))
}
