// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// These are inputs that users of the field's simulators asked about in public, written anew, with
// what arithmetic or the field's own simulator expects of them.

// starFiles returns a topology file of hosts at one switch, and a flow file, indented for files:.
// The switch is the last node, or the first of all.
func starFiles(hosts int, switchFirst bool, link string, flows []string) string {
	switchID, first := hosts, 0
	if switchFirst {
		switchID, first = 0, 1
	}
	lines := []string{fmt.Sprintf("%d 1 %d", hosts+1, hosts), fmt.Sprint(switchID)}
	for i := range hosts {
		lines = append(lines, fmt.Sprintf("%d %d %s", first+i, switchID, link))
	}
	indent := func(lines []string) string { return strings.Join(lines, "\n    ") }
	return "topology: {file: topology.txt}\nfiles:\n  topology.txt: |\n    " + indent(lines) +
		fmt.Sprintf("\n  flow.txt: |\n    %d\n    ", len(flows)) + indent(flows) + "\n"
}

// measured returns what the expectations of a file measured of a run, by their names.
func measured(t *testing.T, e *experiment.Experiment, run *result.Run) map[string][]float64 {
	t.Helper()
	values := map[string][]float64{}
	for _, o := range result.Evaluate(e, run) {
		qt.Assert(t, qt.IsNil(o.Err), qt.Commentf("%s", o.Expect.What))
		for _, v := range o.Measured {
			values[o.Expect.What] = append(values[o.Expect.What], v.Value)
		}
	}
	return values
}

// lastNs returns when the last flow of a run completed, and when the first.
func lastNs(t *testing.T, run *result.Run) (first, last int64) {
	t.Helper()
	qt.Assert(t, qt.IsTrue(len(run.Completions) > 0))
	first = math.MaxInt64
	for _, c := range run.Completions {
		qt.Assert(t, qt.IsNotNil(c.FCTNs), qt.Commentf("%s", c.Flow))
		first, last = min(first, *c.FCTNs), max(last, *c.FCTNs)
	}
	return first, last
}

// Five hosts send 56 MB to one at 100 Gbit/s, node 0 is the switch (alibaba-edu/
// High-Precision-Congestion-Control 50). 934 B are in a frame of 1000 B: 59,960 packets with
// headers of 66 B, and 4 us. No control can be faster.
func TestFiveFlowsOfOneStar(t *testing.T) {
	var flows []string
	for i, size := range []int{20_000_000, 20_000_000, 10_000_000, 5_000_000, 1_000_000} {
		flows = append(flows, fmt.Sprintf("%d 1 3 100 %d 2", i+2, size))
	}
	files := starFiles(6, true, "100Gbps 0.001ms 0", flows)
	for _, name := range []string{"pfc", "dcqcn", "pcn", "dctcp_rate", "hpcc"} {
		run := simulate(t, parse(t, fmt.Sprintf("name: star-five\nengine: sim\nschemes: [%s]\n"+
			"trace: {file: flow.txt}\nframe: 1000B\nwarmup: 0ms\nduration: 40ms\n"+
			"dcqcn: {set: hpcc}\nhpcc: {set: hpcc}\n%s", name, files)), name)
		_, last := lastNs(t, run)
		const link = (56_000_000 + 59_960*66) * 8 / 100
		qt.Check(t, qt.IsTrue(last >= link+4000), qt.Commentf("%s: %d ns", name, last))
		if name == "pfc" {
			qt.Check(t, qt.IsTrue(last < link+4000+200), qt.Commentf("%d ns", last))
		}
	}
}

