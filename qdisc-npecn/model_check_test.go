// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// fabricOf is the fabric that random traffic crosses: hosts at both ends of two switches, links of
// unequal rates.
func fabricOf(k timekeeping, rng *rand.Rand, pfc PFC, buffer uint64) *layout {
	rates := []uint64{10e9, 9_999_999_967, 7_000_000_001, 12e9, 11e9}
	delays := []uint64{3_000, 5_000, 7_001}
	l := &layout{
		hosts: []string{"h0", "h1", "h2", "h3"}, switches: []string{"s0", "s1"},
		links:   [][2]string{{"h0", "s0"}, {"h1", "s0"}, {"h2", "s1"}, {"h3", "s1"}, {"s0", "s1"}},
		buffers: map[string]uint64{"s0": buffer, "s1": buffer},
		options: k.options(),
	}
	ports := map[string]Port{}
	for _, link := range l.links {
		rate, delay := rates[rng.IntN(len(rates))], delays[rng.IntN(len(delays))]
		for _, name := range []string{portName(link[0], link[1]), portName(link[1], link[0])} {
			p := lossless(name, rate, delay, 1024)
			p.PFC = pfc
			if strings.HasSuffix(name, link[0]) && link[0][0] == 'h' {
				p.DelayNs, p.PFCDelayNs = 2*delay, 2*delay
			}
			p.Classes[6].Lossless, p.Classes[6].Marked = false, false // control
			if name[0] == 's' {
				p.Classes[1] = Class{} // no such class
			}
			ports[name] = p
		}
	}
	l.port = func(name string) Port { return ports[name] }
	return l
}

// randomPackets load the fabric by more than it takes, in bursts that meet at h2, in the classes
// given.
func randomPackets(rng *rand.Rand, count int, spreadNs uint64, classes []int) []packet {
	var packets []packet
	for range count {
		p := packet{from: rng.IntN(4), to: 2, class: classes[rng.IntN(len(classes))],
			size: minFrame + rng.IntN(1400), atNs: rng.Uint64N(spreadNs)}
		if rng.IntN(3) == 0 {
			p.to = rng.IntN(4)
		}
		if p.to == p.from {
			p.to = (p.to + 1) % 4
		}
		packets = append(packets, p)
	}
	slices.SortFunc(packets, func(a, b packet) int { return cmp.Compare(a.atNs, b.atNs) })
	return packets
}

// unambiguous draws packets until no two things that concern a switch happen in the same ns at two
// of its ports: the qdisc does these in any order.
func unambiguous(l *layout, draw func() []packet) ([]packet, *model) {
	for {
		packets := draw()
		if m := simulate(l, packets); !m.ambiguous {
			return packets, m
		}
	}
}

// TestAgainstModel compares arrivals, departures, marks, PAUSE and RESUME, drops and counters with
// the model's.
func TestAgainstModel(t *testing.T) {
	const runs = 3
	mixed := []int{0, 1, 3, 3, 3, 3, 3, 3, 3, 5, 6}
	for _, test := range []struct {
		name    string
		pfc     PFC
		buffer  uint64
		classes []int
	}{
		{"no PFC", PFC{XOFFBytes: 1 << 40}, 1 << 40, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{"static", PFC{XOFFBytes: 4_000, XONOffsetBytes: 2_000}, 1 << 40, mixed},
		{"static, XON 0", PFC{XOFFBytes: 3_000, XONOffsetBytes: 3_000}, 1 << 40, mixed},
		{"static, no hysteresis", PFC{XOFFBytes: 2_000}, 1 << 40, mixed},
		{"dynamic", PFC{Alpha: 0.0625, XONOffsetBytes: 1_000}, 100_000, mixed},
		{"drops", PFC{XOFFBytes: 1 << 40}, 25_000, mixed},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 7))
			l := fabricOf(exact, rng, test.pfc, test.buffer)
			l.options.SampleNs = 5_000
			n := newNetwork(t, l)
			var repeats uint64
			for run := range runs {
				packets, m := unambiguous(n.layout,
					func() []packet { return randomPackets(rng, 250, 30_000, test.classes) })
				got := n.run(packets)
				pfc, _ := n.events()
				comparePFC(t, pfc, m.pfc)
				for i := range packets {
					qt.Assert(t, qt.Equals(got[i], m.out[i]),
						qt.Commentf("run %d, packet %d: %+v", run, i, packets[i]))
				}
				if run == 0 { // later ones add to the counters
					n.compareStats(m)
				}
				// a threshold that moves is looked at when a packet comes or leaves
				if test.pfc.Alpha == 0 {
					repeats += m.repeats
					qt.Assert(t, qt.Equals(n.repeated(), repeats))
				}
				if test.pfc.XOFFBytes < 1<<40 {
					qt.Assert(t, qt.IsTrue(len(pfc) > 4),
						qt.Commentf("run %d has too few PFC events to tell anything", run))
				}
			}
			n.checkCounters()
		})
	}
}

