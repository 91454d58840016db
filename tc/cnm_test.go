// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"

	"pcn/cnp"
	"pcn/loader/ns/nstest"
)

const (
	dataClass    = dataDSCP >> 3
	controlClass = controlDSCP >> 3
	everyPacket  = 1 // byte between samples
)

// congestionPoint has Q_eq and w of 802.1Qau's defaults, and samples after so many bytes.
func congestionPoint(t *testing.T, sampleBaseBytes uint64) *CongestionPoint {
	t.Helper()
	nstest.RequireRoot(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: fabricOptions.Ports})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { m.Close() })
	return &CongestionPoint{
		QeqBytes: 26_000, W: 2, SampleBaseBytes: sampleBaseBytes, DataClass: dataClass, ControlClass: controlClass, QueueLengths: m,
	}
}

// newQCN is a network with these congestion points.
func newQCN(t *testing.T, c *CongestionPoint, ports ...FabricPort) *network {
	t.Helper()
	o := fabricOptions
	o.QCN = c
	return newNetworkOf(t, o, ports...)
}

// queue is as if the port's queue were so long.
func (c *CongestionPoint) queue(t *testing.T, port uint32, bytes uint64) {
	t.Helper()
	qt.Assert(t, qt.IsNil(c.QueueLengths.Put(port, bytes)))
}

// addressed is a flow from this host, whose stamp makes the source address, to that host.
func addressed(from, to uint8) flow {
	f := someFlow()
	f.src = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, from}), f.src.Port())
	f.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, to}), f.dst.Port())
	f.srcMAC = [6]byte{2, 0, 10, 0, 0, from}
	return f
}

// data is a segment of the class that is sampled.
func (f flow) data(t *testing.T, payloadLen int) []byte {
	t.Helper()
	return f.tcp(t, dataDSCP<<2|ect0, payloadLen)
}

// cnm is the CNM of a port, that answers the frame.
func cnm(t *testing.T, port uint32, frame []byte, c congestion) []byte {
	t.Helper()
	m, err := cnp.NewCNM(frame)
	qt.Assert(t, qt.IsNil(err))
	m.CPID, m.EncapsulatedPriority = uint64(port), dataClass
	m.QntzFb, m.CnmQOffset, m.CnmQDelta = c.qntzFb, cnp.CNMQueueUnits(c.qOffBytes), cnp.CNMQueueUnits(c.qDeltaBytes)
	b, err := m.MarshalBinary()
	qt.Assert(t, qt.IsNil(err))
	return b
}

// congestion is what a sample finds.
type congestion struct {
	qOffBytes, qDeltaBytes int64
	qntzFb                 uint8
}

// sampled is the congestion of a queue that was qOld at the last sample: 802.1Qau, in floating point.
func (c *CongestionPoint) sampled(q, qOld uint64) congestion {
	s := congestion{qOffBytes: int64(q - c.QeqBytes), qDeltaBytes: int64(q - qOld)}
	fb := float64(s.qOffBytes) + c.W*float64(s.qDeltaBytes) // -Fb
	units := fb * 63 / (float64(c.QeqBytes) * (2*c.W + 1))
	s.qntzFb = uint8(max(0, min(63, math.Floor(units))))
	return s
}

func TestCongestionPointIsChecked(t *testing.T) {
	good := congestionPoint(t, 150_000)
	for _, c := range []struct {
		change func(c *CongestionPoint)
		want   string
	}{
		{func(c *CongestionPoint) { c.QeqBytes = 0 }, "Q_eq 0 bytes, .*"},
		{func(c *CongestionPoint) { c.QeqBytes = 1 << 32 }, "Q_eq 4294967296 bytes, .* want 1 to 2\\^32 - 1"},
		{func(c *CongestionPoint) { c.SampleBaseBytes = 0 }, ".* samples every 0 bytes: .*"},
		{func(c *CongestionPoint) { c.SampleBaseBytes = 1 << 32 }, ".* samples every 4294967296 bytes: .*"},
		{func(c *CongestionPoint) { c.W = -1 }, "w -1, jitter 0: want 0 to 128, 0 to 1"},
		{func(c *CongestionPoint) { c.W = 129 }, "w 129, .*"},
		{func(c *CongestionPoint) { c.W = math.NaN() }, "w NaN, .*"},
		{func(c *CongestionPoint) { c.SampleJitter = -0.1 }, ".* jitter -0.1: .*"},
		{func(c *CongestionPoint) { c.SampleJitter = 1.1 }, ".* jitter 1.1: .*"},
		{func(c *CongestionPoint) { c.SampleJitter = math.NaN() }, ".* jitter NaN: .*"},
		{func(c *CongestionPoint) { c.QueueLengths = nil }, "no queue lengths: set QueueLengths"},
	} {
		o, changed := fabricOptions, *good
		c.change(&changed)
		o.QCN = &changed
		_, err := LoadFabric(o)
		qt.Check(t, qt.ErrorMatches(err, "fabric: congestion point: "+c.want))
	}
}

