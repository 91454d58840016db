// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// leaving are packets that leave a port one after another: from the first-th on, every everyNs, and
// each in takesNs.
type leaving struct {
	first            int
	atNs             uint64
	everyNs, takesNs uint64
}

// checkLeaving compares when the packets, from 1 on, have left, plus what is behind the port.
func checkLeaving(t *testing.T, got []delivery, want []leaving, behindNs uint64) {
	t.Helper()
	for i, d := range got {
		var l leaving
		for _, w := range want {
			if w.first <= i+1 {
				l = w
			}
		}
		end := l.atNs + uint64(i+1-l.first)*l.everyNs + l.takesNs
		qt.Check(t, qt.Equals(d.atNs, end+behindNs), qt.Commentf("packet %d", i+1))
	}
}

// TestRateChanges: each takes effect at its ideal time, for the next packet that starts. Packets,
// from 1 on, arrive at every us. All times are worked out by hand.
func TestRateChanges(t *testing.T) {
	for _, k := range []timekeeping{exact, rounded} {
		t.Run(k.String(), func(t *testing.T) {
			l := star(2, unchanged)
			l.options = k.options()
			l.rates = map[string][]RateChange{"s->h1": {
				{10_000, gbit8 / 2}, {25_500, gbit8 * 2}, {40_200, gbit8 / 100}, {40_400, gbit8},
				{100_000, gbit8 / 4},
			}}
			n := newNetwork(t, l)
			got := n.run(append(backToBack(0, 1, dataClass, 45, 0),
				backToBack(0, 1, dataClass, 2, 149_000)...))
			checkLeaving(t, got, []leaving{
				{1, 1000, 1000, 1000},    // as they arrive
				{10, 10_000, 2000, 2000}, // the tenth starts at the very time of the change
				// the one before was under way when the rate changed, and is not hurried
				{18, 26_000, 500, 500},
				{34, 34_000, 1000, 500},   // all that waited has left
				{41, 41_000, 1000, 1000},  // of two changes in between the latter
				{46, 150_000, 4000, 4000}, // it changed while the port was idle
			}, 2*delayNs)
			n.checkCounters()
		})
	}
}

// TestHostRateChanges: a host's port, which decides at once, changes at its ideal time too.
func TestHostRateChanges(t *testing.T) {
	for _, k := range []timekeeping{exact, rounded} {
		t.Run(k.String(), func(t *testing.T) {
			l := star(2, unchanged)
			l.options = k.options()
			l.rates = map[string][]RateChange{"h0->s": {{5_000, gbit8 / 2}, {10_500, gbit8}}}
			n := newNetwork(t, l)
			got := n.run(backToBack(0, 1, dataClass, 20, 0))
			checkLeaving(t, got, []leaving{{1, 0, 1000, 1000}, {6, 5_000, 2000, 2000},
				{9, 11_000, 1000, 1000}}, 1000+2*delayNs)
			n.checkCounters()
		})
	}
}

// TestMostRateChanges: as many as there may be, on two ports next to each other.
func TestMostRateChanges(t *testing.T) {
	l := star(2, unchanged)
	l.rates = map[string][]RateChange{}
	for _, port := range []string{"s->h0", "h1->s", "s->h1"} {
		for i := range uint64(rateChangesMax) {
			l.rates[port] = append(l.rates[port], RateChange{10_000 * (i + 1), gbit8 / (i%8 + 2)})
		}
	}
	n := newNetwork(t, l)
	var packets []packet
	var want []leaving
	for i := range uint64(rateChangesMax) + 1 {
		packets = append(packets, packet{0, 1, dataClass, frame1K, 10_000*i - min(i, 1)*1000 + 500})
		want = append(want, leaving{int(i + 1), packets[i].atNs + 1000, 0, 1000})
		if i > 0 {
			want[i].takesNs = 1000 * ((i-1)%8 + 2)
		}
	}
	checkLeaving(t, n.run(packets), want, 2*delayNs)
	n.checkCounters()
}

