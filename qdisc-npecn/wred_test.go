// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// lostOf are the indices of the lost ones.
func lostOf(ds []delivery) (lost []int) {
	for i, d := range ds {
		if d.lost {
			lost = append(lost, i)
		}
	}
	return lost
}

// thresholds are where a port drops.
type thresholds struct{ wred, limit uint64 }

// dropping is a star whose ports s->h2, s->h3, ... have these thresholds. What h1 sends is not
// ECN-capable.
func dropping(k timekeeping, ports ...thresholds) *layout {
	const unmarkedClass = 2
	l := star(2+len(ports), func(name string, p *Port) {
		p.Classes[lossyClass].Lossless = false
		p.Classes[unmarkedClass].Marked = false
		for i, at := range ports {
			if name == fmt.Sprint("s->h", 2+i) {
				p.Marker, p.WREDBytes, p.LimitBytes = NoMarker, at.wred, at.limit
			}
		}
	})
	l.options = k.options()
	l.notECT = func(p packet) bool { return p.from == 1 }
	return l
}

// TestWREDAndLimit: a packet is dropped by the queue that it finds at its ideal arrival. h0's k-th,
// from 0 on, arrives at k us, just before the port starts a packet; h1's, not ECN-capable, 1 ns
// after. So h0's finds one packet more. All drops are worked out by hand.
func TestWREDAndLimit(t *testing.T) {
	const unmarkedClass = 2
	tests := []struct {
		at         thresholds
		want       []int
		wred, tail uint64
		queueMax   uint64
	}{
		// h1's that find 3 packets or more
		{thresholds{wred: 3000}, []int{7, 9, 11, 13, 15, 17, 19}, 7, 0, 4000},
		// or 4
		{thresholds{wred: 3001}, []int{9, 11, 13, 15, 17, 19}, 6, 0, 5000},
		// h0's that find 3
		{thresholds{limit: 3000}, []int{6, 8, 10, 12, 14, 16, 18}, 0, 7, 3000},
		// or 2
		{thresholds{limit: 2999}, []int{4, 6, 8, 10, 12, 14, 16, 18}, 0, 8, 2000},
		// h0 never finds 4
		{thresholds{wred: 2000, limit: 4000}, []int{5, 7, 9, 11, 13, 15, 17, 19}, 8, 0, 3000},
		// nor h1
		{thresholds{wred: 4000, limit: 3000}, []int{6, 8, 10, 12, 14, 16, 18}, 0, 7, 3000},
	}
	var ports []thresholds
	for _, test := range tests {
		ports = append(ports, test.at)
	}
	n := newNetwork(t, dropping(exact, ports...))
	for i, test := range tests {
		port := portName("s", fmt.Sprint("h", 2+i))
		for run, class := range []int{dataClass, lossyClass, unmarkedClass} {
			want := test.want
			if class == unmarkedClass {
				want = nil
			}
			about := qt.Commentf("%+v, class %d", test.at, class)
			packets := converging(class)
			for j := range packets {
				packets[j].to = 2 + i
			}
			got := n.run(packets)
			qt.Check(t, qt.DeepEquals(lostOf(got), want), about)
			got = slices.DeleteFunc(got, func(d delivery) bool { return d.lost })
			for j, d := range got { // the link is never idle
				qt.Check(t, qt.Equals(d.atNs, uint64(j+1)*1000+1000+2*delayNs), about)
			}
			s := n.stats(n.id(port))
			times := min(uint64(run)+1, 2)
			qt.Check(t, qt.Equals(s.Drops[DropWRED], times*test.wred), about)
			qt.Check(t, qt.Equals(s.Drops[DropTail], times*test.tail), about)
			qt.Check(t, qt.Equals(s.Dropped(), times*(test.wred+test.tail)), about)
			qt.Check(t, qt.Equals(s.EnqueuedBytes, uint64(run+1)*20_000), about)
			qt.Check(t, qt.Equals(s.SentBytes, s.EnqueuedBytes-s.Dropped()*frame1K), about)
			qt.Check(t, qt.Equals(s.QueuedBytes, 0), about)
			if class != unmarkedClass {
				qt.Check(t, qt.Equals(s.QueueMaxBytes, test.queueMax), about)
			}
			qt.Check(t, qt.Equals(n.kernelStats(port), kernelStats{
				SentPackets: s.SentPackets, SentBytes: s.SentBytes, DroppedPackets: s.Dropped(),
			}), about)
			n.checkReleased()
		}
	}
	n.checkCounters()
}

