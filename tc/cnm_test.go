// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
)

const (
	dataClass    = dataDSCP >> 3
	controlClass = controlDSCP >> 3
)

// sample is what a port's congestion point found when it sent a packet.
type sample struct {
	port         uint32
	qntzFb       uint8
	qOff, qDelta int16 // in units of 64 bytes
}

// carry is what the port writes into the packet.
func (s sample) carry(timeNs uint64, ce bool) [5]uint32 {
	cb := carry(timeNs, ce)
	cb[0] |= uint32(s.qntzFb) << 1
	cb[3] = uint32(uint16(s.qOff))<<16 | uint32(uint16(s.qDelta))
	cb[4] = s.port
	return cb
}

// cnm is the CNM that answers the frame.
func (s sample) cnm(t *testing.T, frame []byte) []byte {
	t.Helper()
	m, err := cnp.NewCNM(frame)
	qt.Assert(t, qt.IsNil(err))
	m.CPID, m.QntzFb, m.CnmQOffset, m.CnmQDelta = uint64(s.port), s.qntzFb, s.qOff, s.qDelta
	m.EncapsulatedPriority = append(frame, 0, 0)[offIP+1] >> 5
	b, err := m.MarshalBinary()
	qt.Assert(t, qt.IsNil(err))
	return b
}

// everyPacket makes every packet that comes to the device a sample.
func (s sample) everyPacket(t *testing.T, h netns.NsHandle, ifindex int) {
	t.Helper()
	cb := s.carry(0, false)
	nstest.NewSampler(t, h, ifindex, cb[0], cb[3], cb[4]).Sample(t, true)
}

// someSample is one whose fields differ.
func someSample() sample { return sample{port: 5, qntzFb: 21, qOff: 1000, qDelta: -20} }

// cnm is a CNM to the flow's sender.
func (f flow) cnm(t *testing.T, qntzFb uint8) []byte {
	t.Helper()
	s := someSample()
	s.qntzFb = qntzFb
	return s.cnm(t, f.data(t, 1000))
}

// addressed is a flow from this host, whose stamp makes the source address, to that host.
func addressed(from, to uint8) flow {
	f := someFlow()
	f.src = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, from}), f.src.Port())
	f.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, to}), f.dst.Port())
	f.srcMAC = [6]byte{2, 0, 10, 0, 0, from}
	return f
}

// data is a segment of the class that congestion points sample.
func (f flow) data(t *testing.T, payloadLen int) []byte {
	t.Helper()
	return f.tcp(t, dataDSCP<<2|ect0, payloadLen)
}

// reflector is a device that answers samples.
type reflector struct {
	*object
	program string
	dev     *tap
	others  func(t *testing.T) int // frames that left by other devices, since the last call
	passes  uint32                 // its verdict on a good packet
}

// reflectors are a switch's ports, towards a host and a switch, and a host.
func reflectors(t *testing.T) map[string]reflector {
	t.Helper()
	n := newNetwork(t, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2}, FabricPort{ID: 3})
	n.route(t, 0, 2, 3)
	others := func(t *testing.T) int { return len(n.ports[3].sent(t)) }
	a, _ := newArrive(t, 0, os.Getpagesize())
	dev := newTap(t, nstest.New(t), "tap0", 7)
	qt.Assert(t, qt.IsNil(a.Attach(dev.ns, dev.ifindex)))
	return map[string]reflector{
		"port to a host":   {&n.object, "fabric", n.ports[1], others, tcxDrop},
		"port to a switch": {&n.object, "fabric", n.ports[2], others, tcxRedirect},
		"host":             {&a.object, "arrive", dev, nil, tcxNext},
	}
}

func (r reflector) arrive(t *testing.T, frame []byte, cb [5]uint32) result {
	t.Helper()
	return r.run(t, r.dev.ns, r.program, frame,
		skBuff{Ifindex: uint32(r.dev.ifindex), CB: cb, Mark: 7})
}

func (r reflector) counts(t *testing.T) CNMCounts {
	t.Helper()
	c, err := r.CNMs()
	qt.Assert(t, qt.IsNil(err))
	return c
}

