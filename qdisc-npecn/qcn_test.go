// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/loader/ns"
	"github.com/pcn-linux/pcn/tc"
)

// sampled is what a CNM says: which packet of the run a port sampled, and what it found.
type sampled struct {
	packet       int
	port         uint32
	qntzFb       uint8
	qOff, qDelta int16 // in units of 64 bytes
}

// captureCNMs is for networks with congestion points: a socket holds its namespace.
func (n *network) captureCNMs() {
	n.t.Helper()
	if !slices.ContainsFunc(n.config.Ports, func(p Port) bool { return p.Marker == QCN }) {
		return
	}
	for host := range n.hosts {
		n.cnms = append(n.cnms, n.openCapture(host))
	}
}

// openCapture opens a packet socket that gets the CNMs that come to a host.
func (n *network) openCapture(host int) int {
	n.t.Helper()
	var fd int
	n.check(ns.Do(n.ns[host], func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	}))
	n.t.Cleanup(func() { unix.Close(fd) })
	n.check(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<28))
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, cnp.EtherTypeCNM))
	n.check(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: n.hostDevice(host)}))
	return fd
}

// samples are what the CNMs say that came to hosts since the last call, all of which are as package
// cnp writes them, and came to the packet's sender.
func (n *network) samples(packets []packet) (all []sampled) {
	n.t.Helper()
	buf := make([]byte, mtu)
	for host, fd := range n.cnms {
		for {
			k, err := unix.Read(fd, buf)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			n.check(err)
			s := n.sample(packets, buf[:k])
			qt.Assert(n.t, qt.Equals(packets[s.packet].from, host))
			all = append(all, s)
		}
	}
	return all
}

func (n *network) sample(packets []packet, cnm []byte) sampled {
	n.t.Helper()
	m, err := cnp.ParseCNM(cnm)
	n.check(err)
	first := n.sent - len(packets)
	i := int(binary.BigEndian.Uint16(m.MSDU[20:])) - srcPort - first
	qt.Assert(n.t, qt.IsTrue(i >= 0 && i < len(packets)))
	want, err := cnp.NewCNM(frame(n.flow(first+i, packets[i]), packets[i]))
	n.check(err)
	want.QntzFb, want.CPID, want.CnmQOffset, want.CnmQDelta = m.QntzFb, m.CPID, m.CnmQOffset,
		m.CnmQDelta
	want.EncapsulatedPriority = uint8(packets[i].class)
	qt.Assert(n.t, qt.DeepEquals(m, want))
	return sampled{i, uint32(m.CPID), m.QntzFb, m.CnmQOffset, m.CnmQDelta}
}

// qcnStar is a star whose port s->h2 is a congestion point with Q_eq of 5 frames.
func qcnStar(k timekeeping, sampleBase uint64, change func(p *Port)) *layout {
	l := star(3, func(name string, p *Port) {
		for c := range p.Classes {
			p.Classes[c].Slots = 2048
		}
		if name == "s->h2" {
			p.Marker, p.QCN, p.Seed = QCN,
				QCNOptions{QeqBytes: 5000, W: 2, SampleBaseBytes: sampleBase}, someSeed
			change(p)
		}
	})
	l.options = k.options()
	return l
}

// TestQCN: every packet is a sample of the queue it leaves behind at its ideal start. All numbers
// are worked out by hand: one unit of QntzFb is 25000 / 63 = 396.8 bytes.
func TestQCN(t *testing.T) {
	const unmarkedClass = 2
	for _, k := range []timekeeping{exact, rounded} {
		t.Run(k.String(), func(t *testing.T) {
			n := newNetwork(t, qcnStar(k, 1, func(p *Port) {
				p.Classes[lossyClass].Lossless = false
				p.Classes[unmarkedClass].Marked = false
			}))
			port := n.id("s->h2")
			want := []sampled{ // queues of 0, 1, ... 9, 9, 8, ... 0 frames
				{4, port, 2, -16, 15}, // 1000: 1000 below Q_eq, but it grew by 1000
				{5, port, 5, 0, 15},
				{6, port, 7, 15, 15},
				{7, port, 10, 31, 15},
				{8, port, 12, 46, 15},
				{9, port, 15, 62, 15},
				{10, port, 10, 62, 0},  // 4000: it stays
				{11, port, 2, 46, -16}, // 1000: it shrinks
			}
			packets := converging(dataClass)
			for i, d := range n.run(packets) {
				qt.Check(t, qt.Equals(d, delivery{atNs: uint64(i+1)*1000 + 1000 + 2*delayNs}),
					qt.Commentf("packet %d", i))
			}
			sameSamples(t, n.samples(packets), want)

			packets = converging(lossyClass)
			n.run(packets)
			sameSamples(t, n.samples(packets), want) // at the last sample the queue was empty, too
			packets = converging(unmarkedClass)
			n.run(packets)
			qt.Check(t, qt.HasLen(n.samples(packets), 0))
			qt.Check(t, qt.Equals(n.stats(n.id("s->h2")).MarkedPackets, 0))
			n.checkCounters()
			cnms, err := n.arrive.CNMs()
			n.check(err)
			qt.Check(t, qt.Equals(cnms, tc.CNMCounts{Sent: 16}))
		})
	}
}

// sameSamples compares samples, in any order.
func sameSamples(t *testing.T, got, want []sampled) {
	t.Helper()
	order := func(a, b sampled) int {
		return cmp.Or(cmp.Compare(a.packet, b.packet),
			cmp.Compare(a.port, b.port))
	}
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	qt.Check(t, qt.CmpEquals(got, want, cmpopts.EquateComparable(sampled{})))
}

// TestQCNJitter: with jitter, distances between samples differ by up to its share to both sides, as
// often up as down. The seed decides, and nothing else.
func TestQCNJitter(t *testing.T) {
	const mean, jitter, queue, packets = 20, 0.15, 200, 800
	var distances [3][]int
	for i, seed := range []uint32{someSeed, someSeed, someSeed + 1} {
		t.Run(fmt.Sprint("network ", i), func(t *testing.T) {
			n := newNetwork(t, qcnStar(rounded, 8*mean*frame1K,
				func(p *Port) { p.QCN.SampleJitter, p.Seed = jitter, seed }))
			all, first := standing(queue, packets)
			got := n.run(all)
			var starts []int
			for _, s := range n.samples(all) {
				// the queue stands
				if at := int(got[s.packet].atNs) / 1000; at > first && at < packets {
					// the next sample comes after an eighth of the base
					qt.Assert(t, qt.Equals(s.qntzFb, 63))
					starts = append(starts, at)
				}
			}
			slices.Sort(starts)
			for j := range starts[1:] {
				distances[i] = append(distances[i], starts[j+1]-starts[j])
			}
		})
	}
	sum, different := 0, map[int]bool{}
	for _, d := range distances[0] {
		sum += d
		different[d] = true
		qt.Check(t, qt.IsTrue(d >= mean*(1-jitter) && d <= mean*(1+jitter)),
			qt.Commentf("%d packets", d))
	}
	got := float64(sum) / float64(len(distances[0]))
	t.Logf("%d distances of %.1f packets on average, %d different", len(distances[0]), got,
		len(different))
	// rounded up to packets: half of one more
	qt.Check(t, qt.IsTrue(got > 0.96*mean && got < 1.06*mean))
	qt.Check(t, qt.IsTrue(len(different) >= 5))
	qt.Check(t, qt.DeepEquals(distances[1], distances[0]))
	qt.Check(t, qt.Not(qt.DeepEquals(distances[2], distances[0])))
}