// marking makes every switch port of a fabric mark so.
func (l *layout) marking(change func(p *Port)) *layout {
	configure := l.port
	l.port = func(name string) Port {
		p := configure(name)
		if name[0] == 's' {
			change(&p)
		}
		return p
	}
	return l
}

// TestMarkersAgainstModel compares the marks of RED, with PFC and without.
func TestMarkersAgainstModel(t *testing.T) {
	const runs = 2
	for _, test := range []struct {
		name string
		timekeeping
		pfc       PFC
		threshold uint64
	}{
		{"RED from 0 on", rounded, PFC{XOFFBytes: 1 << 40}, 0},
		{"RED", rounded, PFC{XOFFBytes: 1 << 40}, 3_000},
		{"RED and PFC", exact, PFC{XOFFBytes: 4_000, XONOffsetBytes: 2_000}, 2_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(9, 9))
			n := newNetwork(t, fabricOf(test.timekeeping, rng, test.pfc,
				1<<40).marking(func(p *Port) {
				p.Marker, p.RED = RED,
					REDOptions{KMinBytes: test.threshold, KMaxBytes: test.threshold, PMax: 1}
				p.Classes[0].Lossless, p.Classes[5].Marked = false, false
			}))
			for run := range runs {
				packets, m := unambiguous(n.layout, func() []packet {
					return randomPackets(rng, 250, 30_000, []int{0, 1, 3, 3, 3, 3, 3, 3, 3, 5, 6})
				})
				got := n.run(packets)
				for i := range packets {
					qt.Assert(t, qt.Equals(got[i], m.out[i]),
						qt.Commentf("run %d, packet %d: %+v", run, i, packets[i]))
				}
				marks := len(markedOf(got))
				qt.Assert(t, qt.IsTrue(marks > 20 && marks < 200),
					qt.Commentf("%d marks are too few, or too many, to tell", marks))
			}
			n.checkCounters()
		})
	}
}