// Every sample is answered, where it came from, by a CNM as package cnp writes it, and the packet
// goes its way.
func TestCNMAnswersSamples(t *testing.T) {
	for name, r := range reflectors(t) {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(11, 12))
			before := r.counts(t)
			const samples = 126 // each QntzFb twice
			for i := range samples {
				s := sample{rnd.Uint32(), uint8(1 + i%63), int16(rnd.Uint32()), int16(rnd.Uint32())}
				switch i {
				case 0:
					s = sample{math.MaxUint32, 1, math.MinInt16, math.MaxInt16}
				case 1:
					s = sample{0, 63, math.MaxInt16, math.MinInt16}
				case 2:
					s = sample{1, 63, -1, 0}
				}
				f := addressed(uint8(rnd.IntN(8)), 2)
				f.dstMAC = [6]byte{byte(rnd.Uint32()), byte(rnd.Uint32()), byte(rnd.Uint32())}
				tos := uint8(rnd.Uint32()) &^ 3
				frame := f.tcp(t, tos, 24+rnd.IntN(1400))
				if i%2 == 0 {
					frame = f.udp(t, tos, 36+rnd.IntN(1400))
				}
				got := r.arrive(t, frame, s.carry(1<<40, false))
				qt.Assert(t, qt.Equals(got.verdict, r.passes))
				qt.Assert(t, qt.DeepEquals(got.frame, frame))
				qt.Assert(t, qt.DeepEquals(r.dev.sent(t), [][]byte{s.cnm(t, frame)}),
					qt.Commentf("sample %d: %+v", i, s))
			}
			if r.others != nil {
				r.others(t)
			}
			after := r.counts(t)
			qt.Check(t, qt.Equals(CNMCounts{Sent: after.Sent - before.Sent, Lost: after.Lost},
				CNMCounts{Sent: samples}))
		})
	}
}

// What was not sampled is not answered, whatever is in its control buffer.
func TestNoCNMWithoutSample(t *testing.T) {
	for name, r := range reflectors(t) {
		t.Run(name, func(t *testing.T) {
			frame := addressed(1, 2).data(t, 1000)
			none, strange := someSample(), someSample().carry(1<<40, false)
			none.qntzFb = 0
			strange[0] ^= 1 << 8 // not the magic
			for _, cb := range [][5]uint32{{}, none.carry(1<<40, false), none.carry(1<<40, true),
				strange} {
				qt.Check(t, qt.Equals(r.arrive(t, frame, cb).verdict, r.passes))
				qt.Check(t, qt.HasLen(r.dev.sent(t), 0), qt.Commentf("%x", cb))
			}
			qt.Check(t, qt.DeepEquals(r.counts(t), CNMCounts{}))
		})
	}
}

// A sampled packet that the port marked is marked, and answered.
func TestCNMOfMarkedPacket(t *testing.T) {
	for name, r := range reflectors(t) {
		t.Run(name, func(t *testing.T) {
			f := addressed(1, 2)
			got := r.arrive(t, f.data(t, 1000), someSample().carry(1<<40, true))
			qt.Check(t, qt.DeepEquals(got.frame, f.tcp(t, dataDSCP<<2|ce, 1000)))
			sent := r.dev.sent(t)
			qt.Assert(t, qt.HasLen(sent, 1))
			got.frame[offIP+1] = sent[0][offMSDU+1] // before or after the mark, as it comes
			fixChecksum(got.frame)
			qt.Check(t, qt.DeepEquals(sent[0], someSample().cnm(t, got.frame)))
		})
	}
}

// A CNM has 64 bytes of its packet: none answers one that is shorter.
func TestCNMOfShortPackets(t *testing.T) {
	for name, r := range reflectors(t) {
		t.Run(name, func(t *testing.T) {
			for payloadLen := range 40 {
				frame := addressed(1, 2).data(t, payloadLen)
				r.arrive(t, frame, someSample().carry(1<<40, false))
				var want [][]byte
				if len(frame) >= 14+cnp.MaxMSDULen {
					want = [][]byte{someSample().cnm(t, frame)}
				}
				qt.Check(t, qt.DeepEquals(r.dev.sent(t), want),
					qt.Commentf("%d bytes of data", payloadLen))
			}
		})
	}
}

// Packets of every size and with every offload are answered alike.
func TestCNMAnswersReceivedPackets(t *testing.T) {
	for name, r := range reflectors(t) {
		someSample().everyPacket(t, r.dev.ns, r.dev.ifindex)
		for _, p := range received {
			t.Run(fmt.Sprintf("%s, %d bytes, offload %d", name, p.payloadLen,
				p.offload.GSOType<<1|p.offload.Flags), func(t *testing.T) {
				frame := addressed(1, 2).data(t, p.payloadLen)
				r.dev.receive(t, p.offload, frame)
				var want [][]byte
				if len(frame) >= 14+cnp.MaxMSDULen {
					want = [][]byte{someSample().cnm(t, frame)}
				}
				qt.Check(t, qt.DeepEquals(r.dev.sent(t), want))
				if r.others != nil {
					qt.Check(t, qt.IsTrue(r.others(t) > 0), qt.Commentf("the packet did not go on"))
				}
			})
		}
	}
}

// A CNM that can't leave is counted, and the packet goes its way.
func TestCNMCountsFailure(t *testing.T) {
	for name, r := range reflectors(t) {
		t.Run(name, func(t *testing.T) {
			nl := nstest.Netlink(t, r.dev.ns)
			l, err := nl.LinkByIndex(r.dev.ifindex)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsNil(nl.LinkSetDown(l)))
			before := r.counts(t).Lost
			frame := addressed(1, 2).data(t, 1000)
			got := r.arrive(t, frame, someSample().carry(1<<40, false))
			qt.Check(t, qt.Equals(got.verdict, r.passes))
			qt.Check(t, qt.DeepEquals(got.frame, frame))
			qt.Check(t, qt.DeepEquals(r.counts(t), CNMCounts{Lost: before + 1}))
		})
	}
}

