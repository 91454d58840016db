// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

const hundredFrames = `
name: hundred
engine: sim
topology: {kind: dumbbell, senders: 1, rate: 10Gbps, delay: 5us}
schemes: [pfc]
warmup: 0ms
duration: 1ms
flows: [{name: F0, from: A0, to: B0, start: 0ms, size: 93400B}]
`

const oneFailure = `
links: [{at: 20us, link: S0-S1, state: down}, {at: 30us, link: S1-S0, state: up}]
transport: {recovery: %s}
`

// Frame i starts at 800 i ns, is at S0 at 800 (i + 1) + 5000, and would be at S1 5800 ns later. The
// link between them does not work from 20 to 30 us. So frames 11 to 17 are lost on it, and 18 to 30
// before it; and the ACKs of 0 to 9, that of frame 0 being at S1 at 22,452 ns. Frame 31 is at the
// receiver at 34 * 800 + 15000 = 42,200 ns. Its ACK is at the sender at 57,356 ns, when frame 71 is
// on the link until 57,600 ns. From then on go-back-N sends 11 to 99, and SACK 11 to 30 and 72 to
// 99. The last takes 3 * 800 + 15,000 ns, and its ACK 3 * 52 + 15,000 ns.
func TestFailedLinkToTheNanosecond(t *testing.T) {
	const back = 3*800 + 15_000 + 3*52 + 15_000
	for _, c := range []struct {
		recovery string
		frames   int64 // from 57,600 ns on
		again    uint64
	}{
		{"go-back-n", 89, 72 - 11},
		{"sack", 20 + 28, 20},
	} {
		run := simulate(t, parse(t, hundredFrames+fmt.Sprintf(oneFailure, c.recovery)),
			"pfc")
		qt.Assert(t, qt.HasLen(run.Completions, 1))
		qt.Check(t, qt.Equals(*run.Completions[0].FCTNs, 57_600+(c.frames-1)*800+back),
			qt.Commentf("%s", c.recovery))
		f := run.Flows[0]
		qt.Check(t, qt.Equals(f.Retransmissions, c.again))
		qt.Check(t, qt.Equals(f.Timeouts, 0))
		qt.Check(t, qt.Equals(f.ReceivedBytes, 93_400))
		qt.Check(t, qt.Equals(run.Manifest.LostPackets["links"], 20+10))
		qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid))
	}
}

// Without losses the ways of recovery are the same.
func TestRecoveryOfNothing(t *testing.T) {
	sack := simulate(t, parse(t, hundredFrames), "pfc")
	back := simulate(t, parse(t, hundredFrames+"transport: {recovery: go-back-n}\n"), "pfc")
	qt.Check(t, qt.DeepEquals(sack.Flows, back.Flows))
	qt.Check(t, qt.DeepEquals(sack.Ports, back.Ports))
}

// Ten frames in flight: frame 10 starts when the ACK of frame 0 is there, and so on.
func TestWindowToTheNanosecond(t *testing.T) {
	const rtt = 3*800 + 15_000 + 3*52 + 15_000
	text := strings.Replace(hundredFrames, "93400B", "28020B", 1)
	run := simulate(t, parse(t, text+"transport: {window: 9340B}\n"), "pfc")
	qt.Check(t, qt.Equals(*run.Completions[0].FCTNs, 2*rtt+9*800+rtt))
	// It is in proportion to the rate: half of it at half the rate, with 1600 ns between frames.
	text = strings.Replace(text, "start: 0ms", "start: 0ms, initial_rate: 5Gbps", 1)
	run = simulate(t, parse(t, text+
		"transport: {window: 9340B, scale_window: true}\n"), "pfc")
	qt.Check(t, qt.Equals(*run.Completions[0].FCTNs, 5*rtt+4*1600+rtt))
}

// The product of bandwidth and delay: 30 us of propagation and a frame on each of 3 links.
func TestWindowOfBDP(t *testing.T) {
	p, err := newPlan(parse(t, hundredFrames+"transport: {window: bdp}\n"), "pfc")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(p.bdpBytes(1000), (30_000+3*800)*10/8))
}

const fourPaths = `
name: paths
engine: sim
topology: {kind: leaf-spine, leaves: 2, spines: 4, hosts: 2, rate: 40Gbps, delay: 1us,
  spine_links: {rate: 10Gbps}}
switch: {ecmp: %s}
schemes: [pfc]
warmup: 0ms
duration: 5ms
flows: [{name: F0, from: H0, to: H2, start: 0ms, size: 3736000B}]
`

