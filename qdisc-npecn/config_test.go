// SPDX-License-Identifier: Apache-2.0

package npecn

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"
)

// validOptions are two ports that pass every check.
func validOptions() Options {
	return star(1, unchanged).configure()
}

// manySlots are ports whose rings are within bounds, but not all together.
func manySlots(o *Options) []Port {
	ports := []Port{{}}
	for range 257 {
		p := o.Ports[1]
		for c := range p.Classes {
			p.Classes[c].Slots = ringMax
		}
		ports = append(ports, p)
	}
	return ports
}

func TestOptionsAreChecked(t *testing.T) {
	o := validOptions()
	qt.Assert(t, qt.IsNil(o.check()))

	for _, test := range []struct {
		change func(o *Options)
		want   string
	}{
		{func(o *Options) { o.Ports = nil }, "port id 0 is reserved: .*"},
		{func(o *Options) { o.Ports[0].RateBps = 1 }, "port id 0 is reserved: .*"},
		{func(o *Options) { o.Nodes = nil }, `port 1 \(h0->s\): node 0: there are 0 nodes`},
		{func(o *Options) { o.QuantumNs = 1000 }, "quantum 1000 ns is no power of two"},
		{func(o *Options) { o.DilationShift = 21 }, "dilation shift 21: want 0 to 20"},
		{func(o *Options) { o.EventsBytes = 1000 }, "ring buffer of 1000 bytes: .*"},
		{func(o *Options) { o.EventsBytes = 2048 }, "ring buffer of 2048 bytes: .*"},
		{func(o *Options) { o.Ports[1].RateBps = 0 }, `port 1 \(h0->s\): rate is 0`},
		{func(o *Options) { o.Ports[2].Peer = 3 }, `port 2 \(s->h0\): peer 3: there are 3 ports`},
		{func(o *Options) { o.Ports[2].Node = 2 }, `port 2 \(s->h0\): node 2: there are 2 nodes`},
		{func(o *Options) { o.QuantumNs = 8192 }, `port 1 \(h0->s\): PFC delay 6000 ns must exceed the quantum 8192 ns, .*`},
		{func(o *Options) { o.Ports[2].DelayNs = 1 }, `port 2 \(s->h0\): delay 1 ns must exceed the quantum 1 ns, .*`},
		{func(o *Options) { o.Ports[1].PFCDelayNs = 0 }, `port 1 \(h0->s\): PFC delay 0 ns must exceed the quantum 1 ns, .*`},
		{func(o *Options) { o.Ports[1].PFCDelayNs = 1 }, `port 1 \(h0->s\): PFC delay 1 ns must exceed the quantum 1 ns, .*`},
		{func(o *Options) { o.Ports[1].WireSlots = 1 }, `port 1 \(h0->s\): wire slots 1: want 2 to 1048576`},
		{func(o *Options) { o.Ports[1].WireSlots = 1<<20 + 1 }, `port 1 \(h0->s\): wire slots 1048577: .*`},
		{func(o *Options) { o.Ports[1].PFC.Alpha = -1 }, `port 1 \(h0->s\): alpha -1: want 0 to 64`},
		{func(o *Options) { o.Ports[1].PFC.Alpha = math.NaN() }, `port 1 \(h0->s\): alpha NaN: want 0 to 64`},
		{func(o *Options) { o.Ports = make([]Port, portsMax+1) }, "65537 ports: want at most 65536"},
		{func(o *Options) { o.Ports = manySlots(o) }, "2156135424 slots in all rings: want at most 2147483648"},
		{func(o *Options) { o.Ports[1].PFC.Alpha = 65 }, `port 1 \(h0->s\): alpha 65: want 0 to 64`},
		{func(o *Options) { o.Ports[1].Classes[7].Slots = 1 }, `port 1 \(h0->s\): class 7 has 1 slots: want 0, or 2 to 1048576`},
		{func(o *Options) { o.Ports[1].Classes[0].Slots = 1<<20 + 1 }, `port 1 \(h0->s\): class 0 has 1048577 slots: .*`},
	} {
		o := validOptions()
		test.change(&o)
		_, err := Load(o)
		qt.Check(t, qt.ErrorMatches(err, "qdisc npecn: "+test.want))
	}
}

// TestLossyPortsNeedNoPFCDelay: the check is for ports that PFC concerns.
func TestLossyPortsNeedNoPFCDelay(t *testing.T) {
	o := validOptions()
	for c := range o.Ports[1].Classes {
		o.Ports[1].Classes[c].Lossless, o.Ports[1].Classes[c].Marked = false, false
	}
	o.Ports[1].PFCDelayNs = 0
	qt.Assert(t, qt.IsNil(o.check()))
}

func TestLayoutOfRings(t *testing.T) {
	o := Options{Ports: make([]Port, 3), Nodes: make([]Node, 2)}
	for id := 1; id < 3; id++ {
		o.Ports[id] = Port{RateBps: 1, WireSlots: 5}
		o.Ports[id].Classes[2] = Class{Slots: 2, Lossless: true}
		o.Ports[id].Classes[7] = Class{Slots: 33}
		o.Ports[id].PFC = PFC{XOFFBytes: 7, XONOffsetBytes: 3, Alpha: 0.125}
	}
	ports, slots := o.layout()
	qt.Assert(t, qt.Equals(slots, 2*(8+2+64)))

	taken := make([]bool, slots)
	take := func(base, mask uint32) {
		for i := base; mask != 0 && i <= base+mask; i++ {
			qt.Assert(t, qt.IsFalse(taken[i]), qt.Commentf("slot %d is in two rings", i))
			taken[i] = true
		}
	}
	for _, p := range ports[1:] {
		qt.Check(t, qt.Equals(p.Wire.Mask, 7))
		qt.Check(t, qt.Equals(p.Classes[2].Queue.Mask, 1))
		qt.Check(t, qt.Equals(p.Classes[7].Queue.Mask, 63))
		qt.Check(t, qt.Equals(p.Classes[0].Queue.Mask, 0))
		qt.Check(t, qt.Equals(p.Classes[2].Lossless, 1))
		qt.Check(t, qt.Equals(p.Classes[7].Lossless, 0))
		qt.Check(t, qt.Equals(p.Pfc.Alpha, 32)) // Q8
		take(p.Wire.Base, p.Wire.Mask)
		for _, c := range p.Classes {
			take(c.Queue.Base, c.Queue.Mask)
		}
	}
}

func TestSlotsFor(t *testing.T) {
	for _, test := range []struct{ n, want uint32 }{{0, 0}, {1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {ringMax - 1, ringMax}, {ringMax, ringMax}} {
		qt.Check(t, qt.Equals(slotsFor(test.n), test.want), qt.Commentf("%d", test.n))
	}
}
