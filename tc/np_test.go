// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// newNP attaches a notification point to a device of its own.
func newNP(t *testing.T, o npOptions) (*NP, *tap) {
	t.Helper()
	h := nstest.New(t)
	dev := newTap(t, h, "tap0", 1)
	n := loadNP(t, o)
	qt.Assert(t, qt.IsNil(n.Attach(h, dev.ifindex)))
	return n, dev
}

// arrive hands NP a packet with its ideal time of arrival.
func (n *NP) arrive(t *testing.T, dev *tap, timeNs uint64, frame []byte) result {
	t.Helper()
	return n.run(t, dev.ns, "np_ingress", frame,
		skBuff{Ifindex: uint32(dev.ifindex), CB: carry(timeNs, false)})
}

func TestNPOptionsAreChecked(t *testing.T) {
	for _, o := range []HostNPOptions{
		{TNs: 0, CongestedShare: 0.95},
		{TNs: 50000, CongestedShare: 1},
		{TNs: 50000, CongestedShare: -0.1},
		{TNs: 50000, CongestedShare: math.NaN()},
	} {
		_, err := LoadHostNP(o)
		qt.Check(t, qt.ErrorMatches(err, "np: T .* want T above 0 and a share of 0 to below 1"))
	}
}

// received are packets as devices hand them over: of every size and with every offload:
// checksummed, or not, as after GRO, or many segments in one.
var received = []struct {
	payloadLen int
	offload    vnetHeader
}{
	{1, vnetHeader{}},
	{6, vnetHeader{}}, // 60 bytes, the shortest of Ethernet
	{20, vnetHeader{}},
	{21, vnetHeader{}},
	{536, vnetHeader{}},
	{1460, vnetHeader{}},
	{8960, vnetHeader{}},
	{1, unchecked()},
	{19, unchecked()},
	{20, unchecked()}, // as long as a CNP
	{59, unchecked()},
	{60, unchecked()},
	{61, unchecked()},
	{1460, unchecked()},
	{2 * 1460, segments(1460)},
	{math.MaxUint16 - 40, segments(1460)},
}

// What NP answers to a packet that a device received is a CNP as package cnp writes it.
func TestNPAnswersReceivedPackets(t *testing.T) {
	const everyPacketNs = 1
	n, dev := newNP(t, npOptions{TNs: everyPacketNs, CongestedShare: 0.95})
	want := Counts{}
	for i, c := range received {
		for _, tos := range []uint8{ect0, ce} {
			t.Run(fmt.Sprintf("%d bytes, offload %d, ECN %d", c.payloadLen,
				c.offload.GSOType<<1|c.offload.Flags, tos), func(t *testing.T) {
				f := someFlow()
				f.src = netip.AddrPortFrom(f.src.Addr(), uint16(5000+i<<2+int(tos))) // a new flow
				frame := f.tcp(t, tos, c.payloadLen)
				dev.receive(t, c.offload, frame)
				qt.Assert(t, qt.HasLen(dev.sent(t), 0),
					qt.Commentf("the first packet opens the window"))
				dev.receive(t, c.offload, frame)
				sent := dev.sent(t)
				qt.Assert(t, qt.HasLen(sent, 1))
				qt.Assert(t, qt.HasLen(sent[0], cnp.FrameLen))
				got, err := cnp.Parse(sent[0])
				qt.Assert(t, qt.IsNil(err))
				// The rate depends on the time between the two.
				qt.Assert(t, qt.DeepEquals(sent[0], encode(t, f.cnp(tos == ce, got.RecRateMbps))))
				qt.Assert(t, qt.Equals(got.RecRateMbps > 0, tos == ce))
			})
			if tos == ce {
				want["cnp_decrease"]++
			} else {
				want["cnp_increase"]++
			}
		}
	}
	got, err := n.Counts()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(nonZero(t, got, err), want))
}

