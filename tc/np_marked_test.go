// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// newMarkedNP attaches DCQCN's notification point, by ideal time, to a device of its own.
func newMarkedNP(t *testing.T, intervalNs uint64) (*NP, *tap) {
	t.Helper()
	return newMarkedNPOf(t, markedOptions{IntervalNs: intervalNs})
}

func newMarkedNPOf(t *testing.T, o markedOptions) (*NP, *tap) {
	t.Helper()
	o.IdealTime = true
	h := nstest.New(t)
	dev := newTap(t, h, "tap0", 1)
	n := loadMarked(t, o)
	qt.Assert(t, qt.IsNil(n.Attach(h, dev.ifindex)))
	return n, dev
}

// What NP answers to a marked packet is a CNP as package cnp writes it, without a rate.
func TestMarkedNPAnswersReceivedPackets(t *testing.T) {
	n, dev := newMarkedNP(t, 0)
	for i, c := range received {
		t.Run(fmt.Sprintf("%d bytes, offload %d", c.payloadLen,
			c.offload.GSOType<<1|c.offload.Flags), func(t *testing.T) {
			f := someFlow()
			f.src = netip.AddrPortFrom(f.src.Addr(), uint16(5000+i)) // a new flow
			for _, tos := range []uint8{notECT, ect1, ect0} {
				dev.receive(t, c.offload, f.tcp(t, tos, c.payloadLen))
				qt.Assert(t, qt.HasLen(dev.sent(t), 0), qt.Commentf("ECN %d", tos))
				qt.Assert(t, qt.Equals(n.flows(t), i), qt.Commentf("ECN %d", tos))
			}
			dev.receive(t, c.offload, f.tcp(t, ce, c.payloadLen))
			qt.Assert(t, qt.DeepEquals(dev.sent(t), [][]byte{encode(t, f.cnp(true, 0))}))
		})
	}
	qt.Assert(t, qt.DeepEquals(n.counts(t), Counts{"cnp_decrease": uint64(len(received))}))
}

