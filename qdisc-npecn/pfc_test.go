// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	lossyClass = 6
	dataClass  = 3
)

// TestPauseAndResume: h0 sends at twice the rate of the port to h2. All times are worked out by
// hand.
func TestPauseAndResume(t *testing.T) {
	const packets = 20
	n := newNetwork(t, star(3, func(name string, p *Port) {
		p.PFC = PFC{XOFFBytes: 4000, XONOffsetBytes: 2000}
		p.Classes[lossyClass].Lossless, p.Classes[lossyClass].Marked = false, false
		if name == "s->h2" {
			p.RateBps = gbit8 / 2
		}
	}))
	// Frame n, from 1 on, arrives at n us and every other starts: at 1, 3, 5 ... us. At 9 us the
	// fifth is held.
	wantPFC := []PFCEvent{
		{Port: n.id("h0->s"), Class: dataClass, Pause: true, SentNs: 9_000,
			EffectNs: 9_000 + 2*delayNs},
		// Frames 1 to 15 start before the pause, and 2 are left at 25 us.
		{Port: n.id("h0->s"), Class: dataClass, Pause: false, SentNs: 25_000,
			EffectNs: 25_000 + 2*delayNs},
	}
	wantNs := func(frame int) uint64 {
		start := uint64(2*frame-1) * 1000
		if frame > 15 { // starts at the host at 31 us, and finds the port idle
			start = 32_000 + uint64(frame-16)*2000
		}
		return start + 2000 + 2*delayNs
	}
	// another class of the host, and another host to the same port, are not in the pause
	data := backToBack(0, 2, dataClass, packets, 0)
	others := []packet{{0, 1, dataClass + 1, frame1K, 20_000},
		{1, 2, dataClass + 2, frame1K, 50_000}}
	got := n.run(append(data, others...))

	pfc, _ := n.events()
	qt.Assert(t, qt.DeepEquals(pfc, wantPFC))
	for i := range data {
		qt.Check(t, qt.Equals(got[i].atNs, wantNs(i+1)), qt.Commentf("frame %d", i+1))
	}
	qt.Check(t, qt.Equals(got[packets].atNs, 20_000+2*1000+2*delayNs))
	s := n.stats(n.id("h0->s"))
	qt.Check(t, qt.Equals(s.PauseReceived, 1))
	qt.Check(t, qt.Equals(s.ResumeReceived, 1))
	qt.Check(t, qt.Equals(s.PausedNs, 16_000))
	s = n.stats(n.id("s->h0"))
	qt.Check(t, qt.Equals(s.PauseSent, 1))
	qt.Check(t, qt.Equals(s.ResumeSent, 1))
	qt.Check(t, qt.Equals(n.stats(n.id("s->h1")).PauseSent, 0))

	// a class that is not lossless fills the same queue and is never paused
	got = n.run(backToBack(0, 2, lossyClass, packets, 0))
	pfc, _ = n.events()
	qt.Check(t, qt.HasLen(pfc, 0))
	for i := range got {
		qt.Check(t, qt.Equals(got[i].atNs, uint64(2*i+1)*1000+2000+2*delayNs),
			qt.Commentf("lossy frame %d", i+1))
	}
	n.checkCounters()
}

// TestDynamicThreshold: with alpha 1/2 one ingress may hold a third of the buffer, and two a
// quarter each.
func TestDynamicThreshold(t *testing.T) {
	const buffer = 30_000
	for _, test := range []struct {
		name  string
		hosts int
		want  uint64 // bytes held by each ingress when it sends PAUSE
	}{
		// 10 frames are half of the 20,000 B that they leave, 11 are more
		{"one ingress", 1, 11_000},
		{"two", 2, 8_000}, // 7 of each are less than half of the 16,000 B that they leave
	} {
		t.Run(test.name, func(t *testing.T) {
			l := star(3, func(name string, p *Port) {
				p.PFC = PFC{Alpha: 0.5, XONOffsetBytes: 2000}
				if name == "s->h2" {
					p.RateBps = gbit8 / 1000 // what arrives, stays
				}
			})
			l.buffers = map[string]uint64{"s": buffer}
			n := newNetwork(t, l)
			packets := []packet{{0, 2, dataClass, frame1K, 0}} // is on the link and holds nothing
			for i := range 12 {
				for host := range test.hosts {
					packets = append(packets,
						packet{host, 2, dataClass, frame1K,
							10_000 + uint64(i)*1000 + uint64(host)*100})
				}
			}
			n.send(packets)
			var pfc []PFCEvent
			n.waitUntil("all are paused", func() bool {
				more, _ := n.events()
				pfc = append(pfc, more...)
				return len(pfc) == test.hosts
			})
			for host, e := range pfc {
				sentNs := 10_000 + test.want + uint64(host)*100
				qt.Check(t, qt.Equals(e,
					PFCEvent{Port: uint32(2*host + 1), Class: dataClass, Pause: true,
						SentNs: sentNs, EffectNs: sentNs + 2*delayNs}))
			}
		})
	}
}

