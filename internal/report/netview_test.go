// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// A port is paused if it was stopped half of a bin, undetermined if it was stopped at times and has
// a queue, and congested if it has one and was never stopped. Queues of hosts do not count.
func TestPortStates(t *testing.T) {
	n := networkOf(t, "{kind: fig1, burst_hosts: 2}")
	queue := func(bin int64, port string, bytes uint64) result.Sample {
		return result.Sample{TimeNs: bin*1000 - 1000, Kind: result.KindPort, Name: port,
			QueueMaxBytes: bytes}
	}
	frame := func(ns int64, kind result.PFCKind) result.PFCEvent {
		return result.PFCEvent{SentNs: ns, EffectNs: ns, From: "S1", To: "S0", Kind: kind}
	}
	r := runView{Run: &result.Run{
		Manifest: result.Manifest{WarmupNs: 1000, DurationNs: 5000, SampleNs: 1000},
		PFC: []result.PFCEvent{frame(1000, result.Pause), frame(1500, result.Resume),
			frame(2000, result.Pause), frame(2100, result.Resume)},
		Series: []result.Sample{queue(1, "S0->S1", 20000), queue(2, "S0->S1", 20000),
			queue(3, "S0->S1", 20000), queue(4, "S0->S1", 9999), queue(5, "S1->R1", 10000),
			queue(1, "H0->S0", 20000)},
	}}
	states := func(port string, join int) string {
		all := portStates(r, n, n.Ports(), 1000, 6/join, join)
		return packStates(all[slices.Index(n.Ports(), port)])
	}
	qt.Check(t, qt.Equals(states("S0->S1", 1), "0x1,1x1,3x1,2x1,0x2"))
	qt.Check(t, qt.Equals(states("S1->S0", 1), "0x6"))
	qt.Check(t, qt.Equals(states("S1->R1", 1), "0x5,1x1"))
	qt.Check(t, qt.Equals(states("H0->S0", 1), "0x6"))
	qt.Check(t, qt.Equals(states("S0->S1", 2), "1x1,3x1,0x1")) // the largest of each two
}

// The port that PAUSE stops is at the other end of the frame's link, also of parallel links.
func TestEnds(t *testing.T) {
	for _, l := range []network.Link{{A: "S0", B: "S1"}, {A: "L0", B: "S1", Suffix: ".1"}} {
		ports := l.Ports()
		port, link := ends(result.PFCEvent{From: l.A, To: l.B + l.Suffix})
		qt.Check(t, qt.Equals(link, ports[0]))
		qt.Check(t, qt.Equals(port, ports[1]))
	}
}

func TestMoments(t *testing.T) {
	run := [][]portState{[]portState("0011111000"), []portState("0001310000")}
	qt.Check(t, qt.DeepEquals(momentsOf([][][]portState{run}, 10), []int{2, 3, 6}))
}

// The congestion tree of PFC reaches hosts; the page has a strip for readers without scripts.
func TestNetworkIsShown(t *testing.T) {
	e := load(t)
	page := render(t, e, fig2(e))
	qt.Check(t, qt.StringContains(page, `<figure class="network"`))
	qt.Check(t, qt.StringContains(page, `aria-label="Network of PFC at t = `))
	qt.Check(t, qt.StringContains(page, `stroke="currentColor"`)) // a paused port
	// the paths of flows have the colours that their names have in the legend
	qt.Check(t, qt.StringContains(page, `stroke="#9b1c1c" class="path"/></svg> path of F0</span>`))
}
