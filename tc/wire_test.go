// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// capture opens a packet socket that gets the CNPs which arrive at the device, and nothing else.
func capture(t *testing.T, e nstest.End) int {
	t.Helper()
	filter, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 23, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 3},
		bpf.LoadAbsolute{Off: offUDP + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: cnp.UDPPort, SkipTrue: 1},
		bpf.RetConstant{Val: 1 << 16},
		bpf.RetConstant{},
	})
	qt.Assert(t, qt.IsNil(err))
	code := make([]unix.SockFilter, len(filter))
	for i, f := range filter {
		code[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	return captureType(t, e, unix.ETH_P_IP, unix.SockFprog{Len: uint16(len(code)),
		Filter: &code[0]})
}

// captureType opens a packet socket that gets the frames of this EtherType that arrive at the
// device and pass the filter.
func captureType(t *testing.T, e nstest.End, etherType uint16, filter ...unix.SockFprog) int {
	t.Helper()
	var s int
	nstest.Do(t, e.NS, func() (err error) {
		s, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	t.Cleanup(func() { unix.Close(s) })
	// what answers a data packet keeps its buffer
	qt.Assert(t, qt.IsNil(unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)))
	for _, f := range filter {
		qt.Assert(t, qt.IsNil(unix.SetsockoptSockFprog(s, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&f)))
	}
	protocol := binary.NativeEndian.Uint16(bigEndian(etherType))
	qt.Assert(t, qt.IsNil(unix.Bind(s, &unix.SockaddrLinklayer{Protocol: protocol,
		Ifindex: e.Index()})))
	return s
}

// captured reads what a packet socket has got.
func captured(t *testing.T, s int) (frames [][]byte) {
	t.Helper()
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Read(s, buf)
		if errors.Is(err, unix.EAGAIN) {
			return frames
		}
		qt.Assert(t, qt.IsNil(err))
		frames = append(frames, bytes.Clone(buf[:n]))
	}
}

// A TCP transfer, of any congestion control, between two hosts: every CNP that the sender's device
// receives is as package cnp writes it, and the receiver gets the data unharmed.
func TestNPOnTheWire(t *testing.T) {
	const size = 10 << 20
	for _, c := range []struct {
		name    string
		maxSegs int
		mark    bool
	}{
		{"one segment in a packet, marked", 1, true},
		{"one segment in a packet, not marked", 1, false},
		{"many segments in a packet, marked", 65535, true},
		{"many segments in a packet, not marked", 65535, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			sender, receiver := nstest.Veth(t, nstest.New(t), nstest.New(t),
				netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.2/24"))
			nl := nstest.Netlink(t, sender.NS)
			qt.Assert(t, qt.IsNil(nl.LinkSetGSOMaxSegs(sender.Link, c.maxSegs)))
			n := loadNP(t, npOptions{TNs: 50_000, CongestedShare: 0.95})
			qt.Assert(t, qt.IsNil(n.Attach(receiver.NS, receiver.Index())))
			nstest.NewMarker(t, receiver).Mark(t, c.mark)
			s := capture(t, sender)

			f := transfer(t, sender, receiver, size)

			var got [][]byte
			counts := Counts{}
			var err error
			nstest.Eventually(t, "all CNPs have arrived", func() bool {
				got = append(got, captured(t, s)...)
				counts, err = n.Counts()
				return err != nil ||
					uint64(len(got)) == counts["cnp_decrease"]+counts["cnp_increase"]
			})
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsTrue(len(got) > 10), qt.Commentf("%d CNPs", len(got)))
			for _, frame := range got {
				qt.Assert(t, qt.HasLen(frame, cnp.FrameLen))
				p, err := cnp.Parse(frame)
				qt.Assert(t, qt.IsNil(err))
				qt.Assert(t, qt.DeepEquals(frame, encode(t, f.cnp(p.Decrease, p.RecRateMbps))))
			}
			if c.mark {
				qt.Check(t, qt.IsTrue(counts["cnp_decrease"] > counts["cnp_increase"]),
					qt.Commentf("%+v", counts))
			} else {
				qt.Check(t, qt.Equals(counts["cnp_decrease"], 0))
			}
			qt.Check(t, qt.Equals(counts["no_clone"]+counts["no_flow"], 0))
			l, err := nl.LinkByIndex(sender.Index())
			qt.Assert(t, qt.IsNil(err))
			stats := l.Attrs().Statistics
			qt.Check(t, qt.Equals(stats.TxBytes/stats.TxPackets > 1514, c.maxSegs > 1),
				qt.Commentf("segments in a packet"))
		})
	}
}