// Fig. 8, with arrivals to the ns. Fig. 8 itself is tested in tests/algo.
func TestNPWindows(t *testing.T) {
	const (
		tNs      = 50_000
		startNs  = 1_000_000
		frameLen = 1000
	)
	type arrival struct {
		afterNs uint64 // since the one before
		ce      bool
	}
	repeat := func(n int, a arrival) (as []arrival) {
		for range n {
			as = append(as, a)
		}
		return as
	}
	concat := func(parts ...[]arrival) (as []arrival) {
		for _, p := range parts {
			as = append(as, p...)
		}
		return as
	}
	mbps := func(packets, ns uint64) uint32 {
		return uint32(math.Round(float64(packets*frameLen*8000) / float64(ns)))
	}
	for _, c := range []struct {
		name     string
		arrivals []arrival
		want     []cnp.CNP // Decrease and RecRateMbps
	}{
		{"one packet", []arrival{{0, true}}, nil},
		{"window still open", []arrival{{0, true}, {tNs - 1, true}}, nil},
		{"one packet in T, the first ever", []arrival{{0, true}, {tNs, true}},
			[]cnp.CNP{{Decrease: true, RecRateMbps: mbps(1, tNs)}}},
		{"one packet in T: pSize / interArrivalTime",
			[]arrival{{0, true}, {80_000, true}, {90_000, true}}, []cnp.CNP{
				{Decrease: true, RecRateMbps: mbps(1, tNs)},
				{Decrease: true, RecRateMbps: mbps(1, 80_000)},
			}},
		{"two packets in T", []arrival{{0, true}, {25_000, true}, {25_000, true}},
			[]cnp.CNP{{Decrease: true, RecRateMbps: mbps(2, tNs)}}},
		{"fifty packets in T", repeat(51, arrival{1000, true}),
			[]cnp.CNP{{Decrease: true, RecRateMbps: mbps(50, tNs)}}},
		{"none marked", repeat(51, arrival{1000, false}), []cnp.CNP{{}}},
		{"95% marked is not more than 95%", concat(
			repeat(19, arrival{2500, true}), repeat(1, arrival{2500, false}),
			repeat(1, arrival{2500, true})), []cnp.CNP{{}}},
		{"96% marked", concat(
			repeat(24, arrival{2000, true}), repeat(1, arrival{2000, false}),
			repeat(1, arrival{2000, false})),
			[]cnp.CNP{{Decrease: true, RecRateMbps: mbps(25, tNs)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, dev := newNP(t, npOptions{TNs: tNs, CongestedShare: 0.95, IdealTime: true})
			f := someFlow()
			now := uint64(startNs)
			for _, a := range c.arrivals {
				now += a.afterNs
				tos := uint8(ect0)
				if a.ce {
					tos = ce
				}
				n.arrive(t, dev, now, f.tcp(t, tos, frameLen-54))
			}
			var want [][]byte
			for _, w := range c.want {
				want = append(want, encode(t, f.cnp(w.Decrease, w.RecRateMbps)))
			}
			qt.Assert(t, qt.DeepEquals(dev.sent(t), want))
		})
	}
}

// RecRate to its last bit: 400 packets within 1 ns are more than 2^32 Mbit/s.
func TestNPLargestRate(t *testing.T) {
	n, dev := newNP(t, npOptions{TNs: 1, CongestedShare: 0.95, IdealTime: true})
	f := someFlow()
	frame := f.tcp(t, ce, 1460)
	for range 400 {
		n.arrive(t, dev, 1000, frame)
	}
	n.arrive(t, dev, 1001, frame)
	qt.Assert(t, qt.DeepEquals(dev.sent(t), [][]byte{encode(t, f.cnp(true, math.MaxUint32))}))
}

// RecRate in finer units than the paper's, from which RP makes the same rate.
func TestRateUnit(t *testing.T) {
	const unitBps = 10_000
	n, dev := newNP(t, npOptions{TNs: 50_000, CongestedShare: 0.95, RateUnitBps: unitBps,
		IdealTime: true})
	f := someFlow()
	frame := f.tcp(t, ce, 1460)
	n.arrive(t, dev, 1000, frame)
	n.arrive(t, dev, 820_000, frame)
	wantBps := float64(len(frame)) * 8e9 / 50_000 // of one packet, and no gap, in T
	want := uint32(math.Round(wantBps / unitBps))
	qt.Assert(t, qt.DeepEquals(dev.sent(t), [][]byte{encode(t, f.cnp(true, want))}))

	spec, err := loadRp()
	qt.Assert(t, qt.IsNil(err))
	obj, err := load("rp", pruned(spec),
		map[string]any{rpVarNpParams: npPcnNpParams{RateUnitBps: unitBps},
			rpVarParams: rpPcnRpParams{
				LineRateBps: lineRateBps, MinRateBps: unitBps, W_min: wMin * q24, W_max: wMax * q24,
			}}, nil)
	qt.Assert(t, qt.IsNil(err))
	r := &RP{object: obj}
	t.Cleanup(func() { r.Close() })
	r.add(t, f)
	r.run(t, here, "rp_ingress", encode(t, f.cnp(true, want)), skBuff{})
	qt.Check(t, qt.Equals(r.flow(t, f).Sender.RecRateBps, uint64(want)*unitBps))
}

func TestNPRandomFlows(t *testing.T) {
	const tNs = 50_000
	n, dev := newNP(t, npOptions{TNs: tNs, CongestedShare: 0.95, IdealTime: true})
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		f := randomFlow(rnd)
		congested := rnd.IntN(2) == 0
		dscp, tos := uint8(rnd.IntN(64)), uint8(rnd.IntN(3))
		if congested {
			tos = ce
		}
		frame := f.tcp(t, dscp<<2|tos, 1+rnd.IntN(1460))
		start, gap := 1+rnd.Uint64N(1<<62), tNs+rnd.Uint64N(1<<rnd.IntN(40))
		mbps := func(ns uint64) uint32 {
			if !congested {
				return 0
			}
			return uint32(max(1, math.Round(float64(len(frame))*8000/float64(ns))))
		}
		n.arrive(t, dev, start, frame)
		n.arrive(t, dev, start+gap, frame)
		n.arrive(t, dev, start+gap+tNs, frame)
		qt.Assert(t, qt.DeepEquals(dev.sent(t), [][]byte{
			encode(t, f.cnp(congested, mbps(tNs))),
			encode(t, f.cnp(congested, mbps(gap))),
		}))
	}
}