// With a window nobody is paused, however many send; without, 40 senders are paused and 3 are not
// (alibaba-edu/High-Precision-Congestion-Control 14 and 40: an empty pfc.txt).
func TestWindowSavesPause(t *testing.T) {
	const text = `
name: window
engine: sim
schemes: [dcqcn]
dcqcn: {set: hpcc}
trace: {file: flow.txt}
warmup: 0ms
duration: 80ms
sample: 1ms
frame: 1048B
switch: {buffer: 16MB, marking_by_rate: true, pfc: {dynamic: {alpha: 1/8, by_rate: true,
  headroom: 3, reserve: 4KB, xon_offset: 3KB}}}
marking: {kmin: 400KB, kmax: 1600KB, pmax: 0.2}
%s
%s
`
	for _, c := range []struct {
		senders int
		window  bool
		paused  bool
	}{{3, false, false}, {3, true, false}, {40, false, true}, {40, true, false}} {
		var flows []string
		for i := range c.senders {
			flows = append(flows, fmt.Sprintf("%d 0 3 100 20000000 2.0", i+1))
		}
		transport := ""
		if c.window {
			transport = "transport: {window: bdp, scale_window: true}"
		}
		run := simulate(t, parse(t, fmt.Sprintf(text, transport,
			starFiles(41, false, "100Gbps 0.001ms 0", flows))), "dcqcn")
		about := qt.Commentf("%+v: %d of PAUSE", c, len(run.PFC))
		qt.Check(t, qt.Equals(len(run.PFC) > 0, c.paused), about)
		// 982 of 1048 bytes are data
		_, last := lastNs(t, run)
		ideal := float64(c.senders) * 20e6 / 982 * 1048 * 8 / 100
		qt.Check(t, qt.IsTrue(float64(last) >= ideal), about)
		if c.senders == 40 { // 3 flows do not fill the link after their first cuts
			qt.Check(t, qt.IsTrue(float64(last) < 1.06*ideal), qt.Commentf("%d ns", last))
		}
	}
}

// PAUSE halves a link between the ports by which packets come, not between flows: DCQCN's paper,
// Fig. 3. One flow from a port of its own gets half, two from another port a quarter each.
func TestPFCIsUnfair(t *testing.T) {
	run, e := runField(t, `
name: unfair
engine: sim
topology: {kind: fig1, burst_hosts: 1, rate: 40Gbps, delay: 1us}
schemes: [pfc]
warmup: 1ms
duration: 20ms
flows:
  - {name: far0, from: H0, to: R1, start: 0ms}
  - {name: far1, from: H1, to: R1, start: 0ms}
  - {name: near, from: H2, to: R1, start: 0ms}
expect:
  - {what: rates, metric: mean_rate, flows: [far0, far1, near], from: 5ms, min: 0bps}
`, "pfc")
	for i, want := range []float64{10e9, 10e9, 20e9} {
		got := measured(t, e, run)["rates"][i]
		qt.Check(t, qt.IsTrue(math.Abs(got/want-1) < 0.01), qt.Commentf("flow %d: %g", i, got))
	}
}

// runField runs a scheme of a file.
func runField(t *testing.T, text, scheme string) (*result.Run, *experiment.Experiment) {
	t.Helper()
	e := parse(t, text)
	return simulate(t, e, scheme), e
}

// Packets of a burst queue in front of a slow link, and leave when it is fast: as sonic-net/
// sonic-mgmt 2137 tests switches. Marks are set as a packet leaves, by what is behind it.
func TestMarksOfAQueue(t *testing.T) {
	const text = `
name: marks
engine: sim
topology: {kind: star, hosts: 1, rate: 10Gbps, delay: 1us}
schemes: [dcqcn]
dcqcn: {set: hpcc}
warmup: 0ms
duration: 60ms
frame: 1000B
seed: %d
switch: {buffer: 32MB, pfc: {off: true}}
marking: {kmin: %s, kmax: %s, pmax: %g}
links: [{at: 0ms, link: S0->R0, rate: 1Mbps}, {at: 22ms, link: S0->R0, rate: 10Gbps}]
bursts: [{name: test, from: H0, to: R0, at: 1ms, size: %dB, rate: 1Gbps}]
`
	marks := func(seed int, kmin, kmax string, pmax float64, packets int) float64 {
		run, _ := runField(t, fmt.Sprintf(text, seed, kmin, kmax, pmax, packets*958), "dcqcn")
		qt.Assert(t, qt.HasLen(run.Flows, 1))
		return float64(run.Flows[0].MarkedPackets)
	}
	// The first packet leaves at once, in 8 ms, and the second with the others behind it: 106.
	// Exactly 100 KB is not more than the threshold.
	qt.Check(t, qt.Equals(marks(1, "100KB", "100KB", 1, 108), 6))

	// Of 2008 packets the second and third leave before all have come, with 998 and 1997 behind.
	expected := func(pmax float64) (mean, variance float64) {
		behind := []float64{998, 1997}
		for n := range 2005 {
			behind = append(behind, float64(n))
		}
		for _, n := range behind {
			p := 0.
			switch {
			case n > 2000:
				p = 1
			case n > 500:
				p = pmax * (n - 500) / 1500
			}
			mean, variance = mean+p, variance+p*(1-p)
		}
		return mean, variance
	}
	for pmax, seeds := range map[float64]int{0.05: 40, 1: 10} {
		mean, variance := expected(pmax)
		sum := 0.
		for seed := range seeds {
			sum += marks(seed+1, "500KB", "2000KB", pmax, 2008)
		}
		n := float64(seeds)
		qt.Check(t, qt.IsTrue(math.Abs(sum-n*mean) < 5*math.Sqrt(n*variance)),
			qt.Commentf("pmax %g: %g of %g", pmax, sum/n, mean))
	}
}