// TestDetectionAgainstModel compares TCD's marks; and the deliveries, NP-ECN's marks and PAUSE of
// ports whose detectors all say something, of which the model knows nothing: they change nothing.
func TestDetectionAgainstModel(t *testing.T) {
	static := PFC{XOFFBytes: 4_000, XONOffsetBytes: 2_000}
	red := REDOptions{KMinBytes: 2_000, KMaxBytes: 2_000, PMax: 1}
	for _, test := range []struct {
		name   string
		change func(p *Port)
	}{
		{"TCD", func(p *Port) {
			p.Marker, p.RED, p.Detect = RED, red,
				Detection{MaxTonNs: 6_000, TCD: true}
		}},
		{"TCD, watched", func(p *Port) {
			p.Marker, p.RED, p.Detect = RED, red,
				Detection{MaxTonNs: 9_000, TCD: true, Watch: true, OverBytes: 1_000,
					ECNBytes: 1_000}
			p.FECN = FECNOptions{ThresholdBytes: 1_000, MarkingRate: 1}
		}},
		{"all detectors beside NP-ECN", func(p *Port) {
			p.Detect = Detection{MaxTonNs: 2_000, Watch: true, OverBytes: 1_000, ECNBytes: 1_000}
			p.FECN = FECNOptions{ThresholdBytes: 1_000, MarkingRate: 1}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(15, 15))
			n := newNetwork(t, fabricOf(exact, rng, static, 1<<40).marking(test.change))
			packets, m := unambiguous(n.layout, func() []packet {
				return randomPackets(rng, 500, 60_000, []int{0, 3, 3, 3, 3, 3, 3, 3, 5, 6})
			})
			got := n.run(packets)
			pfc, _ := n.events()
			comparePFC(t, pfc, m.pfc)
			for i := range packets {
				qt.Assert(t, qt.Equals(got[i], m.out[i]),
					qt.Commentf("packet %d: %+v", i, packets[i]))
			}
			n.compareStats(m)
			n.checkCounters()
			var marks uint64
			var ue uint32
			for id, p := range m.ports {
				marks += p.MarkedPackets
				if id == 0 || !p.Detect.TCD {
					continue
				}
				got, about := n.stats(uint32(id)).Detected, qt.Commentf("port %s", p.Name)
				qt.Check(t, qt.Equals(got.TCDCE, p.Detected.TCDCE), about)
				qt.Check(t, qt.Equals(got.TCDUE, p.Detected.TCDUE), about)
				ue += got.TCDUE
			}
			qt.Assert(t, qt.IsTrue(marks > 10), qt.Commentf("%d marks are too few to tell", marks))
			if strings.HasPrefix(test.name, "TCD") {
				qt.Assert(t, qt.IsTrue(ue > 10),
					qt.Commentf("%d undetermined packets are too few to tell", ue))
			}
		})
	}
}

// TestDropsAgainstModel compares what WRED and the queue's limit leave, at some of the switches'
// ports, with RED and PFC and without.
func TestDropsAgainstModel(t *testing.T) {
	const runs = 3
	for _, test := range []struct {
		name string
		timekeeping
		pfc         PFC
		wred, limit uint64
		marker      Marker
	}{
		{"WRED", exact, PFC{XOFFBytes: 1 << 40}, 3_000, 0, RED},
		{"limit", exact, PFC{XOFFBytes: 1 << 40}, 0, 5_000, RED},
		{"both", rounded, PFC{XOFFBytes: 1 << 40}, 2_000, 6_000, RED},
		{"both, and PFC", exact, PFC{XOFFBytes: 4_000, XONOffsetBytes: 2_000}, 1, 3_000, RED},
		{"limit, and NP-ECN", exact, PFC{XOFFBytes: 1 << 40}, 0, 3_000, NPECN},
		{"limit, NP-ECN and PFC", exact, PFC{XOFFBytes: 4_000, XONOffsetBytes: 2_000}, 0, 3_000,
			NPECN},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(13, 13))
			l := fabricOf(test.timekeeping, rng, test.pfc, 1<<40).marking(func(p *Port) {
				p.Marker = test.marker
				p.RED = REDOptions{KMinBytes: 2_500, KMaxBytes: 2_500, PMax: 1}
				p.Classes[0].Lossless, p.Classes[5].Marked = false, false
				if p.RateBps != 12e9 { // some
					p.WREDBytes, p.LimitBytes = test.wred, test.limit
				}
			})
			l.notECT = func(p packet) bool { return p.size%2 == 0 }
			n := newNetwork(t, l)
			var wred, tail uint64
			for run := range runs {
				packets, m := unambiguous(n.layout, func() []packet {
					return randomPackets(rng, 250, 30_000, []int{0, 1, 3, 3, 3, 3, 3, 3, 3, 5, 6})
				})
				got := n.run(packets)
				pfc, _ := n.events()
				if test.timekeeping == exact {
					comparePFC(t, pfc, m.pfc)
				}
				for i := range packets {
					qt.Assert(t, qt.Equals(got[i], m.out[i]),
						qt.Commentf("run %d, packet %d: %+v", run, i, packets[i]))
				}
				if run == 0 && test.timekeeping == exact {
					n.compareStats(m)
				}
				for _, p := range m.ports {
					wred, tail = wred+p.Drops[DropWRED], tail+p.Drops[DropTail]
				}
			}
			qt.Check(t, qt.Equals(wred > 20, test.wred > 0),
				qt.Commentf("%d packets dropped by WRED", wred))
			qt.Check(t, qt.Equals(tail > 20, test.limit > 0),
				qt.Commentf("%d packets dropped by the limit", tail))
			n.checkCounters()
			for node := range n.nodes() {
				s, err := n.q.nodeStats(uint32(node))
				n.check(err)
				qt.Check(t, qt.Equals(s.UsedBytes, 0), qt.Commentf("node %s", n.nodes()[node]))
			}
		})
	}
}