// The 4000 packets of a flow take each of four paths about 1000 times, within five standard
// deviations, or all the same one. Reordering is no loss.
func TestPacketsAreSpread(t *testing.T) {
	for _, ecmp := range []string{"packet", "flow"} {
		run := simulate(t, parse(t, fmt.Sprintf(fourPaths, ecmp)), "pfc")
		qt.Check(t, qt.Equals(run.Flows[0].Retransmissions, 0))
		qt.Check(t, qt.IsTrue(run.Flows[0].CompletionNs > 0))
		used := 0
		for _, p := range run.Ports {
			if p.Node != "L0" || p.Peer[0] != 'S' || p.SentPackets == 0 {
				continue
			}
			used++
			if ecmp == "packet" {
				off := math.Abs(float64(p.SentPackets) - 1000)
				qt.Check(t, qt.IsTrue(off < 5*math.Sqrt(4000*0.25*0.75)),
					qt.Commentf("%s sent %d", p.Name, p.SentPackets))
			}
		}
		qt.Check(t, qt.Equals(used, map[string]int{"packet": 4, "flow": 1}[ecmp]))
	}
}

// A flow changes to the other path when a link of its own fails, and back when it works again.
func TestRouteAroundFailure(t *testing.T) {
	const text = `
name: around
engine: sim
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 4, rate: 10Gbps, delay: 1us}
schemes: [pfc]
warmup: 0ms
duration: 30ms
flows: [{name: F, from: H0..H3, to: H4, start: 0ms, size: 2MB}]
links:
  - {at: 1ms, link: L0-S0, state: down}
  - {at: 2ms, link: L0-S0, state: up}
  - {at: 3ms, link: L0-S1, state: down}
`
	run := simulate(t, parse(t, text), "pfc")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
		qt.Commentf("%v", run.Manifest.Reasons))
	for _, f := range run.Flows {
		qt.Check(t, qt.IsTrue(f.CompletionNs > 0), qt.Commentf("%s", f.Name))
		qt.Check(t, qt.Equals(f.ReceivedBytes >= 2_000_000, true))
	}
	sent := map[string]map[int64]uint64{} // by port and ms
	for _, s := range run.Series {
		if s.Kind == result.KindPort && strings.HasPrefix(s.Name, "L0->S") {
			if sent[s.Name] == nil {
				sent[s.Name] = map[int64]uint64{}
			}
			sent[s.Name][s.TimeNs/1_000_000] += s.RateBps
		}
	}
	qt.Check(t, qt.Equals(sent["L0->S0"][1], 0))
	qt.Check(t, qt.IsTrue(sent["L0->S1"][1] > 0))
	qt.Check(t, qt.Equals(sent["L0->S1"][3], 0))
	qt.Check(t, qt.IsTrue(sent["L0->S0"][3] > 0))
}

// S1 drains at 1 Gbit/s, and so pauses S0. A burst is 1000 frames of 1000 bytes.
const pausedLink = `
name: paused
engine: sim
topology: {kind: dumbbell, senders: 2, rate: 10Gbps, delay: 1us}
switch: {pfc: {xoff: 40KB, xon: 30KB}}
schemes: [pcn]
warmup: 0ms
duration: 2ms
sample: 10us
bursts:
  - {name: X, from: A0, to: B0, at: 0ms, size: 958KB, rate: 10Gbps}
  - {name: Y, from: A1, to: B0, at: 0ms, size: 958KB, rate: 10Gbps}
links:
  - {at: 0ms, link: S1->B0, rate: 1Gbps}
`

// What a PAUSE held back and the link took along is not in the queue any more, whether the PAUSE
// still held or not. So of the packets that leave S0 by the link when it works again NP-ECN marks
// all that leave others behind: the link is full, and nothing pauses it. The first and the last may
// leave none.
func TestFailedLinkForgetsPausedPackets(t *testing.T) {
	for name, faster := range map[string]string{"paused": "125us", "was paused": "90us"} {
		run := simulate(t, parse(t, pausedLink+fmt.Sprintf(`
  - {at: 105us, link: S0-S1, state: down}
  - {at: 125us, link: S0-S1, state: up}
  - {at: %s, link: S1->B0, rate: 10Gbps}
`, faster)), "pcn")
		for _, p := range run.Ports {
			if p.Name == "S0->S1" {
				qt.Check(t, qt.IsTrue(p.DroppedResetPackets > 40),
					qt.Commentf("%s: %d packets in S0's queue", name, p.DroppedResetPackets))
				qt.Check(t, qt.Equals(p.ResumeReceived, map[string]uint64{"was paused": 1}[name]))
			}
		}
		var sent, marked uint64
		for _, s := range run.Series {
			if s.Kind == result.KindPort && s.Name == "S0->S1" && s.TimeNs >= 110_000 {
				sent += s.RateBps * 10_000 / 8_000_000_000 / 1000
				marked += s.MarkedPackets
			}
		}
		qt.Check(t, qt.IsTrue(sent > 400 && sent-marked <= 2),
			qt.Commentf("%s: %d of %d packets", name, marked, sent))
		qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
			qt.Commentf("%v", run.Manifest.Reasons))
	}
}