// TestLinkFails: a link that is down loses what starts on it, and what is under way when it fails.
// It comes back with the rate that it had, or another. Packets arrive at every us.
func TestLinkFails(t *testing.T) {
	for _, k := range []timekeeping{exact, rounded} {
		for _, port := range []string{"s->h1", "h0->s"} {
			t.Run(k.String()+" "+port, func(t *testing.T) {
				l := star(2, unchanged)
				l.options = k.options()
				const downNs, upNs, downAgainNs, upAgainNs = 20_000, 30_000, 60_000, 61_000
				l.rates = map[string][]RateChange{port: {
					{downNs, 0}, {upNs, gbit8}, {downAgainNs, 0}, {upAgainNs, gbit8},
				}}
				n := newNetwork(t, l)
				onLinkNs, sentNs := uint64(1000+2*delayNs), uint64(1000)
				behindNs := uint64(2 * delayNs)
				if port == "h0->s" { // a host has no delay of its own
					onLinkNs, sentNs, behindNs = 1000, 0, 1000+2*delayNs
				}
				var want []delivery
				losses := uint64(0)
				for i := range uint64(100) {
					starts := i*1000 + sentNs
					lost := false
					for _, down := range [][2]uint64{{downNs, upNs}, {downAgainNs, upAgainNs}} {
						lost = lost || starts < down[1] && starts+onLinkNs >= down[0]
					}
					if lost {
						losses++
						want = append(want, delivery{lost: true})
					} else {
						want = append(want, delivery{atNs: starts + 1000 + behindNs})
					}
				}
				got := n.run(backToBack(0, 1, dataClass, 100, 0))
				qt.Check(t, qt.IsTrue(slices.Equal(got, want)), qt.Commentf("%v\n%v", got, want))
				qt.Check(t, qt.Equals(n.stats(n.id(port)).Drops[DropLink], losses))
				qt.Check(t, qt.IsTrue(losses > 10 && losses < 50), qt.Commentf("%d", losses))
			})
		}
	}
}

// TestRateChangesToldLate: a port has its rate until it is told of another. One that is over when
// it is told takes effect with the next packet.
func TestRateChangesToldLate(t *testing.T) {
	l := star(2, unchanged)
	const port = "s->h1"
	l.rates = map[string][]RateChange{port: {{1, gbit8}}}
	n := newNetwork(t, l)
	l.rates = nil
	checkLeaving(t, n.run(backToBack(0, 1, dataClass, 3, 0)), []leaving{{1, 1000, 1000, 1000}},
		2*delayNs)
	n.check(n.q.ChangeRates(n.id(port), []RateChange{{n.nowNs() - 1, gbit8 / 2}}))
	checkLeaving(t, n.run(backToBack(0, 1, dataClass, 3, 0)), []leaving{{1, 1000, 2000, 2000}},
		2*delayNs)
	n.checkCounters()
}

func TestRateChangesAreChecked(t *testing.T) {
	l := star(2, unchanged)
	l.rates = map[string][]RateChange{"s->h0": {{1, 1}, {2, 2}}}
	q, err := Load(l.configure())
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { q.Close() })
	id := l.id("s->h0")
	for _, c := range []struct {
		id      uint32
		changes []RateChange
		want    string
	}{
		{id, nil, "change rate of port 2: 0 changes: it was configured for 2"},
		{id, []RateChange{{1, 1}}, ".* 1 changes: .*"},
		{id, []RateChange{{1, 1}, {2, 2}, {3, 3}}, ".* 3 changes: .*"},
		{id + 1, []RateChange{{1, 1}}, "change rate of port 3: 1 changes: it was configured for 0"},
		{l.portsMax(), nil, "change rate of port 5: there are 5 ports"},
		{id, []RateChange{{2, 1}, {1, 2}}, ".* at 1 ns, after one at 2 ns: want them in order"},
		{id, []RateChange{{0, 1}, {1, 2}}, ".* at 0 ns to 1 bit/s: want a time above 0"},
	} {
		qt.Check(t, qt.ErrorMatches(q.ChangeRates(c.id, c.changes), c.want))
	}
	qt.Check(t, qt.IsNil(q.ChangeRates(id, []RateChange{{2, 1}, {2, 2}})))
	qt.Check(t, qt.IsNil(q.ChangeRates(id+1, nil)))
}