// The port's qdisc gets a CNM in the control class: from a switch as if it had come in by the port
// itself, at the sample's time; from a host as its own, now.
func TestCNMTellsEgress(t *testing.T) {
	const markCNM, ingressMark = 0x504d0000, 0x50430000
	for name, r := range reflectors(t) {
		t.Run(name, func(t *testing.T) {
			frame := addressed(1, 2).data(t, 1000)
			for _, mark := range []uint32{0, markCNM | 1, 0x504e0000, ingressMark | 39} {
				in := skBuff{Ifindex: uint32(r.dev.ifindex), Mark: mark, Priority: 5,
					CB: carry(1<<40, true)}
				got := r.run(t, r.dev.ns, "cnm_egress", frame, in)
				passes(t, got, frame)
				qt.Check(t, qt.Equals(got.skb.Mark, mark))
				qt.Check(t, qt.Equals(got.skb.Priority, 5))
			}
			in := skBuff{Ifindex: uint32(r.dev.ifindex), Mark: markCNM, Priority: 5,
				CB: carry(1<<40, false)}
			got := r.run(t, r.dev.ns, "cnm_egress", frame, in)
			qt.Check(t, qt.Equals(got.verdict, tcxNext))
			qt.Check(t, qt.HasLen(got.frame, cnp.MaxCNMLen))
			qt.Check(t, qt.Equals(got.skb.Priority, controlClass))
			qt.Check(t, qt.Equals(got.skb.CB, carry(1<<40, false)))
			want := map[string]uint32{"port to a host": ingressMark | 1,
				"port to a switch": ingressMark | 2, "host": 0}[name]
			qt.Check(t, qt.Equals(got.skb.Mark, want))
		})
	}
}

// A CNM finds back to the host through switches by its address, in the control class.
func TestCNMTravels(t *testing.T) {
	n := newNetwork(t,
		FabricPort{ID: 1, Node: 0, FromHost: true}, FabricPort{ID: 2, Node: 0, FromHost: true},
		FabricPort{ID: 3, Node: 0},
		FabricPort{ID: 4, Node: 1}, FabricPort{ID: 5, Node: 1, FromHost: true})
	n.route(t, 0, 1, 1)
	n.route(t, 0, 2, 2)
	n.route(t, 0, 7, 3)
	n.route(t, 1, 1, 4)
	n.route(t, 1, 2, 4)
	n.route(t, 1, 7, 5)
	for _, host := range []uint32{1, 2} {
		frame := addressed(uint8(host), 7).data(t, 1000)
		answer := someSample().cnm(t, frame)
		n.ports[5].receive(t, vnetHeader{}, answer) // of the receiver
		qt.Assert(t, qt.DeepEquals(n.sent(t), map[uint32][][]byte{4: {answer}}))
		n.ports[3].receive(t, vnetHeader{}, answer)
		qt.Assert(t, qt.DeepEquals(n.sent(t), map[uint32][][]byte{host: {answer}}))
		// sampled by the first switch, and answered by the second
		n.ingress(t, 4, frame, skBuff{CB: someSample().carry(1<<40, false)})
		qt.Assert(t, qt.DeepEquals(n.sent(t)[4], [][]byte{answer}))

		r := n.ingress(t, 3, answer, skBuff{CB: carry(1<<40, false), Priority: 99})
		qt.Check(t, qt.Equals(r.verdict, tcxRedirect))
		qt.Check(t, qt.Equals(r.skb.Priority, controlClass))
		qt.Check(t, qt.Equals(r.skb.Mark, 0x50430000|3))
		qt.Check(t, qt.Equals(r.skb.CB, carry(1<<40, false)))
		qt.Check(t, qt.DeepEquals(r.frame, answer))
		n.sent(t)
	}
	qt.Assert(t, qt.Equals(n.drops(t), FabricDrops{}))
	for _, to := range [][]byte{{2, 0, 10, 0, 0, 3}, {2, 0, 10, 0, 0, 8}, {2, 0, 9, 255, 255, 255},
		{2, 0, 0, 0, 0, 1}} {
		before := n.drops(t).NoRoute
		n.ports[3].receive(t, vnetHeader{}, append(bytes.Clone(to),
			addressed(1, 7).cnm(t, 1)[6:]...))
		qt.Check(t, qt.HasLen(n.sent(t), 0))
		qt.Check(t, qt.Equals(n.drops(t).NoRoute, before+1),
			qt.Commentf("to %x, no host or without route", to))
	}
}

// Of equal-cost paths a CNM takes the first.
func TestCNMTakesFirstPath(t *testing.T) {
	n := newECMP(t, 1, 2, 4)
	for i := range uint16(100) {
		f := addressed(2, 3)
		f.src = netip.AddrPortFrom(f.src.Addr(), i+1)
		qt.Assert(t, qt.Equals(n.path(t, 1, f.cnm(t, 1)), 0))
	}
}