// TestQCNAgainstModel compares the samples of two switches in a row, by what their CNMs say. Data
// goes one way, so that CNMs are not in its way.
func TestQCNAgainstModel(t *testing.T) {
	for _, base := range []uint64{1, 2_500, 10_000} {
		t.Run(fmt.Sprintf("a sample in %d bytes", base), func(t *testing.T) {
			const shortest = 78 // of what a CNM answers
			rng := rand.New(rand.NewPCG(10, base))
			n := newNetwork(t, fabricOf(rounded, rng, PFC{XOFFBytes: 1 << 40},
				1<<40).marking(func(p *Port) {
				p.Marker, p.QCN = QCN, QCNOptions{QeqBytes: 3_000, W: 2, SampleBaseBytes: base}
				for c := range p.Classes { // each has a congestion point of its own
					p.Classes[c].Marked = c == dataClass || c == 5
				}
			}))
			packets, m := unambiguous(n.layout, func() []packet {
				packets := randomPackets(rng, 500, 60_000, []int{0, 3, 3, 3, 3, 3, 3, 3, 5, 6})
				for i := range packets {
					p := &packets[i]
					p.from, p.to, p.size = []int{0, 1, 3}[rng.IntN(3)], 2, max(p.size, shortest)
				}
				return packets
			})
			got := n.run(packets)
			for i := range packets {
				qt.Assert(t, qt.Equals(got[i], m.out[i]),
					qt.Commentf("packet %d: %+v", i, packets[i]))
			}
			sameSamples(t, n.samples(packets), m.cnms)
			qt.Assert(t, qt.IsTrue(len(m.cnms) > 20),
				qt.Commentf("%d CNMs are too few to tell", len(m.cnms)))
			n.checkCounters()
		})
	}
}