// The data packet goes on to the receiver as it came, with what programs before NP wrote.
func TestNPPassesData(t *testing.T) {
	n, dev := newNP(t, npOptions{TNs: 1, CongestedShare: 0.95, IdealTime: true})
	frame := someFlow().tcp(t, ce, 1000)
	for i, mark := range []uint32{0, 0, 7, 7} {
		in := skBuff{Ifindex: uint32(dev.ifindex), CB: carry(uint64(i+1)*1000, false), Mark: mark,
			Priority: 5}
		r := n.run(t, dev.ns, "np_ingress", frame, in)
		passes(t, r, frame)
		qt.Check(t, qt.Equals(r.skb.Mark, mark))
		qt.Check(t, qt.Equals(r.skb.Priority, 5))
		qt.Check(t, qt.Equals(r.skb.CB, in.CB))
	}
	qt.Assert(t, qt.HasLen(dev.sent(t), 3))
}

// ignored are marked packets that no notification point answers.
func ignored(t *testing.T) map[string][]byte {
	t.Helper()
	f := someFlow()
	data := f.tcp(t, ce, 100)
	return map[string][]byte{
		"pure ACK": f.tcp(t, ce, 0),
		"pure ACK with options": f.tcp(t, ce, 0, func(_ *layers.IPv4, tcp *layers.TCP) {
			tcp.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps,
				OptionLength: 10, OptionData: make([]byte, 8)}}
		}),
		"pure ACK padded by Ethernet": append(f.tcp(t, ce, 0), make([]byte, 6)...),
		"SYN": f.tcp(t, ce, 0,
			func(_ *layers.IPv4, tcp *layers.TCP) { tcp.SYN = true }),
		"FIN": f.tcp(t, ce, 0,
			func(_ *layers.IPv4, tcp *layers.TCP) { tcp.FIN = true }),
		"UDP":           f.udp(t, ce, 100),
		"CNP":           encode(t, f.cnp(true, 1)),
		"TCP over IPv6": f.tcpIPv6(t),
		"ARP":           f.arp(t),
		"VLAN":          vlan(data, 10),
		"first fragment": f.tcp(t, ce, 100,
			func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags = layers.IPv4MoreFragments }),
		"later fragment": f.tcp(t, ce, 100,
			func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags, ip.FragOffset = 0, 100 }),
		"IPv4 with options": f.tcp(t, ce, 100, func(ip *layers.IPv4, _ *layers.TCP) {
			ip.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1},
				{OptionType: 0}}
		}),
	}
}