// One CNP a flow and interval, at once for the first marked packet, and then for the first after
// the interval.
func TestMarkedNPIntervals(t *testing.T) {
	const (
		intervalNs = 50_000
		startNs    = 1_000_000
	)
	type arrival struct {
		atNs uint64
		tos  uint8
		cnp  bool
	}
	for _, c := range []struct {
		name       string
		intervalNs uint64
		arrivals   []arrival
	}{
		{"the first marked packet", intervalNs,
			[]arrival{{0, ect0, false}, {10, ect0, false}, {20, ce, true}}},
		{"marked packets in the interval", intervalNs,
			[]arrival{{0, ce, true}, {0, ce, false}, {1, ce, false}, {intervalNs - 1, ce, false}}},
		{"the interval is over", intervalNs, []arrival{{0, ce, true}, {intervalNs, ce, true},
			{2*intervalNs - 1, ce, false}, {2 * intervalNs, ce, true}}},
		{"it begins with the CNP", intervalNs, []arrival{{0, ce, true}, {80_000, ce, true},
			{100_000, ce, false}, {130_000, ce, true}}},
		{"no mark when it ends", intervalNs, []arrival{{0, ce, true}, {30_000, ce, false},
			{60_000, ect0, false}, {61_000, ce, true}}},
		{"a long time", intervalNs, []arrival{{0, ce, true}, {1 << 50, ce, true},
			{1<<50 + intervalNs - 1, ce, false}}},
		{"two paths: time goes back", intervalNs,
			[]arrival{{60_000, ce, true}, {20_000, ce, false}, {110_000, ce, true}}},
		{"every packet", 0, []arrival{{0, ce, true}, {0, ce, true}, {1, ect0, false},
			{1, ce, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, dev := newMarkedNP(t, c.intervalNs)
			f := someFlow()
			want := Counts{}
			for i, a := range c.arrivals {
				frame := f.tcp(t, a.tos, 1000)
				passes(t, n.arrive(t, dev, startNs+a.atNs, frame), frame)
				var answer [][]byte
				if a.cnp {
					answer = [][]byte{encode(t, f.cnp(true, 0))}
					want["cnp_decrease"]++
				}
				qt.Assert(t, qt.DeepEquals(dev.sent(t), answer),
					qt.Commentf("packet %d: %+v", i, a))
			}
			qt.Assert(t, qt.DeepEquals(n.counts(t), want))
		})
	}
}

// With TCD packets marked UE are answered by holds, CE as ever, and the others not at all.
func TestTCDNPAnswers(t *testing.T) {
	const intervalNs, startNs = 50_000, 1_000_000
	f := someFlow()
	decrease, hold := encode(t, f.cnp(true, 0)), encode(t, f.hold())
	n, dev := newMarkedNPOf(t, markedOptions{IntervalNs: intervalNs, TCD: true})
	for i, a := range []struct {
		atNs   uint64
		tos    uint8
		answer []byte
	}{
		{0, notECT, nil},
		{0, ect1, nil},
		{0, ect0, hold},
		{1, ect0, nil},
		{2, ce, decrease},
		{3, ect0, nil},
		{intervalNs + 1, ect0, nil},
		{intervalNs + 2, ect0, hold},
		{intervalNs + 3, ce, decrease},
		{intervalNs + 4, ect1, nil},
	} {
		frame := f.tcp(t, a.tos, 1000)
		passes(t, n.arrive(t, dev, startNs+a.atNs, frame), frame)
		var want [][]byte
		if a.answer != nil {
			want = [][]byte{a.answer}
		}
		qt.Assert(t, qt.DeepEquals(dev.sent(t), want), qt.Commentf("packet %d", i))
	}
	qt.Assert(t, qt.DeepEquals(n.counts(t), Counts{"cnp_decrease": 2, "cnp_hold": 2}))
	qt.Assert(t, qt.Equals(n.flows(t), 1))
}

// A flow's CNPs do not depend on other flows, not even of the opposite direction.
func TestMarkedNPRandomFlows(t *testing.T) {
	const intervalNs, flowCount, packets = 50_000, 10, 1000
	n, dev := newMarkedNP(t, intervalNs)
	rnd := rand.New(rand.NewPCG(13, 14))
	flows, last := make([]flow, flowCount), map[int]uint64{}
	for i := range flows {
		flows[i] = randomFlow(rnd)
		if i%2 == 1 {
			f := flows[i-1]
			flows[i] = flow{srcMAC: f.dstMAC, dstMAC: f.srcMAC, src: f.dst, dst: f.src}
		}
	}
	now, answers := uint64(1_000_000), 0
	for range packets {
		now += rnd.Uint64N(intervalNs / flowCount * 2)
		i, tos := rnd.IntN(flowCount), uint8(rnd.IntN(4))
		frame := flows[i].tcp(t, uint8(rnd.IntN(64))<<2|tos, 1+rnd.IntN(1460))
		n.arrive(t, dev, now, frame)
		var want [][]byte
		if at, ok := last[i]; tos == ce && (!ok || now-at >= intervalNs) {
			want = [][]byte{encode(t, flows[i].cnp(true, 0))}
			last[i] = now
			answers++
		}
		qt.Assert(t, qt.DeepEquals(dev.sent(t), want))
	}
	qt.Assert(t, qt.DeepEquals(n.counts(t), nonZero(t, Counts{"cnp_decrease": uint64(answers)},
		nil)))
	qt.Assert(t, qt.Equals(n.flows(t), flowCount))
}

// Only data over TCP and IPv4 is answered. Everything else passes untouched and takes no entry of
// the flow table.
func TestMarkedNPIgnores(t *testing.T) {
	n, dev := newMarkedNP(t, 0)
	for name, frame := range ignored(t) {
		t.Run(name, func(t *testing.T) {
			passes(t, n.arrive(t, dev, 1000, frame), frame)
			qt.Assert(t, qt.HasLen(dev.sent(t), 0))
			qt.Assert(t, qt.Equals(n.flows(t), 0))
		})
	}
	data := someFlow().tcp(t, ce, 100)
	for l := 14; l < len(data); l++ {
		dev.receive(t, vnetHeader{}, data[:l])
		qt.Assert(t, qt.HasLen(dev.sent(t), 0), qt.Commentf("truncated to %d bytes", l))
	}
	dev.receive(t, vnetHeader{}, data)
	qt.Assert(t, qt.HasLen(dev.sent(t), 1), qt.Commentf("whole"))
}

// The data packet goes on with what programs before NP wrote, also if its CNP can't leave; that is
// counted.
func TestMarkedNPCountsFailure(t *testing.T) {
	n, dev := newMarkedNP(t, 0)
	frame := someFlow().tcp(t, ce, 1000)
	in := skBuff{Ifindex: uint32(dev.ifindex), CB: carry(1000, false), Mark: 7, Priority: 5}
	check := func(want Counts) {
		t.Helper()
		r := n.run(t, dev.ns, "np_ingress", frame, in)
		passes(t, r, frame)
		qt.Check(t, qt.Equals(r.skb.Mark, 7))
		qt.Check(t, qt.Equals(r.skb.Priority, 5))
		qt.Check(t, qt.Equals(r.skb.CB, in.CB))
		qt.Check(t, qt.DeepEquals(n.counts(t), want))
	}
	check(Counts{"cnp_decrease": 1})
	nl := nstest.Netlink(t, dev.ns)
	l, err := nl.LinkByIndex(dev.ifindex)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(nl.LinkSetDown(l)))
	check(Counts{"cnp_decrease": 1, "no_clone": 1})
}