// A switch sends no PAUSE over a link that does not work, also if it failed when a port was above
// XOFF. When it works again S1 is empty, and pauses S0 as at the start. The first frames are at S0
// already, so 2 us earlier, and frames of PAUSE are counted when a packet leaves, each 8 us: that
// is 4 of one each 2.5 us.
func TestFailedLinkRepeatsNoPause(t *testing.T) {
	run := simulate(t, parse(t, pausedLink+`
  - {at: 55us, link: S0-S1, state: down}
  - {at: 500us, link: S0-S1, state: up}
`), "pcn")
	frames := func(from, to int64) (n uint64) {
		for _, r := range run.PauseRepeats {
			if r.From == "S1" && r.TimeNs >= from && r.TimeNs < to {
				n += r.Frames
			}
		}
		return n
	}
	first := frames(0, 50_000)
	qt.Assert(t, qt.IsTrue(first > 2), qt.Commentf("%d", first))
	qt.Check(t, qt.Equals(frames(60_000, 500_000), 0))
	again := frames(500_000, 550_000)
	qt.Check(t, qt.IsTrue(again >= first && again <= first+4),
		qt.Commentf("%d at first, then %d", first, again))
}

// Links lose their share of the packets, within five standard deviations, and all flows arrive.
func TestLinksLosePackets(t *testing.T) {
	const text = `
name: errors
engine: sim
topology: {kind: star, hosts: 5, rate: 10Gbps, delay: 1us, error_rate: 0.01}
schemes: [SCHEME]
warmup: 0ms
duration: 400ms
sample: 1ms
flows: [{name: F, from: H0..H3, to: H4, start: 0ms, size: 4MB}]
transport: {recovery: RECOVERY}
`
	for _, c := range [][2]string{
		{"pfc", "sack"}, {"pfc", "go-back-n"}, {"dcqcn", "go-back-n"}, {"ldcp", "sack"},
	} {
		run := simulate(t, parse(t, strings.NewReplacer("SCHEME", c[0], "RECOVERY", c[1]).
			Replace(text)), c[0])
		var sent float64
		for _, p := range run.Ports {
			sent += float64(p.SentPackets)
		}
		off := math.Abs(float64(run.Manifest.LostPackets["links"]) - sent*0.01)
		qt.Check(t, qt.IsTrue(off < 5*math.Sqrt(sent*0.01*0.99)),
			qt.Commentf("%v: %d of %v", c, run.Manifest.LostPackets["links"], sent))
		qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid))
		for _, f := range run.Flows {
			qt.Check(t, qt.IsTrue(f.CompletionNs > 0), qt.Commentf("%v: %s", c, f.Name))
			if c[1] == "go-back-n" {
				qt.Check(t, qt.Equals(f.ReceivedBytes, 4_000_000))
			}
		}
	}
}

// A lost packet's credits come back with the next update, since the sender tells the receiver what
// it has sent (InfiniBand Architecture Specification, volume 1, 7.9). So a lossy link goes on, and
// when nothing is under way each sender has the credits of the peer's whole buffer.
func TestCreditsOfLostPackets(t *testing.T) {
	const text = `
name: credits
engine: sim
topology: {kind: dumbbell, senders: 2, rate: 10Gbps, delay: 1us, error_rate: 0.01}
switch: {flow_control: cbfc, cbfc: {buffer: 64KB, period: 10us}}
schemes: [pfc]
warmup: 0ms
duration: 20ms
flows: [{name: F, from: A0..A1, to: B0..B1, start: 0ms}]
`
	ctx := context.Background()
	r := newRuntime(ctx, newCache())
	defer r.Close(ctx)
	w, err := newWorld(ctx, r, parse(t, text), "pfc")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(w.run(ctx, func(float64) {})))
	run, err := w.result()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid))
	// 64 packets fit into a buffer: far more are lost
	qt.Assert(t, qt.IsTrue(run.Manifest.LostPackets["links"] > 500))
	sent, err := run.PortRate("S0->S1")
	qt.Assert(t, qt.IsNil(err))
	last := sent.Values[len(sent.Values)-1]
	qt.Check(t, qt.IsTrue(last > 9e9), qt.Commentf("%g bit/s in the last bin", last))

	credits := &offsets{layout: w.core.layout, name: "port_class"}
	limit, spent := credits.of("credits.fccl"), credits.of("credits.fctbs")
	qt.Assert(t, qt.IsNil(credits.err))
	senders := 0
	for id := range w.ports {
		q := &w.ports[id].queues[experiment.DataClass(0)]
		if !w.ports[id].credits {
			continue
		}
		senders++
		qt.Check(t, qt.Equals(w.core.u64(q.core+limit)-w.core.u64(q.core+spent), 64_000/64),
			qt.Commentf("%s", w.plan.portNames[id]))
	}
	qt.Check(t, qt.Equals(senders, 6)) // four hosts, and two switches to each other
}

