// SPDX-License-Identifier: Apache-2.0

//go:build linux

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

// redOf makes port 2 mark by RED, with options that pass, and returns them.
func redOf(o *Options) *REDOptions {
	o.Ports[2].Marker, o.Ports[2].RED = RED, REDOptions{KMinBytes: 1000, KMaxBytes: 2000, PMax: 1}
	return &o.Ports[2].RED
}

// qcnOf makes port 2 a congestion point, with options that pass, and returns them.
func qcnOf(o *Options) *QCNOptions {
	o.Ports[2].Marker = QCN
	o.Ports[2].QCN = QCNOptions{QeqBytes: 26_000, W: 2, SampleBaseBytes: 150_000,
		SampleJitter: 0.15}
	return &o.Ports[2].QCN
}

// unmark leaves one class marked, which has no queue.
func unmark(p *Port) {
	for c := range p.Classes {
		p.Classes[c].Marked = c == 0
	}
	p.Classes[0].Slots = 0
}

func TestOptionsAreChecked(t *testing.T) {
	for _, change := range []func(o *Options){
		func(o *Options) {},
		func(o *Options) { redOf(o) },
		func(o *Options) { *redOf(o) = REDOptions{KMinBytes: 5, KMaxBytes: 5, PMax: 0.01} },
		func(o *Options) { qcnOf(o) },
		func(o *Options) { qcnOf(o).W, o.Ports[2].QCN.SampleJitter = 0, 0 },
		// RED's options are of no concern
		func(o *Options) { redOf(o).PMax, o.Ports[2].Marker = 0, NPECN },
		func(o *Options) { qcnOf(o).QeqBytes, o.Ports[2].Marker = 0, NPECN },
		func(o *Options) { o.Ports[2].RateChanges = rateChangesMax },
		func(o *Options) { redOf(o); o.Ports[2].WREDBytes, o.Ports[2].LimitBytes = 1, fullFrame },
		func(o *Options) { o.Ports[2].Marker, o.Ports[2].WREDBytes = NoMarker, 30_000 },
		func(o *Options) { qcnOf(o); o.Ports[2].LimitBytes = 1 << 40 },
	} {
		o := validOptions()
		change(&o)
		qt.Check(t, qt.IsNil(o.check()))
	}

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
		{func(o *Options) { o.QuantumNs = 8192 },
			`port 2 \(s->h0\): delay 6000 ns must exceed the quantum 8192 ns, .*`},
		{func(o *Options) { o.Ports[2].QuantumNs = 48 },
			`port 2 \(s->h0\): quantum 48 ns is no power of two`},
		{func(o *Options) { o.Ports[2].DecideNs = 48 },
			`port 2 \(s->h0\): decisions every 48 ns: that is no power of two`},
		{func(o *Options) { o.Ports[2].DecideNs = 8192 },
			`port 2 \(s->h0\): decisions after 2 ns and up to 8192 ns more: .*`},
		{func(o *Options) { o.EarlyNs = 3 },
			`port 2 \(s->h0\): early hand-over by 3 ns: want at most the port's lag, 2 ns, .*`},
		{func(o *Options) { o.Ports[2].DelayNs = 1 },
			`port 2 \(s->h0\): delay 1 ns must exceed the quantum 1 ns, .*`},
		{func(o *Options) { // a switch with a short link and a long one
			o.Nodes = make([]Node, 3)
			o.Ports = append(o.Ports, o.Ports[2], o.Ports[2])
			o.Ports[3].Peer, o.Ports[3].DelayNs = 4, 1025
			o.Ports[3].Node, o.Ports[4].Node = 1, 2
			o.Ports[4].Peer, o.Ports[4].QuantumNs = 3, 1024
		}, `port 4 \(s->h0\): quantum 1024 ns: want at most 2 ns, which a port behind it .*`},
		{func(o *Options) { o.Ports[1].PFCDelayNs = 0 },
			`port 1 \(h0->s\): PFC delay 0 ns must exceed the quantum 1 ns, .*`},
		{func(o *Options) { o.Ports[1].PFCDelayNs = 1 },
			`port 1 \(h0->s\): PFC delay 1 ns must exceed the quantum 1 ns, .*`},
		{func(o *Options) { o.Ports[1].WireSlots = 1 },
			`port 1 \(h0->s\): wire slots 1: want 2 to 1048576`},
		{func(o *Options) { o.Ports[1].WireSlots = 1<<20 + 1 },
			`port 1 \(h0->s\): wire slots 1048577: .*`},
		{func(o *Options) { o.Ports[1].PFC.Alpha = -1 },
			`port 1 \(h0->s\): alpha -1: want 0 to 64`},
		{func(o *Options) { o.Ports[1].PFC.Alpha = math.NaN() },
			`port 1 \(h0->s\): alpha NaN: want 0 to 64`},
		{func(o *Options) { o.Ports = make([]Port, portsMax+1) },
			"32769 ports: want at most 32768"},
		{func(o *Options) { o.Ports = manySlots(o) },
			"2156135424 slots in all rings: want at most 2147483648"},
		{func(o *Options) { o.Ports[1].PFC.Alpha = 65 },
			`port 1 \(h0->s\): alpha 65: want 0 to 64`},
		{func(o *Options) { o.Ports[1].Classes[7].Slots = 1 },
			`port 1 \(h0->s\): class 7 has 1 slots: want 0, or 2 to 1048576`},
		{func(o *Options) { o.Ports[1].Classes[0].Slots = 1<<20 + 1 },
			`port 1 \(h0->s\): class 0 has 1048577 slots: .*`},
		{func(o *Options) { o.Ports[2].Marker = OwnMarker + 1 },
			`port 2 \(s->h0\): marker 6: there is none`},
		{func(o *Options) { redOf(o).KMinBytes = 2001 },
			`port 2 \(s->h0\): RED 2001 to 2000 bytes, p_max 1: ` +
				`want k_min <= k_max < 2\^40, 0 < p_max <= 1`},
		{func(o *Options) { redOf(o).KMaxBytes = 1 << 40 },
			`port 2 \(s->h0\): RED 1000 to 1099511627776 bytes, .*`},
		{func(o *Options) { redOf(o).PMax = 0 }, `port 2 \(s->h0\): RED .* p_max 0: .*`},
		{func(o *Options) { redOf(o).PMax = -1 }, `port 2 \(s->h0\): RED .* p_max -1: .*`},
		{func(o *Options) { redOf(o).PMax = 1.1 }, `port 2 \(s->h0\): RED .* p_max 1.1: .*`},
		{func(o *Options) { redOf(o).PMax = math.NaN() }, `port 2 \(s->h0\): RED .* p_max NaN: .*`},
		{func(o *Options) { qcnOf(o).QeqBytes = 0 },
			`port 2 \(s->h0\): QCN: Q_eq 0 bytes, samples every 150000 bytes: want 1 to 2\^32 - 1`},
		{func(o *Options) { qcnOf(o).QeqBytes = 1 << 32 },
			`port 2 \(s->h0\): QCN: Q_eq 4294967296 bytes, .*`},
		{func(o *Options) { qcnOf(o).SampleBaseBytes = 0 },
			`port 2 \(s->h0\): QCN: .* samples every 0 bytes: .*`},
		{func(o *Options) { qcnOf(o).SampleBaseBytes = 1 << 32 },
			`port 2 \(s->h0\): QCN: .* samples every 4294967296 bytes: .*`},
		{func(o *Options) { qcnOf(o).W = -1 },
			`port 2 \(s->h0\): QCN: w -1, jitter 0.15: want 0 to 128, 0 to 1`},
		{func(o *Options) { qcnOf(o).W = 129 }, `port 2 \(s->h0\): QCN: w 129, .*`},
		{func(o *Options) { qcnOf(o).W = math.NaN() }, `port 2 \(s->h0\): QCN: w NaN, .*`},
		{func(o *Options) { qcnOf(o).SampleJitter = -0.1 },
			`port 2 \(s->h0\): QCN: w 2, jitter -0.1: .*`},
		{func(o *Options) { qcnOf(o).SampleJitter = 1.1 },
			`port 2 \(s->h0\): QCN: w 2, jitter 1.1: .*`},
		{func(o *Options) { qcnOf(o).SampleJitter = math.NaN() },
			`port 2 \(s->h0\): QCN: w 2, jitter NaN: .*`},
		{func(o *Options) { redOf(o); o.Ports[2].LimitBytes = 1513 },
			`port 2 \(s->h0\): limit 1513 bytes: want at least a frame, 1514 bytes`},
		{func(o *Options) { o.Ports[2].WREDBytes = 1 },
			`port 2 \(s->h0\): WRED at 1 bytes: ` +
				`NP-ECN marks packets that are not ECN-capable too: choose another marker`},
		{func(o *Options) { redOf(o); o.Ports[2].WREDBytes = 1; unmark(&o.Ports[2]) },
			`port 2 \(s->h0\): WRED at 1 bytes, limit 0 bytes, ` +
				`but no class is marked: they are for those that are`},
		{func(o *Options) { o.Ports[2].RateChanges = -1 },
			`port 2 \(s->h0\): -1 rate changes: want at most 64`},
		{func(o *Options) { o.Ports[2].RateChanges = 65 },
			`port 2 \(s->h0\): 65 rate changes: want at most 64`},
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
		o.Ports[id].Classes[7].Marked = true
		o.Ports[id].WREDBytes, o.Ports[id].LimitBytes = 11, 12
		o.Ports[id].Marker, o.Ports[id].Seed, o.Ports[id].RateChanges = RED, uint32(id-1)*7, 2
		o.Ports[id].RED = REDOptions{KMinBytes: 5, KMaxBytes: 6, PMax: 0.25}
		o.Ports[id].QCN = QCNOptions{QeqBytes: 9, W: 1.5, SampleBaseBytes: 8, SampleJitter: 0.5}
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
		qt.Check(t, qt.Equals(p.State.Wire.Mask, 7))
		qt.Check(t, qt.Equals(p.Classes[2].Queue.Mask, 1))
		qt.Check(t, qt.Equals(p.Classes[7].Queue.Mask, 63))
		qt.Check(t, qt.Equals(p.Classes[0].Queue.Mask, 0))
		qt.Check(t, qt.Equals(p.Classes[2].Config.Lossless, 1))
		qt.Check(t, qt.Equals(p.Classes[7].Config.Lossless, 0))
		qt.Check(t, qt.Equals(p.Config.Pfc.Alpha, 32)) // Q8
		qt.Check(t, qt.Equals(p.Classes[2].Config.Marked, 0))
		qt.Check(t, qt.Equals(p.Classes[7].Config.Marked, 1))
		qt.Check(t, qt.Equals(p.Config.Marker, 2))
		qt.Check(t, qt.Equals(p.Config.RateChanges, 2))
		red := p.Config.Red
		qt.Check(t, qt.DeepEquals([]uint64{red.KminBytes, red.KmaxBytes, uint64(red.Pmax)},
			[]uint64{5, 6, 1 << 22}))
		qt.Check(t, qt.DeepEquals([]uint64{p.Config.WredBytes, p.Config.LimitBytes},
			[]uint64{11, 12}))
		qcn := p.Config.Qcn
		qt.Check(t, qt.DeepEquals([]uint64{qcn.QeqBytes, qcn.SampleBaseBytes}, []uint64{9, 8}))
		qt.Check(t, qt.DeepEquals([]uint32{qcn.W, qcn.Jitter}, []uint32{0x180, 1 << 23})) // Q8, Q24
		qt.Check(t, qt.Equals(p.Classes[2].Qcn.CreditBytes, 8))
		take(p.State.Wire.Base, p.State.Wire.Mask)
		for _, c := range p.Classes {
			take(c.Queue.Base, c.Queue.Mask)
		}
	}
	for id, random := range map[int]uint32{1: 1, 2: 7} { // it may not be 0
		qt.Check(t, qt.Equals(ports[id].State.Random, random))
		qt.Check(t, qt.Equals(ports[id].Classes[0].Qcn.Random, random))
		qt.Check(t, qt.Equals(ports[id].Classes[2].Qcn.Random, 2<<24|uint32(id-1)*7))
	}
}