// Fb and its quantisation, worked out by hand: with Q_eq = 26000 and w = 2 one unit is 130000 / 63 = 2063.5 bytes.
func TestCNMs(t *testing.T) {
	c := congestionPoint(t, everyPacket)
	n := newQCN(t, c, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2})
	n.route(t, 0, 2, 2)
	frame := addressed(1, 2).data(t, 1000)
	for i, s := range []struct {
		queueBytes uint64
		want       congestion
	}{
		{0, congestion{}},
		{26_000, congestion{0, 26_000, 25}}, // 52000
		{26_000, congestion{}},              // as it should be
		{28_063, congestion{2_063, 2_063, 2}},
		{28_064, congestion{2_064, 1, 1}}, // 2066
		{28_064, congestion{2_064, 0, 1}},
		{28_060, congestion{}}, // 2052, less than a unit
		{28_064, congestion{2_064, 4, 1}},
		{26_001, congestion{}}, // it shrinks
		{26_000 + 129_999, congestion{129_999, 129_998, 63}},
		{26_000 + 129_999, congestion{129_999, 0, 62}},
		{26_000 + 130_000, congestion{130_000, 1, 63}},
		{100_000, congestion{}}, // long, but it shrinks by more than half of the rest
		{90_000, congestion{64_000, -10_000, 21}},
		{1 << 31, congestion{1<<31 - 26_000, 1<<31 - 90_000, 63}}, // more than its fields can say
		{0, congestion{}},
	} {
		c.queue(t, 2, s.queueBytes)
		n.ports[1].receive(t, vnetHeader{}, frame)
		want := map[uint32][][]byte{2: {frame}}
		if s.want.qntzFb > 0 {
			want[1] = [][]byte{cnm(t, 2, frame, s.want)}
		}
		qt.Assert(t, qt.DeepEquals(n.sent(t), want), qt.Commentf("sample %d: %+v", i, s))
	}
	qt.Assert(t, qt.Equals(n.drops(t), FabricDrops{}))
}

// Each egress port has a congestion point of its own, and any port's packets get their CNMs where they came from.
func TestCongestionPointsOfPorts(t *testing.T) {
	c := congestionPoint(t, everyPacket)
	n := newQCN(t, c, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2}, FabricPort{ID: 3}, FabricPort{ID: 4})
	n.route(t, 0, 3, 3)
	n.route(t, 0, 4, 4)
	rnd := rand.New(rand.NewPCG(11, 12))
	old := map[uint32]uint64{}
	answers := 0
	for i := range 2000 {
		in, out := uint32(1+rnd.IntN(2)), uint32(3+rnd.IntN(2))
		f := addressed(uint8(rnd.IntN(8)), uint8(out))
		f.dstMAC = [6]byte{byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32())}
		frame := f.data(t, 24+rnd.IntN(1400))
		q := rnd.Uint64N(1 << (10 + rnd.IntN(10)))
		c.queue(t, out, q)
		n.ports[in].receive(t, vnetHeader{}, frame)
		want := map[uint32][][]byte{out: {frame}}
		if s := c.sampled(q, old[out]); s.qntzFb > 0 {
			want[in] = [][]byte{cnm(t, out, frame, s)}
			answers++
		}
		old[out] = q
		qt.Assert(t, qt.DeepEquals(n.sent(t), want), qt.Commentf("packet %d, %d bytes queued at port %d", i, q, out))
	}
	qt.Assert(t, qt.IsTrue(answers > 500 && answers < 1500), qt.Commentf("%d CNMs", answers))
}