// One flow of 10 MB over two links of 100 Gbit/s that lose one packet in a thousand. Alone it takes
// 10,183 packets of 1048 bytes, 0.854 ms, and 4 us. With the parameters of HPCC's simulator no loss
// slows it down: each of some 20 costs its own packet with SACK, and a round trip to go back.
func TestLossesUnderSetsOfSimulators(t *testing.T) {
	const text = `
name: lossy
engine: sim
topology: {kind: star, hosts: 1, rate: 100Gbps, delay: 1us, error_rate: 0.001}
schemes: [%s]
%s
warmup: 0ms
duration: 100ms
frame: 1048B
flows: [{name: F, from: H0, to: R0, start: 0ms, size: 10MB}]
transport: {recovery: %s}
`
	fct := func(scheme, params, recovery string) float64 {
		run := simulate(t, parse(t, fmt.Sprintf(text, scheme, params, recovery)), scheme)
		qt.Assert(t, qt.IsNotNil(run.Completions[0].FCTNs))
		return float64(*run.Completions[0].FCTNs) / 1e6
	}
	for _, c := range [][2]string{
		{"dcqcn", "dcqcn: {set: hpcc}"}, {"dcqcn", "dcqcn: {set: ns3-rdma}"},
		{"timely", "timely: {set: hpcc, t_low: 1ms, t_high: 2ms}"}, {"dctcp_rate", ""},
	} {
		about := qt.Commentf("%s", c)
		sack, back := fct(c[0], c[1], "sack"), fct(c[0], c[1], "go-back-n")
		qt.Check(t, qt.IsTrue(sack >= 0.855 && sack < 0.87), about)
		qt.Check(t, qt.IsTrue(back > 0.88 && back < 1.05), about)
	}
	// The rule of a lossy network has a name.
	cut := fct("dcqcn", "dcqcn: {set: hpcc, loss_cut: true}", "sack")
	qt.Check(t, qt.IsTrue(cut > 2), qt.Commentf("%g ms", cut))
}

// Losses are a chain of two states, of which the share and the mean length of runs follow, and
// jitter is even and keeps the order. Bounds are five deviations of as many packets.
func TestDisturbedPorts(t *testing.T) {
	const packets, rate, burst, jitter = 1_000_000, 0.02, 5, 1000
	l := network.Link{ErrorRate: rate}
	l.ErrorBurst = burst
	begin, goOn := l.Losses()
	w := &world{errors: rand.New(rand.NewPCG(1, 0)), jitter: rand.New(rand.NewPCG(2, 0))}
	p := &port{portRest: &portRest{}}
	p.losesFirst, p.losesOn = uint64(begin*(1<<32)), uint64(goOn*(1<<32))
	p.jitter = jitter
	var lost, runs, late float64
	for range packets {
		before := p.losing
		if w.lost(p) {
			lost++
			if !before {
				runs++
			}
		}
	}
	r := goOn - begin // between neighbours
	deviation := math.Sqrt(rate * (1 - rate) * (1 + r) / (1 - r) / packets)
	qt.Check(t, qt.IsTrue(math.Abs(lost/packets-rate) < 5*deviation), qt.Commentf("%g", lost))
	qt.Check(t, qt.IsTrue(math.Abs(lost/runs-burst) < 5*burst/math.Sqrt(runs)),
		qt.Commentf("%g in %g", lost, runs))

	var last int64
	for i := range int64(packets) {
		at := w.delayed(p, i*jitter)
		qt.Assert(t, qt.IsTrue(at >= last && at < (i+1)*jitter))
		late, last = late+float64(at-i*jitter), at
	}
	qt.Check(t, qt.IsTrue(math.Abs(late/packets-jitter/2) < 5*jitter/math.Sqrt(12*packets)+1))
	for range 1000 { // closer than the jitter
		at := w.delayed(p, last+1)
		qt.Assert(t, qt.IsTrue(at >= last && at <= last+jitter))
		last = at
	}
}