func TestSlotsFor(t *testing.T) {
	for _, test := range []struct{ n, want uint32 }{{0, 0}, {1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8},
		{ringMax - 1, ringMax}, {ringMax, ringMax}} {
		qt.Check(t, qt.Equals(slotsFor(test.n), test.want), qt.Commentf("%d", test.n))
	}
}

// TestLag: what is decided so late, and a quantum later, can still arrive in time.
func TestLag(t *testing.T) {
	o := Options{QuantumNs: 1024}
	for delayNs, want := range map[uint64]uint64{0: 0, 700: 400, 3_500: 2000, 3_584: 2048,
		5_000: 2048} {
		qt.Check(t, qt.Equals(o.lagNs(&Port{DelayNs: delayNs}), want),
			qt.Commentf("delay %d ns", delayNs))
	}
	o.LagNs = 3000
	qt.Check(t, qt.Equals(o.lagNs(&Port{DelayNs: 10_000}), 3000))
}

// TestQuantum: a port's own, or that of all; decisions may be rounded more; a host's port is exact.
func TestQuantum(t *testing.T) {
	o := Options{QuantumNs: 1024}
	for _, test := range []struct {
		Port
		want, decide uint64
	}{
		{Port{DelayNs: 5_000}, 1024, 1024},
		{Port{DelayNs: 5_000, QuantumNs: 64}, 64, 64},
		{Port{DelayNs: 5_000, QuantumNs: 64, DecideNs: 512}, 64, 512},
		{Port{DecideNs: 512}, 1, 1},
	} {
		qt.Check(t, qt.Equals(o.quantumNs(&test.Port), test.want))
		qt.Check(t, qt.Equals(o.decideNs(&test.Port), test.decide))
	}
}