// TestPauseIsBounded: after PAUSE an ingress takes what is under way, and no more (headroom,
// 802.1Qbb).
func TestPauseIsBounded(t *testing.T) {
	const xoff = 20_000
	for _, k := range []timekeeping{exact, rounded} {
		t.Run(k.String(), func(t *testing.T) {
			l := star(2, func(name string, p *Port) {
				p.PFC = PFC{XOFFBytes: xoff, XONOffsetBytes: 2000}
				if name == "s->h1" {
					p.RateBps = gbit8 / 4
				}
			})
			l.options = k.options()
			n := newNetwork(t, l)
			n.run(backToBack(0, 1, dataClass, 120, 0))
			node, err := n.q.nodeStats(uint32(n.node("s")))
			n.check(err)
			const loop = 2 * 2 * delayNs // PAUSE to the host, and back
			qt.Check(t, qt.IsTrue(node.UsedMaxBytes <= xoff+gbit8/8*loop/1e9+2*frame1K),
				qt.Commentf("%d B", node.UsedMaxBytes))
			qt.Check(t, qt.IsTrue(node.UsedMaxBytes > xoff))
			qt.Check(t, qt.Equals(node.UsedBytes, 0))
			s := n.stats(n.id("s->h0"))
			qt.Check(t, qt.IsTrue(s.PauseSent > 1))
			qt.Check(t, qt.Equals(s.PauseSent, s.ResumeSent))
			n.checkCounters()
		})
	}
}

// TestTooManyEvents: with XOFF 0 each packet pauses and resumes its host, long before the first of
// these takes effect. More than there is room for are dropped in pairs: nobody is left paused, and
// the counter says so.
func TestTooManyEvents(t *testing.T) {
	const packets = 200
	l := star(2, func(name string, p *Port) {
		p.PFC = PFC{}
		p.PFCDelayNs = 2_000_000
	})
	l.options = rounded.options()
	n := newNetwork(t, l)
	spaced := backToBack(0, 1, dataClass, packets, 0)
	for i := range spaced {
		spaced[i].atNs *= 5 // more than the quantum
	}
	for run := range 2 { // the second finds what the first left
		for i, d := range n.run(spaced) {
			qt.Assert(t, qt.IsFalse(d.lost), qt.Commentf("run %d, packet %d", run, i))
		}
	}
	s := n.stats(1)
	qt.Check(t, qt.IsTrue(s.PFCOverflow > 0))
	qt.Check(t, qt.Equals(s.PFCOverflow%2, 0))
	qt.Check(t, qt.Equals(s.PauseReceived, s.ResumeReceived))
	sent := n.stats(2)
	qt.Check(t, qt.Equals(sent.PauseSent, 2*packets))
	qt.Check(t, qt.Equals(sent.ResumeSent, 2*packets))
	pfc, _ := n.events()
	qt.Check(t, qt.HasLen(pfc, 4*packets))
}

// TestNPECN: s0->s1 is paused because s1->h1 is congested by h2. All times are worked out by hand.
func TestNPECN(t *testing.T) {
	const data, cross = 60, 30
	l := &layout{
		hosts: []string{"h0", "h1", "h2"}, switches: []string{"s0", "s1"},
		links:   [][2]string{{"h0", "s0"}, {"s0", "s1"}, {"h1", "s1"}, {"h2", "s1"}},
		options: exact.options(),
		port: func(name string) Port {
			p := lossless(name, gbit8, delayNs, 256)
			if name == "s1->s0" {
				p.PFC = PFC{XOFFBytes: 4000, XONOffsetBytes: 2000}
			}
			return p
		},
	}
	n := newNetwork(t, l)
	// h2 takes s1->h1 from 1 to 31 us in a higher class; h0's frame i, from 1 on, is at s0 at i us
	packets := append(backToBack(0, 1, dataClass, data, 0),
		backToBack(2, 1, dataClass+2, cross, 0)...)
	got := n.run(packets)

	pfc, _ := n.events()
	qt.Assert(t, qt.DeepEquals(pfc, []PFCEvent{
		// frame 5 is at s1
		{Port: n.id("s0->s1"), Class: dataClass, Pause: true, SentNs: 9_000, EffectNs: 12_000},
		// 2 of 11 are left
		{Port: n.id("s0->s1"), Class: dataClass, Pause: false, SentNs: 39_000, EffectNs: 42_000},
	}))
	var marked []int
	for i, d := range got[:data] {
		if d.marked {
			marked = append(marked, i+1)
		}
	}
	var want []int
	for i := 1; i <= 10; i++ { // really congested at s1->h1: all but the last
		want = append(want, i)
	}
	// frames 12 to 42 were paused: PN is 31. Those behind find the link full: all but the last
	for i := 43; i < data; i++ {
		want = append(want, i)
	}
	qt.Check(t, qt.DeepEquals(marked, want))
	// never waits
	qt.Check(t, qt.IsFalse(slices.ContainsFunc(got[data:],
		func(d delivery) bool { return d.marked })))
	qt.Check(t, qt.Equals(n.stats(n.id("s0->s1")).MarkedPackets, 17))
	qt.Check(t, qt.Equals(n.stats(n.id("s1->h1")).MarkedPackets, 10))
	n.checkCounters()
}

// TestNoMarks: a port with NP-ECN off, or a lossy class, marks nothing however long its queue.
func TestNoMarks(t *testing.T) {
	n := newNetwork(t, star(3, func(name string, p *Port) {
		p.Classes[lossyClass].Lossless, p.Classes[lossyClass].Marked = false, false
		if name != "s->h2" {
			p.Marker = NoMarker
		}
	}))
	both := func(to, class int) []packet {
		return append(backToBack(0, to, class, 10, 0), backToBack(1, to, class, 10, 0)...)
	}
	for _, test := range []struct {
		name    string
		packets []packet
		want    int
	}{
		{"congested", both(2, dataClass), 19}, // all but the last
		{"lossy class", both(2, lossyClass), 0},
		{"NP-ECN off", append(backToBack(0, 1, dataClass, 10, 0),
			backToBack(2, 1, dataClass, 10, 0)...), 0},
	} {
		var marked int
		for _, d := range n.run(test.packets) {
			if d.marked {
				marked++
			}
		}
		qt.Check(t, qt.Equals(marked, test.want), qt.Commentf(test.name))
	}
}
