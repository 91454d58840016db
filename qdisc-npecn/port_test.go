// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"
)

// At gbit8 a frame of 1000 B takes 1000 ns.
const (
	gbit8   = 8e9
	delayNs = 3_000
	frame1K = 1000
)

// star is hosts around one switch, links of 8 Gbit/s; change adapts what a port is configured as.
func star(hosts int, change func(name string, p *Port)) *layout {
	l := &layout{switches: []string{"s"}, options: exact.options()}
	for i := range hosts {
		name := fmt.Sprint("h", i)
		l.hosts = append(l.hosts, name)
		l.links = append(l.links, [2]string{name, "s"})
	}
	l.port = func(name string) Port {
		p := lossless(name, gbit8, delayNs, 256)
		if name[0] == 's' {
			p.DelayNs, p.PFCDelayNs = 2*delayNs, 2*delayNs
		}
		change(name, &p)
		return p
	}
	return l
}

func unchanged(string, *Port) {}

// backToBack are n frames of 1000 B, a frame time apart.
func backToBack(from, to, class, n int, atNs uint64) []packet {
	packets := make([]packet, n)
	for i := range packets {
		packets[i] = packet{from, to, class, frame1K, atNs + uint64(i)*1000}
	}
	return packets
}

func TestStrictPriority(t *testing.T) {
	n := newNetwork(t, star(2, unchanged))
	var packets []packet
	// the lowest class comes first and is not interrupted; the others come together, while it is on
	// the link
	for class := range Classes {
		packets = append(packets,
			packet{from: 0, to: 1, class: class, size: frame1K, atNs: min(uint64(class), 1)})
	}
	// an equal arrival: the higher class goes first
	packets = append(packets, packet{0, 1, 2, frame1K, 100_000}, packet{0, 1, 5, frame1K, 100_000})
	got := n.run(packets)

	const pathNs = 1000 + 2*delayNs // the switch's port: it never has to choose
	for class := range Classes {
		turn := (Classes - class) % Classes // 0, 7, 6, ... 1
		qt.Check(t, qt.Equals(got[class].atNs, uint64(turn+1)*1000+pathNs),
			qt.Commentf("class %d", class))
	}
	qt.Check(t, qt.Equals(got[Classes+1].atNs, 101_000+pathNs))
	qt.Check(t, qt.Equals(got[Classes].atNs, 102_000+pathNs))
}

// TestMergeInIdealOrder lets packets of two hosts arrive a few ns apart, far less than the timers'
// quantum.
func TestMergeInIdealOrder(t *testing.T) {
	const frames, gapNs = 50, 40 // the smallest frame takes 42 ns
	l := star(3, unchanged)
	l.options = rounded.options()
	n := newNetwork(t, l)
	var packets []packet
	for i := range frames {
		for host := range 2 {
			at := uint64(i)*2*gapNs + uint64(host)*gapNs
			packets = append(packets, packet{from: host, to: 2, class: 3, size: minFrame, atNs: at})
		}
	}
	got := n.run(packets)
	for i := range packets {
		// the first arrives at 42 ns and the link is never idle
		want := uint64(minFrame) + uint64(i+1)*minFrame + 2*delayNs
		qt.Check(t, qt.Equals(got[i].atNs, want), qt.Commentf("packet %d", i))
	}
	n.checkCounters()
}

// TestLateData: a packet made now goes before those handed over ahead of their time, however many.
func TestLateData(t *testing.T) {
	const ahead = 1500
	l := star(2, func(name string, p *Port) { p.Classes[3].Slots = 2 * ahead })
	l.options = rounded.options()
	n := newNetwork(t, l)
	got := n.run(append(backToBack(0, 1, 3, ahead, 1_000_000), packet{0, 1, 3, frame1K, 500_000}))
	qt.Check(t, qt.Equals(got[ahead].atNs, 502_000+2*delayNs))
	qt.Check(t, qt.Equals(got[0].atNs, 1_002_000+2*delayNs))
	n.checkCounters()
}