// A host sends 1000 B to each of many at once: two frames each, 934 B and 66 B of data, at
// 40 Gbit/s (bobzhuyb/ns3-rdma 18, which crashed from 129 hosts on).
func TestOneHostToMany(t *testing.T) {
	for _, hosts := range []int{127, 200} {
		var flows []string
		for i := range hosts {
			flows = append(flows, fmt.Sprintf("0 %d 3 1 2.0 9.5", i+1))
		}
		run := simulate(t, parse(t, "name: many\nengine: sim\nschemes: [dcqcn]\n"+
			"dcqcn: {set: ns3-rdma}\ntrace: {file: flow.txt, format: ns3-rdma}\nframe: 1000B\n"+
			"warmup: 0ms\nduration: 10ms\n"+
			starFiles(hosts+1, false, "40Gbps 0.001ms 0", flows)), "dcqcn")
		_, last := lastNs(t, run)
		// All frames leave one after the other, 200 ns and 26.4 ns long; the last crosses the
		// second link, and its ACK of 66 bytes comes back: 4 links of 1 us.
		want := float64(hosts)*(1000+132)*8/40 + 132*8/40. + 4000 + 2*66*8/40.
		qt.Check(t, qt.IsTrue(math.Abs(float64(last)-want) < 30), qt.Commentf("%d: %d ns, want %g",
			hosts, last, want))
	}
}

// ringOfSwitches has flows that each take two links of a ring.
const ringOfSwitches = `
name: ring
engine: sim
topology: {file: topology.txt}
schemes: [pfc]
warmup: 0ms
duration: 10ms
switch: {pfc: {xoff: 40KB}}
flows:
  - {name: a, from: H0, to: H2, start: 0ms}
  - {name: b, from: H1, to: H3, start: 0ms}
  - {name: c, from: H2, to: H4, start: 0ms}
  - {name: d, from: H3, to: H0, start: 0ms}
  - {name: e, from: H4, to: H1, start: 0ms}
files:
  topology.txt: |
    10 5 10
    5 6 7 8 9
    0 5 40Gbps 0.001ms 0
    1 6 40Gbps 0.001ms 0
    2 7 40Gbps 0.001ms 0
    3 8 40Gbps 0.001ms 0
    4 9 40Gbps 0.001ms 0
    5 6 40Gbps 0.001ms 0
    6 7 40Gbps 0.001ms 0
    7 8 40Gbps 0.001ms 0
    8 9 40Gbps 0.001ms 0
    9 5 40Gbps 0.001ms 0
expect:
  - {what: rates, metric: mean_rate, flows: [a, b, c, d, e], from: 8ms, min: 0bps}
`

// Switches in a ring whose flows each take two of its links: all wait for each other (Azure, SONiC:
// "PFC cyclic buffer dependency"). It is found, with the five ports.
func TestRingOfSwitchesLocks(t *testing.T) {
	run, e := runField(t, ringOfSwitches, "pfc")
	qt.Assert(t, qt.IsNotNil(run.Manifest.Deadlock))
	qt.Check(t, qt.DeepEquals(run.Manifest.Deadlock.Ports,
		[]string{"S5->S6", "S6->S7", "S7->S8", "S8->S9", "S9->S5"}))
	qt.Check(t, qt.DeepEquals(measured(t, e, run)["rates"], make([]float64, 5)))
}

