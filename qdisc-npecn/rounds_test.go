// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestWeights: h0 and h1 fill the port to h2 with frames of two classes, and a third goes before
// both. What the two are served follows their weights in each round, worked out by hand.
func TestWeights(t *testing.T) {
	const high, low, strict = 4, 2, 1
	for _, test := range []struct {
		name    string
		packets bool
		quanta  [2]uint32 // of high and low
		sizes   [2]int    // of their frames
		want    string    // classes in the order in which they start
	}{
		// rounds of 3 and 1; the class that begins is alone when its first frame starts
		{"bytes", false, [2]uint32{3000, 1000}, [2]int{1000, 1000}, "HHHLHHHLHHHL"},
		{"low has more", false, [2]uint32{1000, 2000}, [2]int{1000, 1000}, "HLLHLLHLLHLL"},
		// turns of 1500 bytes: the rest of one is kept for the next
		{"sizes", false, [2]uint32{1500, 1500}, [2]int{1000, 500}, "HLLLHHLLLHLLLHHLLL"},
		{"packets", true, [2]uint32{2, 1}, [2]int{500, 1000}, "HHLHHLHHLHHL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNetwork(t, star(3, func(name string, p *Port) {
				if name == "s->h2" {
					p.ByPackets = test.packets
					p.Classes[high].Quantum, p.Classes[low].Quantum = test.quanta[0], test.quanta[1]
					p.RateBps = gbit8 / 10
				}
			}))
			// frames of another class take the link until all have come
			packets := backToBack(0, 2, high+1, 5, 0)
			classes := []byte("XXXXX")
			for i := range len(test.want) {
				atNs := 20_000 + uint64(i)*1000
				packets = append(packets, packet{0, 2, high, test.sizes[0], atNs},
					packet{1, 2, low, test.sizes[1], atNs})
				classes = append(classes, 'H', 'L')
			}
			// the last to come, the first to go
			packets = append(packets, packet{0, 2, strict, frame1K, 40_000})
			classes = append(classes, 'S')
			got := n.run(packets)
			order := make([]byte, 0, len(packets))
			used := make([]bool, len(packets))
			for range packets {
				first := -1
				for i := range packets {
					qt.Assert(t, qt.IsFalse(got[i].lost))
					if !used[i] && (first < 0 || got[i].atNs < got[first].atNs) {
						first = i
					}
				}
				used[first] = true
				order = append(order, classes[first])
			}
			qt.Check(t, qt.Equals(string(order[:6+len(test.want)]), "XXXXXS"+test.want))
			n.checkCounters()
		})
	}
}

// TestShares: n queues of a lossy class that are full come to alpha / (1 + n alpha) of the buffer
// (Choudhury and Hahne, 1998, equation 3).
func TestShares(t *testing.T) {
	const buffer = 60_000
	for _, alpha := range []float64{0.5, 1, 4} {
		for queues := 1; queues <= 2; queues++ {
			t.Run(fmt.Sprintf("alpha %g, %d queues", alpha, queues), func(t *testing.T) {
				testShares(t, buffer, alpha, queues)
			})
		}
	}
}

func testShares(t *testing.T, buffer uint64, alpha float64, queues int) {
	l := star(6, func(name string, p *Port) {
		for c := range p.Classes {
			p.Classes[c].Lossless, p.Classes[c].Lossy = false, true
		}
		p.Marker = NoMarker
		if name == "s->h2" || name == "s->h5" {
			p.Classes[dataClass].Alpha = alpha
			p.RateBps = gbit8 / 20 // most of what arrives, stays
		}
	})
	l.buffers = map[string]uint64{"s": buffer}
	n := newNetwork(t, l)
	var packets []packet
	for i := range 60 {
		for q := range queues {
			packets = append(packets, packet{3 * q, 3*q + 2, dataClass, frame1K,
				uint64(i)*1000 + uint64(q)*100})
		}
	}
	n.run(packets)
	want := alpha / (1 + float64(queues)*alpha) * float64(buffer)
	for q := range queues {
		s := n.stats(n.id([]string{"s->h2", "s->h5"}[q]))
		// each queue's packet moves all thresholds by alpha packets
		off := float64(s.QueueMaxBytes) - want
		bound := (1 + float64(queues)*alpha) * frame1K
		qt.Check(t, qt.IsTrue(off >= -bound && off <= bound),
			qt.Commentf("alpha %g, %d queues: %d B, want %g", alpha, queues, s.QueueMaxBytes, want))
		qt.Check(t, qt.IsTrue(s.Drops[DropTail] > 0))
		qt.Check(t, qt.Equals(s.Lossy, s.Dropped()))
	}
	n.checkCounters()
}