// checkReleased checks that the switch holds nothing, by its own account.
func (n *network) checkReleased() {
	n.t.Helper()
	buffer, ingress := n.accounts()
	qt.Check(n.t, qt.Equals(buffer, 0))
	for _, bytes := range ingress {
		qt.Check(n.t, qt.Equals(bytes, 0))
	}
}

// TestWREDByClass: the queue is that of the packet's class, whatever waits in others.
func TestWREDByClass(t *testing.T) {
	n := newNetwork(t, dropping(exact, thresholds{wred: 2000}))
	// 12 of the higher class are taken. When the lower's arrive, two of them wait, and then one and
	// the first of the lower.
	packets := append(converging(dataClass+1), backToBack(1, 2, dataClass, 2, 10_000)...)
	got := n.run(packets)
	qt.Check(t, qt.DeepEquals(lostOf(got), []int{5, 7, 9, 11, 13, 15, 17, 19}))
	n.checkCounters()
	n.checkReleased()
}

// TestFirstOfQueueIsTaken: an empty queue takes every packet, also one that is longer than the
// limit.
func TestFirstOfQueueIsTaken(t *testing.T) {
	n := newNetwork(t, dropping(exact, thresholds{wred: 1, limit: fullFrame}))
	got := n.run([]packet{
		{0, 2, dataClass, 4000, 0},
		{1, 2, dataClass, 4000, 1},    // waits for the first
		{0, 2, dataClass, 4000, 4000}, // finds it waiting
		{1, 2, dataClass, 4000, 100_000},
	})
	qt.Check(t, qt.DeepEquals(lostOf(got), []int{2}))
	n.checkCounters()
}

// crowded is a star whose slow port s->h2 drops what h1 sends beyond two packets.
func crowded(t testing.TB) *network {
	t.Helper()
	l := dropping(rounded, thresholds{wred: 2000})
	configure := l.port
	l.port = func(name string) Port {
		p := configure(name)
		if name == "s->h2" {
			p.RateBps = gbit8 / 100
		}
		return p
	}
	l.buffers = map[string]uint64{"s": 1 << 20}
	return newNetwork(t, l)
}

// TestDeletedWithDroppedSlots: dropped packets leave slots in the queue behind those that wait. A
// port that is deleted then frees the others, and leaves all accounts.
func TestDeletedWithDroppedSlots(t *testing.T) {
	n := crowded(t)
	port := n.id("s->h2")
	for round := range uint64(3) {
		fd := n.openSender(1, dataClass)
		n.t0Ns = n.nowNs() + 500_000 // the link is free again
		packets := backToBack(1, 2, dataClass, 20, 0)
		for _, p := range packets {
			n.check(n.sendFrame(fd, 0, p))
		}
		n.waitUntil("the second is on the wire, and the first is through", func() bool {
			s := n.stats(port)
			return s.SentPackets == 2*(round+1) && s.WirePackets == 1
		})
		s := n.stats(port)
		qt.Check(t, qt.Equals(s.Drops[DropWRED], (round+1)*17)) // the third waits
		qt.Check(t, qt.Equals(s.QueuedPackets, 1))
		qt.Check(t, qt.Equals(s.QueuedBytes, frame1K))
		kernel := n.kernelStats("s->h2")
		kernel.SentPackets, kernel.SentBytes = 0, 0
		qt.Check(t, qt.Equals(kernel,
			kernelStats{DroppedPackets: 17, QueuedPackets: 2, QueuedBytes: 2 * frame1K}))
		buffer, ingress := n.accounts()
		qt.Check(t, qt.Equals(buffer, frame1K))
		qt.Check(t, qt.DeepEquals(ingress, []uint64{0, frame1K, 0}))

		n.check(detach(n.nl[3], n.ifindex[port]))
		qt.Check(t, qt.Equals(n.stats(port).Drops[DropReset], (round+1)*2))
		qt.Check(t, qt.Equals(n.stats(port).QueuedPackets, 0))
		n.checkReleased()
		n.checkCounters()
		n.check(Attach(n.nl[3], n.ifindex[port]))
	}
	for i, d := range n.run(backToBack(1, 2, dataClass, 3, 500_000)) {
		qt.Check(t, qt.IsFalse(d.lost), qt.Commentf("packet %d", i))
	}
	n.checkCounters()
}
