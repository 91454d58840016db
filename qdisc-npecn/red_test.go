// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// markedOf are the indices of the marked ones.
func markedOf(ds []delivery) (marked []int) {
	for i, d := range ds {
		if d.marked {
			marked = append(marked, i)
		}
	}
	return marked
}

// converging are packets of h0 and h1 to h2, 1 ns apart, in the order in which they leave s->h2.
// The k-th, from 1 on, leaves at k us; behind it are k-1 of the first 20, and from the eleventh on
// 20-k.
func converging(class int) []packet {
	var packets []packet
	for i := range uint64(10) {
		packets = append(packets, packet{0, 2, class, frame1K, i * 1000},
			packet{1, 2, class, frame1K, i*1000 + 1})
	}
	return packets
}

// TestRED: a packet is marked by the queue it leaves behind at its ideal start. Those that arrive
// later, but before the port decides, do not count. All times are worked out by hand.
func TestRED(t *testing.T) {
	const threshold, unmarkedClass = 5000, 2
	for _, k := range []timekeeping{exact, rounded} {
		t.Run(k.String(), func(t *testing.T) {
			l := star(3, func(name string, p *Port) {
				p.Classes[lossyClass].Lossless = false
				p.Classes[unmarkedClass].Marked = false
				if name == "s->h2" {
					p.Marker, p.RED = RED,
						REDOptions{KMinBytes: threshold, KMaxBytes: threshold, PMax: 1}
				}
			})
			l.options = k.options()
			n := newNetwork(t, l)
			// of the 6th and 15th exactly the threshold are left
			want := []int{6, 7, 8, 9, 10, 11, 12, 13}
			for run, c := range []struct {
				class int
				want  []int
			}{{dataClass, want}, {lossyClass, want}, {unmarkedClass, nil}} {
				got := n.run(converging(c.class))
				for i, d := range got {
					qt.Check(t, qt.Equals(d.atNs, uint64(i+1)*1000+1000+2*delayNs),
						qt.Commentf("class %d, packet %d", c.class, i))
				}
				qt.Check(t, qt.DeepEquals(markedOf(got), c.want), qt.Commentf("class %d", c.class))
				qt.Check(t, qt.Equals(n.stats(n.id("s->h2")).MarkedPackets,
					uint64(min(8*(run+1), 16))))
			}
			n.checkCounters()
		})
	}
}

// TestREDByClass: the queue is that of the packet's class, whatever waits in others.
func TestREDByClass(t *testing.T) {
	n := newNetwork(t, star(3, func(name string, p *Port) {
		if name == "s->h2" {
			p.Marker, p.RED = RED, REDOptions{KMinBytes: 2000, KMaxBytes: 2000, PMax: 1}
		}
	}))
	// the higher class goes first; then the 4 of the lower leave 3, 2, 1 and 0 behind
	got := n.run(append(converging(dataClass+1), backToBack(0, 2, dataClass, 4, 10_000)...))
	qt.Check(t, qt.DeepEquals(markedOf(got),
		[]int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20}))
	n.checkCounters()
}

// standing are packets of which so many leave s->h2 with exactly queue more behind each: h1 sends a
// burst of as many while h0 sends for longer, at the rate of the link. first is the first of them.
func standing(queue, count int) (packets []packet, first int) {
	for i := range queue {
		packets = append(packets, packet{0, 2, dataClass, frame1K, uint64(i) * 1000},
			packet{1, 2, dataClass, frame1K, uint64(i)*1000 + 1})
	}
	// the k-th packet, from 1 on, leaves at k us, when h0's k-th and all of h1's are there
	return append(packets, backToBack(0, 2, dataClass, count, uint64(queue)*1000)...), queue
}

// red is a star whose port s->h2 marks with probability 0 at 2000 bytes, pMax at 22000 and 1 above.
func red(pMax float64, seed uint32) *layout {
	l := star(3, func(name string, p *Port) {
		for c := range p.Classes {
			p.Classes[c].Slots = 4096
		}
		if name == "s->h2" {
			p.Marker, p.RED, p.Seed = RED,
				REDOptions{KMinBytes: 2000, KMaxBytes: 22_000, PMax: pMax}, seed
		}
	})
	l.options = rounded.options()
	return l
}

const someSeed = 0x9e3779b9

// TestREDProbability: over many packets with the same queue, the share of marks is RED's
// probability.
func TestREDProbability(t *testing.T) {
	const packets, pMax = 600, 0.5
	for _, c := range []struct {
		queue int // packets
		want  float64
	}{{2, 0}, {7, 0.125}, {22, 0.5}, {23, 1}} {
		t.Run(fmt.Sprint(c.queue, " packets"), func(t *testing.T) {
			n := newNetwork(t, red(pMax, someSeed))
			all, first := standing(c.queue, packets)
			got := n.run(all)
			slices.SortFunc(got, func(a, b delivery) int { return int(a.atNs) - int(b.atNs) })
			marks := 0
			for i, d := range got {
				qt.Assert(t, qt.Equals(d.atNs, uint64(i+1)*1000+1000+2*delayNs))
				if d.marked && i >= first && i < packets {
					marks++
				}
			}
			counted := float64(packets - first)
			share, sd := float64(marks)/counted, math.Sqrt(c.want*(1-c.want)/counted)
			t.Logf("%.4f, want %.4f +- %.4f", share, c.want, 3*sd)
			qt.Check(t, qt.IsTrue(math.Abs(share-c.want) <= 3*sd))
		})
	}
}

// TestREDIsReproducible: the seed decides, and nothing else.
func TestREDIsReproducible(t *testing.T) {
	all, _ := standing(12, 300)
	var marks [3][]int
	for i, seed := range []uint32{someSeed, someSeed, someSeed + 1} {
		t.Run(fmt.Sprint("network ", i),
			func(t *testing.T) { marks[i] = markedOf(newNetwork(t, red(0.5, seed)).run(all)) })
	}
	qt.Check(t, qt.IsTrue(len(marks[0]) > 30))
	qt.Check(t, qt.DeepEquals(marks[1], marks[0]))
	qt.Check(t, qt.Not(qt.DeepEquals(marks[2], marks[0])))
}
