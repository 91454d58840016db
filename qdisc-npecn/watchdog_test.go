// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestWatchdog: the adapter of h2 sends PAUSE from 5.5 to 50.5 us. The switch looks every 10 us. At
// 20 and 30 us the queue has been paused for the whole time since the look before, and at 70 and
// 80 us no PAUSE was in force. All times are worked out by hand.
func TestWatchdog(t *testing.T) {
	const delivered = 1000 + 2*delayNs // after a frame's start at the switch
	type event struct {
		over             bool
		atNs             uint64
		dropped, refused uint64
	}
	found := event{atNs: 30_000}
	for _, test := range []struct {
		name     string
		action   WatchdogAction
		pausedNs uint64
		resumeNs uint64           // sent to h0
		starts   func(int) uint64 // of frame i of the 20, from 0 on; 0: it is lost
		later    [3]uint64        // of those of 35, 70 and 85 us
		back     uint64           // of the one from h2, of 40 us
		want     []event
	}{
		{"drop", WatchdogDrop, 24_500, 30_000,
			func(i int) uint64 { return 0 },
			// the queue is empty, and h0 goes on; but until 80 us all that comes is dropped
			[3]uint64{0, 0, 86_000}, 0,
			[]event{found, {over: true, atNs: 80_000, dropped: 17, refused: 1}}},
		{"forward", WatchdogForward, 24_500, 38_000,
			func(i int) uint64 { return 30_000 + uint64(i-5)*1000 },
			[3]uint64{45_000, 71_000, 86_000}, 41_000,
			[]event{found, {over: true, atNs: 80_000}}},
		{"alert", WatchdogAlert, 45_000, 58_500,
			func(i int) uint64 { return 50_500 + uint64(i-5)*1000 },
			[3]uint64{65_500, 71_000, 86_000}, 41_000,
			[]event{found, {over: true, atNs: 60_000}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := star(3, func(name string, p *Port) {
				// the ninth frame that waits pauses h0, which has sent all then
				p.PFC = PFC{XOFFBytes: 8000, XONOffsetBytes: 2000}
				if name[0] == 's' {
					p.Watchdog = Watchdog{PollNs: 10_000, FirstNs: 10_000, DetectPolls: 2,
						RestorePolls: 2, Action: test.action}
				}
				if name == "s->h2" {
					p.Classes[dataClass].Pauses = 2
				}
			})
			l.pauses = map[string][]PauseChange{"s->h2": {{5_500, true}, {50_500, false}}}
			n := newNetwork(t, l)
			packets := backToBack(0, 2, dataClass, 20, 0) // frame i is at the switch at i + 1 us
			packets = append(packets, packet{0, 2, dataClass, frame1K, 35_000},
				packet{0, 2, dataClass, frame1K, 70_000}, packet{0, 2, dataClass, frame1K, 85_000},
				packet{2, 1, dataClass, frame1K, 40_000}, packet{1, 0, dataClass, frame1K, 40_000})
			got := n.run(packets)
			pfc, _ := n.events()
			qt.Check(t, qt.DeepEquals(pfc, []PFCEvent{
				{Port: n.id("h0->s"), Class: dataClass, Pause: true, SentNs: 14_000,
					EffectNs: 14_000 + 2*delayNs},
				{Port: n.id("h0->s"), Class: dataClass, SentNs: test.resumeNs,
					EffectNs: test.resumeNs + 2*delayNs},
			}))
			var storms []event
			for _, s := range n.storms {
				qt.Check(t, qt.Equals(s.Port, n.id("s->h2")))
				qt.Check(t, qt.Equals(s.Class, uint8(dataClass)))
				storms = append(storms, event{s.Over, s.AtNs, s.Dropped, s.Refused})
			}
			qt.Check(t, qt.IsTrue(slices.Equal(storms, test.want)), qt.Commentf("%+v", storms))

			var want []uint64 // starts
			for i := range 20 {
				if i < 5 {
					want = append(want, uint64(i+1)*1000)
					continue
				}
				want = append(want, test.starts(i))
			}
			want = append(append(want, test.later[:]...), test.back, 41_000)
			for i, startNs := range want {
				qt.Check(t, qt.Equals(got[i].lost, startNs == 0), qt.Commentf("frame %d", i))
				if startNs != 0 {
					qt.Check(t, qt.Equals(got[i].atNs, startNs+delivered),
						qt.Commentf("frame %d", i))
				}
			}
			s := n.stats(n.id("s->h2"))
			qt.Check(t, qt.Equals(s.PauseReceived, 1))
			qt.Check(t, qt.Equals(s.ResumeReceived, 1))
			qt.Check(t, qt.Equals(s.PausedNs, test.pausedNs))
			last := test.want[1]
			qt.Check(t, qt.Equals(s.Drops[DropReset], last.dropped))
			s = n.stats(n.id("s->h1"))
			qt.Check(t, qt.Equals(s.Drops[DropRefused], last.refused))
			qt.Check(t, qt.Equals(s.EnqueuedPackets, 1-last.refused))
			node, err := n.q.nodeStats(uint32(n.node("s")))
			n.check(err)
			qt.Check(t, qt.Equals(node.UsedBytes, 0))
			n.checkCounters()
		})
	}
}