// PFC's watchdog breaks the deadlock. With "forward" all flows go on. With "drop" those do whose
// packets it has not dropped; the others wait for their timers, which are longer than the run.
func TestWatchdogBreaksDeadlock(t *testing.T) {
	for action, least := range map[string]int{"drop": 1, "forward": 5} {
		text := strings.Replace(ringOfSwitches, "{xoff: 40KB}", "{xoff: 40KB, watchdog: "+
			"{detection: 1ms, poll: 500us, restoration: 1ms, action: "+action+"}}", 1)
		run, e := runField(t, text, "pfc")
		d := run.Manifest.Deadlock
		qt.Assert(t, qt.IsNotNil(d), qt.Commentf("%s", action))
		qt.Check(t, qt.IsTrue(d.BrokenNs > d.SinceNs && d.BrokenNs < 4_000_000),
			qt.Commentf("%s: from %d to %d ns", action, d.SinceNs, d.BrokenNs))
		qt.Check(t, qt.IsTrue(len(run.Watchdog) > 0))
		var going int
		for _, rate := range measured(t, e, run)["rates"] {
			if rate > 1e9 {
				going++
			}
		}
		qt.Check(t, qt.IsTrue(going >= least), qt.Commentf("%s: %d flows go on", action, going))
	}
}

// A message over a link that loses one packet in 256 ("RDMA over Commodity Ethernet at Scale",
// section 4.1): to go back to its first packet is a livelock, to go back to the lost one costs a
// round trip for each loss, and SACK only the packet.
func TestLivelock(t *testing.T) {
	const text = `
name: livelock
engine: sim
topology: {file: topology.txt}
trace: {file: flow.txt}
schemes: [pfc]
warmup: 0ms
duration: 100ms
sample: 1ms
frame: 1048B
transport: {recovery: %s}
files:
  topology.txt: |
    3 1 2
    2
    0 2 40Gbps 0.001ms 0.00390625
    1 2 40Gbps 0.001ms 0
  flow.txt: |
    1
    0 1 3 100 %d 2.0
`
	sent := func(recovery string, size, seed uint64) *result.Run {
		e, err := parse(t, fmt.Sprintf(text, recovery, size)).With(
			experiment.Changes{Seed: &seed})
		qt.Assert(t, qt.IsNil(err))
		return simulate(t, e, "pfc")
	}
	const size = 40_000_000
	packets := math.Ceil(size / 982.)
	alone := packets*1048*8/40 + 4236
	// With SACK a loss takes the time of a frame. To go back takes all the time from the lost
	// frame's start to that of its copy: the frame itself, the next one on both links, whose
	// arrival asks for the copy, the NACK on both, four delays of 1 us, and what is left of the
	// frame that is being sent when the NACK comes: at most all of it. If the second copy is lost
	// too, or the NACK that asks for it, the receiver asks again in 500 us: 1.2 times in a run,
	// more than 4 times in 1% of them. A median knows nothing of runs whose last packet is lost and
	// waits for a timeout.
	const frameNs, ackNs = 1048 * 8 / 40., 66 * 8 / 40.
	const backNs = 3*frameNs + 2*ackNs + 4000
	lost := packets / 256
	for recovery, lossNs := range map[string][2]float64{
		"sack": {frameNs, frameNs}, "go-back-n": {backNs, backNs + frameNs},
	} {
		var times []float64
		for seed := range uint64(16) {
			_, last := lastNs(t, sent(recovery, size, seed+1))
			times = append(times, float64(last))
		}
		slices.Sort(times)
		again := 4 * 500_000.
		if recovery == "sack" {
			again = 0
		}
		spread := 5 * math.Sqrt(lost)
		least, most := alone+(lost-spread)*lossNs[0], alone+(lost+spread)*lossNs[1]+again
		qt.Check(t, qt.IsTrue(times[0] >= least), qt.Commentf("%s: %g, least %g", recovery,
			times[0], least))
		qt.Check(t, qt.IsTrue(times[8] <= most), qt.Commentf("%s: %g, most %g", recovery,
			times[8], most))
	}
	// 4 MB are 4074 packets: all arrive with a probability of 1.2e-7.
	run := sent("go-back-0", 4_000_000, 1)
	qt.Check(t, qt.IsNil(run.Completions[0].FCTNs))
	qt.Check(t, qt.IsTrue(run.Flows[0].ReceivedBytes < 4_000_000))
	busy := 0.
	for _, p := range run.Ports {
		if p.Name == "S2->H1" {
			busy = float64(p.SentBytes) * 8 / 40e9 / 0.1
		}
	}
	qt.Check(t, qt.IsTrue(busy > 0.9), qt.Commentf("%g of the link", busy))
	// 300 packets get through in a while, and each counts once, however often it was sent.
	again := 0
	for seed := range uint64(8) {
		f := sent("go-back-0", 300*982, seed+1).Flows[0]
		qt.Check(t, qt.Equals(f.ReceivedBytes, 300*982))
		if f.Retransmissions > 0 {
			again++
		}
	}
	qt.Check(t, qt.IsTrue(again > 0))
	// Where nothing is lost it is as fast as all others.
	_, last := lastNs(t, simulate(t, parse(t, strings.Replace(fmt.Sprintf(text, "go-back-0", size),
		"0.00390625", "0", 1)), "pfc"))
	qt.Check(t, qt.IsTrue(math.Abs(float64(last)-alone) < 500), qt.Commentf("%d ns", last))
}