// Packets of every size and with every offload are answered, but those too short to be worth it.
func TestCNMAnswersReceivedPackets(t *testing.T) {
	const shortest = 24 // bytes of data, of which the CNM takes all
	c := congestionPoint(t, everyPacket)
	n := newQCN(t, c, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2}, FabricPort{ID: 3})
	n.route(t, 0, 3, 3)
	all := received
	for _, offload := range []vnetHeader{{}, unchecked()} {
		for _, payloadLen := range []int{shortest - 1, shortest, shortest + 1} {
			all = append(all, struct {
				payloadLen int
				offload    vnetHeader
			}{payloadLen, offload})
		}
	}
	for _, in := range []uint32{1, 2} {
		for _, r := range all {
			t.Run(fmt.Sprintf("%d bytes, offload %d, from port %d", r.payloadLen, r.offload.GSOType<<1|r.offload.Flags, in), func(t *testing.T) {
				c.queue(t, 3, 0)
				n.ports[in].receive(t, r.offload, addressed(1, 3).data(t, 100)) // the queue was empty
				c.queue(t, 3, 40_000)
				frame := addressed(1, 3).data(t, r.payloadLen)
				n.ports[in].receive(t, r.offload, frame)
				var want [][]byte
				if r.payloadLen >= shortest {
					want = [][]byte{cnm(t, 3, frame, congestion{14_000, 40_000, 45})} // 94000
				}
				sent := n.sent(t)
				qt.Check(t, qt.DeepEquals(sent[in], want))
				if r.offload == (vnetHeader{}) { // otherwise the checksum is done on the way
					qt.Check(t, qt.DeepEquals(sent[3][1:], [][]byte{frame}))
				}
			})
		}
	}
	qt.Assert(t, qt.Equals(n.drops(t), FabricDrops{}))
}

// Only the data class is sampled: what passes by in others costs a congestion point nothing.
func TestCongestionPointSamplesData(t *testing.T) {
	c := congestionPoint(t, 2100) // two segments of 1054 bytes
	n := newQCN(t, c, FabricPort{ID: 1}, FabricPort{ID: 2})
	n.route(t, 0, 2, 2)
	c.queue(t, 2, c.QeqBytes)
	others := func() {
		t.Helper()
		for dscp := range uint8(64) {
			if dscp>>3 != dataClass {
				n.ports[1].receive(t, vnetHeader{}, addressed(1, 2).tcp(t, dscp<<2, 1000))
			}
		}
		qt.Assert(t, qt.HasLen(n.sent(t)[1], 0))
	}
	data := func(dscp uint8) int {
		n.ports[1].receive(t, vnetHeader{}, addressed(1, 2).tcp(t, dscp<<2, 1000))
		return len(n.sent(t)[1])
	}
	others()
	qt.Check(t, qt.Equals(data(dataClass<<3), 0))
	others()
	qt.Check(t, qt.Equals(data(dataClass<<3|7), 1))
	others()
}

// The distance between samples shrinks from the base, by the three upper bits of the feedback, to an eighth.
func TestSamplingDistance(t *testing.T) {
	const base, frameLen = 30_000, 100
	for level := range 8 {
		t.Run(fmt.Sprint("level ", level), func(t *testing.T) {
			c := congestionPoint(t, base)
			n := newQCN(t, c, FabricPort{ID: 1}, FabricPort{ID: 2})
			n.route(t, 0, 2, 2)
			q := c.QeqBytes + uint64(2064*(8*level+1)) // one over the level's lowest unit
			if level == 0 {
				q = c.QeqBytes + 3*2064
			}
			c.queue(t, 2, q)
			frame := addressed(1, 2).data(t, frameLen-54)
			at := n.samples(t, frame, 1000)
			// The first, after the base, is of a queue that grew from 0.
			qt.Assert(t, qt.Equals(at[0], base/frameLen))
			credit := base / (1 + int(c.sampled(q, 0).qntzFb>>3))
			for i := 1; i < len(at); i++ {
				qt.Check(t, qt.Equals(at[i]-at[i-1], (credit+frameLen-1)/frameLen), qt.Commentf("sample %d", i))
				credit = base / (1 + level)
			}
			qt.Check(t, qt.IsTrue(len(at) >= 3))
		})
	}
}

// samples are the packets, of so many from 1 on, that port 1 got a CNM for.
func (n *network) samples(t *testing.T, frame []byte, packets int) (at []int) {
	t.Helper()
	for i := range packets {
		n.ports[1].receive(t, vnetHeader{}, frame)
		if len(n.sent(t)[1]) > 0 {
			at = append(at, i+1)
		}
	}
	return at
}