// On the kernel's clock arrivals are what the clock says, whatever packets carry.
func TestMarkedNPKernelClock(t *testing.T) {
	const hourNs = 3600e9
	h := nstest.New(t)
	dev := newTap(t, h, "tap0", 1)
	n := loadMarked(t, markedOptions{IntervalNs: hourNs})
	qt.Assert(t, qt.IsNil(n.Attach(h, dev.ifindex)))
	frame := someFlow().tcp(t, ce, 100)
	n.arrive(t, dev, 1, frame)
	qt.Assert(t, qt.HasLen(dev.sent(t), 1))
	n.arrive(t, dev, 1+2*hourNs, frame)
	qt.Assert(t, qt.HasLen(dev.sent(t), 0))
}

// A TCP transfer: its sender's device receives CNPs while packets are marked, and none otherwise.
func TestMarkedNPOnTheWire(t *testing.T) {
	const size, intervalNs = 10 << 20, 50_000
	for _, mark := range []bool{true, false} {
		t.Run(fmt.Sprint("marked ", mark), func(t *testing.T) {
			sender, receiver := nstest.Veth(t, nstest.New(t), nstest.New(t),
				netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.2/24"))
			n := loadMarked(t, markedOptions{IntervalNs: intervalNs})
			qt.Assert(t, qt.IsNil(n.Attach(receiver.NS, receiver.Index())))
			nstest.NewMarker(t, receiver).Mark(t, mark)
			s := capture(t, sender)

			began := monotonicNs(t)
			f := transfer(t, sender, receiver, size)
			intervals := (monotonicNs(t)-began)/intervalNs + 1

			var got [][]byte
			nstest.Eventually(t, "all CNPs have arrived", func() bool {
				got = append(got, captured(t, s)...)
				return uint64(len(got)) == n.counts(t)["cnp_decrease"]
			})
			for _, frame := range got {
				qt.Assert(t, qt.HasLen(frame, cnp.FrameLen))
				qt.Assert(t, qt.DeepEquals(frame, encode(t, f.cnp(true, 0))))
			}
			qt.Check(t, qt.DeepEquals(n.counts(t),
				nonZero(t, Counts{"cnp_decrease": uint64(len(got))}, nil)))
			if !mark {
				qt.Check(t, qt.HasLen(got, 0))
				return
			}
			qt.Check(t, qt.IsTrue(len(got) > 10 && uint64(len(got)) <= intervals),
				qt.Commentf("%d CNPs in %d intervals", len(got), intervals))
		})
	}
}