// TestCBFCAgainstModel: credits in place of PFC. Nothing depends on thresholds, so it is exact also
// with timers that are rounded. Whatever happens no buffer holds more than it lent, and in the end
// all credits are back.
func TestCBFCAgainstModel(t *testing.T) {
	const runs = 2
	for _, test := range []struct {
		name string
		timekeeping
		cbfc   CBFC
		buffer uint64
		off    bool // ports lack credits at times
	}{
		{"tight", exact, CBFC{BufferBytes: 4_000, PeriodNs: 1_000}, 1 << 40, true},
		{"long period", rounded, CBFC{BufferBytes: 6_000, PeriodNs: 7_000}, 1 << 40, true},
		{"wider than what comes", rounded, CBFC{BufferBytes: 40_000, PeriodNs: 3_000}, 1 << 40,
			false},
		{"drops", exact, CBFC{BufferBytes: 20_000, PeriodNs: 2_000}, 15_000, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(14, test.cbfc.PeriodNs))
			l := fabricOf(test.timekeeping, rng, PFC{XOFFBytes: 1},
				test.buffer).marking(func(p *Port) { p.CBFC = test.cbfc })
			l.alignNs = test.cbfc.PeriodNs
			configure := l.port
			l.port = func(name string) Port { // who drops a class lends it nothing
				p := configure(name)
				p.Classes[1].Lossless = false
				return p
			}
			n := newNetwork(t, l)
			var off uint64
			for run := range runs {
				packets, m := unambiguous(n.layout, func() []packet {
					return randomPackets(rng, 250, 30_000, []int{0, 1, 3, 3, 3, 3, 3, 3, 3, 5, 6})
				})
				got := n.run(packets)
				pfc, _ := n.events()
				qt.Assert(t, qt.HasLen(pfc, 0))
				for i := range packets {
					qt.Assert(t, qt.Equals(got[i], m.out[i]),
						qt.Commentf("run %d, packet %d: %+v", run, i, packets[i]))
				}
				for id := uint32(1); id < n.portsMax(); id++ {
					s := n.stats(id)
					about := qt.Commentf("run %d, port %s", run, n.config.Ports[id].Name)
					qt.Assert(t, qt.Equals(s.FreeCreditBlocks, s.CreditBlocks), about)
					qt.Assert(t, qt.IsTrue(s.HeldMaxBlocks <= test.cbfc.blocks()), about)
					off += s.PausedNs
					if run == 0 {
						qt.Assert(t, qt.Equals(s.PausedNs, m.ports[id].PausedNs), about)
					}
				}
			}
			qt.Assert(t, qt.Equals(off > 0, test.off),
				qt.Commentf("ports lacked credits for %d ns", off))
			n.checkCounters()
		})
	}
}

// randomRates changes the rate of some ports of the fabric, in the time that its packets take.
func randomRates(rng *rand.Rand, l *layout, untilNs uint64) *layout {
	l.rates = map[string][]RateChange{}
	for id := uint32(1); id < l.portsMax(); id++ {
		node, peer := l.ends(id)
		name := portName(l.nodes()[node], l.nodes()[peer])
		for range rng.IntN(rateChangesMax + 1) {
			l.rates[name] = append(l.rates[name],
				RateChange{rng.Uint64N(untilNs), 2e9 + rng.Uint64N(10e9)})
		}
		slices.SortFunc(l.rates[name],
			func(a, b RateChange) int { return cmp.Compare(a.AtNs, b.AtNs) })
	}
	return l
}

// TestRateChangesAgainstModel: links whose rates change, with PFC and without.
func TestRateChangesAgainstModel(t *testing.T) {
	for _, test := range []struct {
		name string
		timekeeping
		pfc PFC
	}{
		{"no PFC", rounded, PFC{XOFFBytes: 1 << 40}},
		{"static", exact, PFC{XOFFBytes: 4_000, XONOffsetBytes: 2_000}},
		{"dynamic", exact, PFC{Alpha: 0.0625, XONOffsetBytes: 1_000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(12, 12))
			l := fabricOf(test.timekeeping, rng, test.pfc, 100_000)
			n := newNetwork(t, randomRates(rng, l, 60_000))
			classes := []int{0, 1, 3, 3, 3, 3, 5, 6}
			packets, m := unambiguous(n.layout,
				func() []packet { return randomPackets(rng, 250, 60_000, classes) })
			got := n.run(packets)
			pfc, _ := n.events()
			comparePFC(t, pfc, m.pfc)
			for i := range packets {
				qt.Assert(t, qt.Equals(got[i], m.out[i]),
					qt.Commentf("packet %d: %+v", i, packets[i]))
			}
			if test.timekeeping == exact {
				n.compareStats(m)
			}
			n.checkCounters()
		})
	}
}