// switched joins two hosts by a switch, whose ports 1 and 2 they are at; the hosts stamp what they
// send.
func switched(t *testing.T, f *Fabric) (sender, receiver nstest.End) {
	t.Helper()
	sw := nstest.New(t)
	nl := nstest.Netlink(t, sw)
	ends := []*nstest.End{&sender, &receiver}
	s, err := LoadStamp(StampOptions{DataDSCP: dataDSCP, ControlDSCP: controlDSCP,
		AddressMAC: true})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { s.Close() })
	for i, e := range ends {
		id := i + 1
		var port nstest.End
		*e, port = nstest.Veth(t, nstest.New(t), sw,
			netip.MustParsePrefix(fmt.Sprintf("10.0.0.%d/24", id)),
			netip.MustParsePrefix(fmt.Sprintf("10.0.1.%d/32", id)))
		qt.Assert(t, qt.IsNil(errors.Join(
			nl.LinkSetName(port.Link, fmt.Sprint("port", id)),
			nl.LinkSetGroup(port.Link, id),
			f.AddPort(sw, port.Index(), FabricPort{ID: uint32(id), FromHost: true}),
			f.SetRoute(0, uint32(id), port.Index()),
			s.Attach(e.NS, e.Index()),
		)))
	}
	for i, e := range ends {
		peer := ends[1-i]
		qt.Assert(t, qt.IsNil(nstest.Netlink(t, e.NS).NeighAdd(&netlink.Neigh{
			LinkIndex: e.Index(), State: netlink.NUD_PERMANENT, IP: peer.Addr.AsSlice(),
			HardwareAddr: peer.MAC,
		})))
	}
	return sender, receiver
}

// A TCP transfer through a switch: each packet of data that is sampled on its last link is
// answered, and the sender's device receives the CNM.
func TestCNMOnTheWire(t *testing.T) {
	const size = 10 << 20
	fabric, err := LoadFabric(fabricOptions)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { fabric.Close() })
	sender, receiver := switched(t, fabric)
	a, _ := newArrive(t, 0, os.Getpagesize())
	qt.Assert(t, qt.IsNil(a.Attach(receiver.NS, receiver.Index())))
	someSample().everyPacket(t, receiver.NS, receiver.Index())
	s := captureType(t, sender, cnp.EtherTypeCNM)

	f := transfer(t, sender, receiver, size)

	got := captured(t, s)
	qt.Assert(t, qt.IsTrue(len(got) > size/1460), qt.Commentf("%d CNMs", len(got)))
	for _, frame := range got {
		m, err := cnp.ParseCNM(frame)
		qt.Assert(t, qt.IsNil(err))
		want := someSample()
		src, dst := f.src.Addr().As4(), f.dst.Addr().As4()
		qt.Assert(t, qt.DeepEquals(m, cnp.CNM{
			DstMAC: [6]byte{2, 0, src[0], src[1], src[2], src[3]}, SrcMAC: f.dstMAC,
			EncapsulatedDestination: f.dstMAC,
			QntzFb:                  want.qntzFb, CPID: uint64(want.port), CnmQOffset: want.qOff,
			CnmQDelta:            want.qDelta,
			EncapsulatedPriority: dataClass, MSDU: m.MSDU,
		}))
		ip := m.MSDU
		qt.Assert(t, qt.Equals(ip[1]>>2, dataDSCP))
		qt.Assert(t, qt.DeepEquals(ip[12:24],
			slices.Concat(src[:], dst[:], bigEndian(f.src.Port()), bigEndian(f.dst.Port()))))
	}
	d, err := fabric.Drops()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(d, FabricDrops{}))
	counts, err := a.CNMs()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(counts, CNMCounts{Sent: uint64(len(got))}))
}

func bigEndian(v uint16) []byte { return binary.BigEndian.AppendUint16(nil, v) }

// transfer sends so many bytes over TCP with ECN, and checks them. It returns the flow.
func transfer(t *testing.T, sender, receiver nstest.End, size int64) flow {
	t.Helper()
	nstest.Sysctl(t, sender.NS, "tcp_ecn", "1")
	nstest.Sysctl(t, receiver.NS, "tcp_ecn", "1")
	var (
		l        net.Listener
		from, to net.Conn
	)
	listen := net.ListenConfig{}
	listen.SetMultipathTCP(false)
	nstest.Do(t, receiver.NS, func() (err error) {
		l, err = listen.Listen(t.Context(), "tcp4", netip.AddrPortFrom(receiver.Addr, 0).String())
		return err
	})
	t.Cleanup(func() { l.Close() })
	nstest.Do(t, sender.NS, func() (err error) {
		from, err = net.DialTimeout("tcp4", l.Addr().String(), nstest.Patience)
		return err
	})
	t.Cleanup(func() { from.Close() })
	to, err := l.Accept()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { to.Close() })
	deadline := time.Now().Add(nstest.Patience)
	qt.Assert(t, qt.IsNil(errors.Join(from.SetDeadline(deadline), to.SetDeadline(deadline))))

	stream := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{}), size) }
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(from, stream())
		sent <- errors.Join(err, from.(*net.TCPConn).CloseWrite())
	}()
	got, want, src := make([]byte, 64<<10), make([]byte, 64<<10), stream()
	for {
		k, err := io.ReadFull(to, got)
		io.ReadFull(src, want)
		qt.Assert(t, qt.IsTrue(bytes.Equal(got[:k], want[:k])))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Assert(t, qt.IsNil(<-sent))
	return flow{
		srcMAC: [6]byte(sender.MAC), dstMAC: [6]byte(receiver.MAC),
		src: from.LocalAddr().(*net.TCPAddr).AddrPort(),
		dst: from.RemoteAddr().(*net.TCPAddr).AddrPort(),
	}
}