func TestDropsByCause(t *testing.T) {
	const (
		slots  = 8
		buffer = 20_000
	)
	l := star(2, func(name string, p *Port) {
		if name != "s->h1" {
			return
		}
		p.RateBps = gbit8 / 1000 // slow: what arrives, stays
		p.Classes[3].Slots = slots
		p.Classes[4] = Class{}
	})
	l.options = rounded.options()
	l.buffers = map[string]uint64{"s": buffer}
	n := newNetwork(t, l)
	var packets []packet
	// 1 on the link, 8 queued, 3 find the ring full
	packets = append(packets, backToBack(0, 1, 3, 12, 0)...)
	packets = append(packets, backToBack(0, 1, 4, 5, 20_000)...) // 5 have no class
	// 12 find room beside the 8, 8 do not
	packets = append(packets, backToBack(0, 1, 5, 20, 40_000)...)
	n.send(packets)
	n.waitUntil("all have arrived at the port, and the lag has passed", func() bool {
		s := n.stats(n.id("s->h1"))
		return s.EnqueuedPackets+s.Dropped() == uint64(len(packets)) &&
			s.QueuedBytes == frame1K*s.QueuedPackets
	})

	s := n.stats(n.id("s->h1"))
	qt.Check(t, qt.Equals(s.Drops[DropRing], 3))
	qt.Check(t, qt.Equals(s.Drops[DropClass], 5))
	qt.Check(t, qt.Equals(s.Drops[DropBuffer], 8))
	qt.Check(t, qt.Equals(s.Drops[DropReset], 0))
	qt.Check(t, qt.Equals(s.QueuedPackets, 20))
	qt.Check(t, qt.Equals(s.QueuedBytes, 20_000))
	qt.Check(t, qt.Equals(s.WirePackets, 1))
	qt.Check(t, qt.Equals(n.kernelStats("s->h1"),
		kernelStats{DroppedPackets: 16, QueuedPackets: 21, QueuedBytes: 21_000}))
	node, err := n.q.nodeStats(uint32(n.node("s")))
	n.check(err)
	qt.Check(t, qt.Equals(node, nodeStats{UsedBytes: 20_000, UsedMaxBytes: 20_000}))

	n.waitEmpty()
	var delivered int
	for _, d := range n.deliveries(packets) {
		if !d.lost {
			delivered++
		}
	}
	qt.Check(t, qt.Equals(delivered, 21))
	qt.Check(t, qt.Equals(n.kernelStats("s->h1"),
		kernelStats{SentPackets: 21, SentBytes: 21_000, DroppedPackets: 16}))
	node, err = n.q.nodeStats(uint32(n.node("s")))
	n.check(err)
	qt.Check(t, qt.Equals(node.UsedBytes, 0))
	n.checkCounters()
}

// TestRefusedAtHost: who sends learns of a drop at the own port.
func TestRefusedAtHost(t *testing.T) {
	n := newNetwork(t, star(2, func(name string, p *Port) {
		p.Classes[3] = Class{}
		p.Classes[5].Slots = 2
	}))
	n.t0Ns = n.nowNs() + 1_000_000
	for _, test := range []struct {
		class, fit int
	}{{3, 0}, {5, 2}} {
		fd := n.openSender(0, test.class)
		p := packet{from: 0, to: 1, class: test.class, size: frame1K}
		for range test.fit {
			n.check(n.sendFrame(fd, 0, p))
		}
		qt.Check(t, qt.ErrorIs(n.sendFrame(fd, 0, p), unix.ENOBUFS),
			qt.Commentf("class %d", test.class))
	}
	s := n.stats(n.id("h0->s"))
	qt.Check(t, qt.Equals(s.Drops[DropClass], 1))
	qt.Check(t, qt.Equals(s.Drops[DropRing], 1))
	qt.Check(t, qt.Equals(n.kernelStats("h0->s"),
		kernelStats{DroppedPackets: 2, QueuedPackets: 2, QueuedBytes: 2000}))
}

// TestAttachRefusals: a device must be a configured port, and a port one device.
func TestAttachRefusals(t *testing.T) {
	n := newNetwork(t, star(2, unchanged))
	dev, err := n.nl[0].LinkByName("lo")
	n.check(err)
	for _, group := range []int{0, int(n.portsMax()), 1 << 30} {
		n.check(n.nl[0].LinkSetGroup(dev, group))
		qt.Check(t, qt.ErrorMatches(Attach(n.nl[0], dev.Attrs().Index),
			"make npecn the root qdisc of device 1 .*: no such device"))
	}
	n.check(n.nl[0].LinkSetGroup(dev, 1))
	qt.Check(t, qt.ErrorMatches(Attach(n.nl[0], dev.Attrs().Index),
		"make npecn the root qdisc of device 1 .*: device or resource busy"))
	qt.Check(t, qt.ErrorMatches(detach(n.nl[0], dev.Attrs().Index),
		"remove root qdisc npecn of device 1: .*"))

	// and the port works on
	got := n.run(backToBack(0, 1, 3, 1, 0))
	qt.Check(t, qt.Equals(got[0], delivery{atNs: 2000 + 2*delayNs}))
}

// TestRegisterTwice: the qdisc's name can be taken once.
func TestRegisterTwice(t *testing.T) {
	n := newNetwork(t, star(2, unchanged))
	_, err := Load(n.config)
	qt.Check(t, qt.ErrorMatches(err, "register qdisc npecn: another program has registered it; "+
		"end that one first: .*file exists"))
}