// TestRoundedTimers: a threshold is crossed by what has arrived early, and by what another port of
// the switch has ideally sent but not decided yet: it lags by two quanta, and its timer by another,
// or as much as the guest was late. What follows from the PAUSE and RESUME that are sent is exact
// all the same.
func TestRoundedTimers(t *testing.T) {
	const (
		xoff, xon  = 12_000, 8_000
		rateBpsMax = 12e9 // of fabricOf
	)
	for _, test := range []struct {
		name   string
		pfc    PFC
		buffer uint64
		events bool
	}{
		{"no PFC", PFC{XOFFBytes: 1 << 40}, 1 << 40, false},
		{"static", PFC{XOFFBytes: xoff, XONOffsetBytes: xoff - xon}, 1 << 40, true},
		{"dynamic", PFC{Alpha: 0.125, XONOffsetBytes: 1_000}, 100_000, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(8, 8))
			n := newNetwork(t, fabricOf(rounded, rng, test.pfc, test.buffer))
			packets := randomPackets(rng, 600, 90_000, []int{0, 3, 3, 3, 3, 3, 3, 3, 5, 6})
			runtime.GC() // not while packets are under way
			got := n.run(packets)
			pfc, _ := n.events()
			qt.Assert(t, qt.Equals(len(pfc) > 10, test.events),
				qt.Commentf("%d PFC events", len(pfc)))
			m := simulatePaused(n.layout, packets, append([]PFCEvent{}, pfc...))
			for i := range packets {
				qt.Assert(t, qt.Equals(got[i], m.out[i]),
					qt.Commentf("packet %d: %+v", i, packets[i]))
			}
			wrongNs := 2*rounded.quantumNs + max(rounded.quantumNs, n.latestNs()) + rounded.earlyNs
			slack := uint64(float64(wrongNs) * rateBpsMax / 8e9)
			for i, e := range pfc {
				about := qt.Commentf("%+v, %d B held, slack %d B", e, m.heldAt[i], slack)
				qt.Check(t, qt.IsTrue(e.EffectNs >= e.SentNs+n.config.Ports[e.Port].PFCDelayNs),
					about)
				if test.pfc.Alpha != 0 {
					continue
				}
				if e.Pause {
					qt.Check(t, qt.IsTrue(m.heldAt[i]+slack > xoff), about)
				} else {
					qt.Check(t, qt.IsTrue(m.heldAt[i] <= xon+slack), about)
				}
			}
			n.checkCounters()
		})
	}
}

// latestNs is how late the latest packet of any port was.
func (n *network) latestNs() uint64 {
	var late Lateness
	for id := uint32(1); id < n.portsMax(); id++ {
		late.Add(n.stats(id).Lateness)
	}
	return late.MaxNs
}

// comparePFC compares what was posted, in the order of sending.
func comparePFC(t *testing.T, got, want []PFCEvent) {
	t.Helper()
	order := func(a, b PFCEvent) int {
		return cmp.Or(cmp.Compare(a.SentNs, b.SentNs), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.Class, b.Class))
	}
	slices.SortStableFunc(got, order)
	slices.SortStableFunc(want, order)
	for i := range min(len(got), len(want)) {
		qt.Assert(t, qt.Equals(got[i], want[i]), qt.Commentf("event %d", i))
	}
	qt.Assert(t, qt.Equals(len(got), len(want)))
}

// compareStats compares the counters after the first run.
func (n *network) compareStats(m *model) {
	n.t.Helper()
	ignore := cmpopts.IgnoreFields(Stats{}, "Lateness", "LateACKs", "LateData", "Bin", "InBin",
		"PauseReceived", "ResumeReceived", "PausedNs", "Detected")
	for id := uint32(1); id < n.portsMax(); id++ {
		got, want := n.stats(id), m.ports[id].Stats
		qt.Check(n.t, qt.CmpEquals(got, want, ignore),
			qt.Commentf("port %s", n.config.Ports[id].Name))
	}
}
