// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// timekeeping is how the emulation keeps time.
type timekeeping struct {
	shift     uint32
	quantumNs uint64
	earlyNs   uint64
}

func (k timekeeping) String() string {
	return fmt.Sprintf("shift %d, quantum %d ns, early by %d ns", k.shift, k.quantumNs, k.earlyNs)
}

func (k timekeeping) options() Options {
	return Options{QuantumNs: k.quantumNs, EarlyNs: k.earlyNs, DilationShift: k.shift,
		EventsBytes: 1 << 20}
}

var (
	// every ns of the papers' time is long enough to do all that is due in it
	exact   = timekeeping{16, 1, 0}
	rounded = timekeeping{10, 1024, 256} // as experiments run
)

// lossless configures a port with 8 lossless classes and no PFC threshold in reach. A host's has no
// propagation delay, as the lab's.
func lossless(name string, rateBps, delayNs uint64, slots uint32) Port {
	p := Port{RateBps: rateBps, DelayNs: delayNs, PFCDelayNs: delayNs, PFC: PFC{XOFFBytes: 1 << 40},
		Marker: NPECN, WireSlots: 1024}
	if name[0] == 'h' {
		p.DelayNs, p.PFCDelayNs, p.Marker = 0, 2*delayNs, NoMarker
	}
	for c := range p.Classes {
		p.Classes[c] = Class{Slots: slots, Lossless: true, Marked: true}
	}
	return p
}

// line is the way of a host's packets through a number of switches.
type line struct {
	switches         int
	rateBps, delayNs uint64
}

func TestSerialisationAndDelay(t *testing.T) {
	for _, test := range []struct {
		timekeeping
		lines []line
	}{
		{exact, []line{{0, 40e9, 5_000}, {1, 40e9, 5_000}, {2, 9_999_999_967, 3_001}}},
		{rounded, []line{{0, 1e9, 5_000}, {1, 40e9, 5_000}, {2, 40e9, 1_025}, {1, 800e9, 2_000},
			{1, 9_999_999_967, 3_001}, {3, 25e9, 100_000}}},
		{timekeeping{12, 256, 0}, []line{{1, 100e9, 500}}},
		// real speed
		{timekeeping{0, 1 << 20, 1 << 18}, []line{{1, 10e6, 4_000_000}, {1, 1e6, 2_000_000}}},
	} {
		t.Run(test.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(test.shift)))
			n := newNetwork(t, lines(test.timekeeping, test.lines))
			packets := make([][]packet, len(test.lines))
			var all []packet
			for i, l := range test.lines {
				packets[i] = linePackets(rng, i, l)
				all = append(all, packets[i]...)
			}
			got := n.run(all)
			for i, l := range test.lines {
				for j, want := range l.deliverNs(packets[i]) {
					qt.Assert(t, qt.Equals(got[0].atNs, want),
						qt.Commentf("line %+v, packet %d", l, j))
					got = got[1:]
				}
			}
			n.checkCounters()
		})
	}
}

// lines puts the lines side by side.
func lines(k timekeeping, ls []line) *layout {
	l := &layout{options: k.options()}
	for i := range ls {
		from, to := fmt.Sprint("h", i), fmt.Sprint("h", i, "to")
		l.hosts = append(l.hosts, from, to)
		at := from
		for j := range ls[i].switches {
			s := fmt.Sprint("s", i, "x", j)
			l.switches = append(l.switches, s)
			l.links = append(l.links, [2]string{at, s})
			at = s
		}
		l.links = append(l.links, [2]string{at, to})
	}
	l.port = func(name string) Port {
		var i int
		if _, err := fmt.Sscanf(name[1:], "%d", &i); err != nil {
			panic(err)
		}
		p := lossless(name, ls[i].rateBps, ls[i].delayNs, 512)
		if short := 8 * k.quantumNs; ls[i].delayNs < short && k == rounded { // as experiments do
			p.QuantumNs = 128
		}
		return p
	}
	return l
}

// linePackets are packets of all sizes that load line i by about 1, in bursts.
func linePackets(rng *rand.Rand, i int, l line) []packet {
	const sizeMax = 2000
	var packets []packet
	var atNs uint64
	for range 60 {
		size := minFrame + rng.IntN(sizeMax-minFrame)
		packets = append(packets,
			packet{from: 2 * i, to: 2*i + 1, class: 3, size: size, atNs: atNs})
		if rng.IntN(3) == 0 {
			atNs += rng.Uint64N(3 * sizeMax * 8e9 / l.rateBps)
		}
	}
	return packets
}

// deliverNs is when the packets arrive at the other host.
func (l line) deliverNs(packets []packet) []uint64 {
	at := make([]uint64, len(packets))
	for i, p := range packets {
		at[i] = p.atNs
	}
	for hop := range l.switches + 1 {
		delayNs := l.delayNs
		if hop == 0 {
			delayNs = 0 // a host's port only serialises
		}
		var linkFreeNs uint64
		var busy busyPeriod
		for i, p := range packets {
			linkFreeNs = busy.send(max(at[i], linkFreeNs), linkFreeNs, uint64(p.size), l.rateBps)
			at[i] = linkFreeNs + delayNs
		}
	}
	return at
}

// checkCounters fails if a packet came after its ideal time had been decided, or a port's counters
// do not add up.
func (n *network) checkCounters() {
	n.t.Helper()
	for id := uint32(1); id < n.portsMax(); id++ {
		s := n.stats(id)
		name := qt.Commentf("port %s: %+v", n.config.Ports[id].Name, s)
		qt.Check(n.t, qt.Equals(s.Causality, 0), name)
		qt.Check(n.t, qt.Equals(s.PFCOverflow, 0), name)
		// of those that were taken in
		dropped := s.Drops[DropWRED] + s.Drops[DropTail] + s.Drops[DropReset]
		qt.Check(n.t, qt.Equals(s.EnqueuedPackets,
			s.DeliveredPackets+s.QueuedPackets+s.WirePackets+dropped), name)
	}
}