// With jitter distances differ by up to its share to both sides, as often up as down; the seed, and the port, decide.
func TestSamplingJitter(t *testing.T) {
	const base, frameLen, packets, jitter = 8 * 4000, 100, 4000, 0.15
	distances := func(seed, port uint32) (ds []int) {
		c := congestionPoint(t, base)
		c.SampleJitter, c.Seed = jitter, seed
		n := newQCN(t, c, FabricPort{ID: 1}, FabricPort{ID: port})
		n.route(t, 0, 2, port)
		c.queue(t, port, 1<<20) // the most congested: an eighth of the base
		at := n.samples(t, addressed(1, 2).data(t, frameLen-54), packets)
		for i := 1; i < len(at); i++ {
			ds = append(ds, at[i]-at[i-1])
		}
		return ds
	}
	const mean = base / 8 / frameLen
	first := distances(1, 2)
	sum, different := 0, map[int]bool{}
	for _, d := range first {
		sum += d
		different[d] = true
		qt.Check(t, qt.IsTrue(d >= mean*(1-jitter) && d <= mean*(1+jitter)+1), qt.Commentf("%d packets", d))
	}
	got := float64(sum) / float64(len(first))
	t.Logf("%d distances of %.1f packets on average, %d different", len(first), got, len(different))
	qt.Check(t, qt.IsTrue(math.Abs(got-mean-0.5) < 0.03*mean), qt.Commentf("%g", got)) // a sample is half a packet late
	qt.Check(t, qt.IsTrue(len(different) > mean*jitter))
	qt.Check(t, qt.DeepEquals(distances(1, 2), first))
	qt.Check(t, qt.Not(qt.DeepEquals(distances(2, 2), first)))
	qt.Check(t, qt.Not(qt.DeepEquals(distances(1, 3), first)))
}

// A CNM finds back to the host through other switches by its address, in the control class.
func TestCNMTravels(t *testing.T) {
	c := congestionPoint(t, everyPacket)
	n := newQCN(t, c,
		FabricPort{ID: 1, Node: 0, FromHost: true}, FabricPort{ID: 2, Node: 0, FromHost: true}, FabricPort{ID: 3, Node: 0},
		FabricPort{ID: 4, Node: 1}, FabricPort{ID: 5, Node: 1, FromHost: true})
	n.route(t, 0, 1, 1)
	n.route(t, 0, 2, 2)
	n.route(t, 0, 7, 3)
	n.route(t, 1, 7, 5)
	n.route(t, 1, 1, 4)
	c.queue(t, 5, 1<<20)
	for _, host := range []uint8{1, 2} {
		frame := addressed(host, 7).data(t, 1000)
		n.ports[uint32(host)].receive(t, vnetHeader{}, frame)
		qt.Assert(t, qt.DeepEquals(n.sent(t), map[uint32][][]byte{3: {frame}}))
		n.ports[4].receive(t, vnetHeader{}, frame)
		answer := n.sent(t)[4]
		qt.Assert(t, qt.HasLen(answer, 1))
		qt.Assert(t, qt.HasLen(answer[0], cnp.MaxCNMLen))
		c.queue(t, uint32(host), 1<<20) // it is never sampled itself
		n.ports[3].receive(t, vnetHeader{}, answer[0])
		qt.Assert(t, qt.DeepEquals(n.sent(t), map[uint32][][]byte{uint32(host): answer}))

		r := n.ingress(t, 3, answer[0], skBuff{CB: carry(1<<40, false), Priority: 99})
		qt.Check(t, qt.Equals(r.verdict, tcxRedirect))
		qt.Check(t, qt.Equals(r.skb.Priority, controlClass))
		qt.Check(t, qt.Equals(r.skb.Mark, 0x50430000|3))
		qt.Check(t, qt.Equals(r.skb.CB, carry(1<<40, false)))
		qt.Check(t, qt.DeepEquals(r.frame, answer[0]))
	}
	qt.Assert(t, qt.Equals(n.drops(t), FabricDrops{}))
	for _, to := range [][]byte{{2, 0, 10, 0, 0, 3}, {2, 0, 10, 0, 0, 8}, {2, 0, 9, 255, 255, 255}, {2, 0, 0, 0, 0, 1}} {
		before := n.drops(t).NoRoute
		n.ports[3].receive(t, vnetHeader{}, append(bytes.Clone(to), cnm(t, 5, addressed(1, 7).data(t, 1000), congestion{qntzFb: 1})[6:]...))
		qt.Check(t, qt.HasLen(n.sent(t), 0))
		qt.Check(t, qt.Equals(n.drops(t).NoRoute, before+1), qt.Commentf("to %x, no host or without route", to))
	}
}