// An incast on 256 hosts, as inet-tub/ns3-datacenter has it: the first line counts ToRs, rates are
// in bit/s with a fraction (issue 8). Flows come a millisecond after a long one. HPCC with 10 more
// is at rest where R = R eta/U + R_AI, so U = eta + N R_AI/C, and noise in U only lowers rates.
// HPCC's ns-3 needs 8.31 ms for 11 flows of 2 MB in frames of 1048 bytes, with their first round
// trip and their last: the link is no less busy meanwhile. As long as rates are below the link's, a
// flow has no more than a frame in the queue, and one of them is being sent. 96 flows that send at
// line rate for a round trip do not fit behind a PAUSE without headroom in 4 MB: drops make a
// lossless run invalid. Those of HPCC do, which have a window.
func TestIncastOfPowerTCP(t *testing.T) {
	const text = `
name: powertcp
engine: sim
trace: {file: flow.txt}
schemes: [%s]
hpcc: {set: hpcc}
warmup: 0ms
duration: 6ms
frame: 1048B
switch: {buffer: 4MB, pfc: {dynamic: {alpha: 1/8}}}
expect:
  - {what: used, metric: utilisation, ports: [S256->H16], from: 3ms, min: 0}
  - {what: queue, metric: queue_mean, ports: [S256->H16], from: 3ms, min: 0B}
%s
`
	for _, c := range []struct {
		scheme  string
		senders int
		fits    bool
	}{{"hpcc", 10, true}, {"pcn", 10, true}, {"hpcc", 96, true}, {"pcn", 96, false}} {
		flows := []string{"0 16 3 10000 1000000000000 0.130"}
		for i := range c.senders {
			from := i + 1
			if from >= 16 {
				from++ // H16 receives
			}
			flows = append(flows,
				fmt.Sprintf("%d 16 3 %d 1000000000000 0.131", from, 10001+i))
		}
		files := starFiles(256, false, "25000000000.0 1us 0", flows)
		files = strings.Replace(files, "257 1 256", "257 1 1 256", 1)
		run, e := runField(t, fmt.Sprintf(text, c.scheme, files), c.scheme)
		qt.Check(t, qt.Equals(run.Manifest.Verdict == result.Valid, c.fits),
			qt.Commentf("%+v: %v", c, run.Manifest.Reasons))
		if c.scheme == "hpcc" && c.senders == 10 {
			got := measured(t, e, run)
			used, queue := got["used"][0], got["queue"][0]
			const flows, rateAI, link = 11, 10e6, 25e9
			const busyInNS3 = flows * 2e6 / 1000 * 1048 * 8 / link / 8.31e-3
			qt.Check(t, qt.IsTrue(used > 0.97*busyInNS3 && used <= 0.95+flows*rateAI/link),
				qt.Commentf("%g", used))
			qt.Check(t, qt.IsTrue(queue < (flows-1)*1048), qt.Commentf("%g", queue))
		}
	}
}

// What fabric.Check finds in appendix-a: four senders without a control fill its 32 MB before PAUSE
// has stopped them all, at 8 MB each. What comes after a PAUSE on a link of 40 Gbit/s and 5 us is
// 52 KB, so 32.3 MB are enough.
func TestFoundDropsAreReal(t *testing.T) {
	const text = `
name: appendix
engine: sim
topology: {kind: dumbbell, senders: 4, rate: 40Gbps, delay: 5us}
frame: 1000B
switch: {buffer: %s, pfc: {xoff: 8MB}}
schemes: [pfc]
warmup: 0ms
duration: 6ms
flows:
  - {name: F, from: A0..A3, to: B0..B3, start: 0ms}
`
	for buffer, drops := range map[string]bool{"32MB": true, "32.3MB": false} {
		run, _ := runField(t, fmt.Sprintf(text, buffer), "pfc")
		dropped := uint64(0)
		for _, p := range run.Ports {
			dropped += p.DroppedBufferPackets
		}
		qt.Check(t, qt.Equals(dropped > 0, drops), qt.Commentf("%s: %d", buffer, dropped))
	}
}