// Only data over TCP and IPv4 is answered. Everything else passes untouched and takes no entry of
// the flow table.
func TestNPIgnores(t *testing.T) {
	n, dev := newNP(t, npOptions{TNs: 1, CongestedShare: 0, IdealTime: true})
	for name, frame := range ignored(t) {
		t.Run(name, func(t *testing.T) {
			for i := range 3 {
				passes(t, n.arrive(t, dev, uint64(i+1)*1000, frame), frame)
			}
			qt.Assert(t, qt.HasLen(dev.sent(t), 0))
			qt.Assert(t, qt.Equals(n.flows(t), 0))
		})
	}
	data := someFlow().tcp(t, ce, 100)
	for l := 14; l < len(data); l++ {
		dev.receive(t, vnetHeader{}, data[:l])
		dev.receive(t, vnetHeader{}, data[:l])
		qt.Assert(t, qt.HasLen(dev.sent(t), 0), qt.Commentf("truncated to %d bytes", l))
		qt.Assert(t, qt.Equals(n.flows(t), 0), qt.Commentf("truncated to %d bytes", l))
	}
	dev.receive(t, vnetHeader{}, data)
	dev.receive(t, vnetHeader{}, data)
	qt.Assert(t, qt.HasLen(dev.sent(t), 1), qt.Commentf("whole"))
}

// A tag that the kernel has taken off the frame: a VLAN's packet is for the VLAN's device, a
// priority is not a VLAN, and the CNP has it too.
func TestNPAndVLANs(t *testing.T) {
	f := someFlow()
	for _, c := range []struct {
		tag    uint16
		answer [][]byte
	}{
		{10, nil},
		{4095, nil},
		{3 << 13, [][]byte{vlan(encode(t, f.cnp(false, 0)), 3<<13)}},
	} {
		t.Run(fmt.Sprintf("tag %#04x", c.tag), func(t *testing.T) {
			_, dev := newNP(t, npOptions{TNs: 1, CongestedShare: 0.95})
			frame := vlan(f.tcp(t, ect0, 100), c.tag)
			dev.receive(t, vnetHeader{}, frame)
			dev.receive(t, vnetHeader{}, frame)
			qt.Assert(t, qt.DeepEquals(dev.sent(t), c.answer))
		})
	}
}

// Packets of one flow do not count for another, not even of the opposite direction.
func TestNPKeepsFlowsApart(t *testing.T) {
	n, dev := newNP(t, npOptions{TNs: 1000, CongestedShare: 0.95, IdealTime: true})
	f := someFlow()
	reverse := flow{srcMAC: f.dstMAC, dstMAC: f.srcMAC, src: f.dst, dst: f.src}
	n.arrive(t, dev, 1000, f.tcp(t, ce, 100))
	n.arrive(t, dev, 3000, reverse.tcp(t, ce, 100))
	qt.Assert(t, qt.HasLen(dev.sent(t), 0))
	qt.Assert(t, qt.Equals(n.flows(t), 2))
}

// A CNP that can't leave is counted, and the data passes all the same.
func TestNPCountsFailure(t *testing.T) {
	n, dev := newNP(t, npOptions{TNs: 1, CongestedShare: 0.95, IdealTime: true})
	nl := nstest.Netlink(t, dev.ns)
	l, err := nl.LinkByIndex(dev.ifindex)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(nl.LinkSetDown(l)))
	frame := someFlow().tcp(t, ce, 100)
	n.arrive(t, dev, 1000, frame)
	passes(t, n.arrive(t, dev, 2000, frame), frame)
	got, err := n.Counts()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(nonZero(t, got, err), Counts{"no_clone": 1}))
}

// On the kernel's clock arrivals are what the clock says, whatever packets carry.
func TestNPKernelClock(t *testing.T) {
	const hourNs = 3600e9
	n, dev := newNP(t, npOptions{TNs: hourNs, CongestedShare: 0.95})
	frame := someFlow().tcp(t, ce, 100)
	n.arrive(t, dev, 1, frame)
	n.arrive(t, dev, 1+2*hourNs, frame)
	qt.Assert(t, qt.HasLen(dev.sent(t), 0))
}

// A device's other packets leave as they are.
func TestNPEgressPasses(t *testing.T) {
	n, _ := newNP(t, npOptions{TNs: 1, CongestedShare: 0.95})
	frame := someFlow().tcp(t, ce, 100)
	for _, mark := range []uint32{0, 0x504e0001} {
		r := n.run(t, netns.None(), "np_egress", frame, skBuff{Mark: mark})
		passes(t, r, frame)
		qt.Check(t, qt.Equals(r.skb.Mark, mark))
	}
}