// Of equal-cost paths a CNM takes the first.
func TestCNMTakesFirstPath(t *testing.T) {
	n := newECMP(t, 1, 2, 4)
	for host := range uint8(100) {
		frame := cnm(t, 2, addressed(2, host).data(t, 100), congestion{qntzFb: 1})
		qt.Assert(t, qt.Equals(n.path(t, 1, frame), 0))
	}
}

// A sampled packet that the last port marked is answered as marked.
func TestCNMOfMarkedPacket(t *testing.T) {
	c := congestionPoint(t, everyPacket)
	n := newQCN(t, c, FabricPort{ID: 1}, FabricPort{ID: 2})
	n.route(t, 0, 2, 2)
	c.queue(t, 2, 1<<20)
	f := addressed(1, 2)
	r := n.ingress(t, 1, f.data(t, 1000), skBuff{CB: carry(1<<40, true), Mark: 7})
	marked := f.tcp(t, dataDSCP<<2|ce, 1000)
	qt.Check(t, qt.DeepEquals(r.frame, marked))
	qt.Check(t, qt.Equals(r.skb.Mark, 0x50430000|1))
	qt.Check(t, qt.DeepEquals(n.sent(t)[1], [][]byte{cnm(t, 2, marked, c.sampled(1<<20, 0))}))
}

// The port's qdisc gets a CNM in the control class, as if it had come in by the port itself, at the sample's time.
func TestCNMTellsEgress(t *testing.T) {
	const markCNM = 0x504d0000
	c := congestionPoint(t, everyPacket)
	n := newQCN(t, c, FabricPort{ID: 39})
	frame := addressed(1, 2).data(t, 1000)
	for _, mark := range []uint32{0, markCNM | 1, 0x504e0000, 0x50430000 | 39} {
		in := skBuff{Ifindex: uint32(n.ports[39].ifindex), Mark: mark, Priority: 5, CB: carry(1<<40, true)}
		r := n.run(t, n.ns, "cnm_egress", frame, in)
		passes(t, r, frame)
		qt.Check(t, qt.Equals(r.skb.Mark, mark))
		qt.Check(t, qt.Equals(r.skb.Priority, 5))
	}
	r := n.run(t, n.ns, "cnm_egress", frame, skBuff{Ifindex: uint32(n.ports[39].ifindex), Mark: markCNM, Priority: 5, CB: carry(1<<40, false)})
	passes(t, r, make([]byte, cnp.MaxCNMLen)) // none was ever built
	qt.Check(t, qt.Equals(r.skb.Mark, 0x50430000|39))
	qt.Check(t, qt.Equals(r.skb.Priority, controlClass))
	qt.Check(t, qt.Equals(r.skb.CB, carry(1<<40, false)))
}

// A CNM that can't leave is counted, and the packet goes its way.
func TestCNMCountsFailure(t *testing.T) {
	c := congestionPoint(t, everyPacket)
	n := newQCN(t, c, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2})
	n.route(t, 0, 2, 2)
	c.queue(t, 2, 1<<20)
	nl := nstest.Netlink(t, n.ns)
	l, err := nl.LinkByIndex(n.ports[1].ifindex)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(nl.LinkSetDown(l)))
	frame := addressed(1, 2).data(t, 1000)
	n.ingress(t, 1, frame, skBuff{})
	qt.Check(t, qt.DeepEquals(n.sent(t), map[uint32][][]byte{2: {frame}}))
	qt.Check(t, qt.Equals(n.drops(t), FabricDrops{NoCNM: 1}))
}

// Without QCN a switch has no program at egress, and answers nothing.
func TestNoCongestionPoint(t *testing.T) {
	n := newNetwork(t, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2})
	n.route(t, 0, 2, 2)
	frame := addressed(1, 2).data(t, 1000)
	for range 1000 { // more than any distance between samples
		n.ports[1].receive(t, vnetHeader{}, frame)
	}
	sent := n.sent(t)
	qt.Check(t, qt.HasLen(sent, 1))
	qt.Check(t, qt.HasLen(sent[2], 1000))
	for _, id := range []uint32{1, 2} {
		qt.Check(t, qt.HasLen(attached(t, n.ports[id], ebpf.AttachTCXEgress), 0))
	}
	c := congestionPoint(t, everyPacket)
	with := newQCN(t, c, FabricPort{ID: 1})
	qt.Check(t, qt.DeepEquals(attached(t, with.ports[1], ebpf.AttachTCXEgress), []string{"cnm_egress"}))
}
