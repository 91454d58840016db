// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"pcn/cnp"
	"pcn/loader/ns/nstest"
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
	var s int
	nstest.Do(t, e.NS, func() (err error) {
		s, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	t.Cleanup(func() { unix.Close(s) })
	etherTypeIPv4 := binary.NativeEndian.Uint16([]byte{8, 0})
	qt.Assert(t, qt.IsNil(errors.Join(
		unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20), // a CNP keeps its data packet's buffer
		unix.SetsockoptSockFprog(s, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}),
		unix.Bind(s, &unix.SockaddrLinklayer{Protocol: etherTypeIPv4, Ifindex: e.Index()}),
	)))
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

// A TCP transfer, of any congestion control, between two hosts: every CNP that the sender's device receives is as
// package cnp writes it, and the receiver gets the data unharmed.
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
			n, err := LoadNP(NPOptions{TNs: 50_000, CongestedShare: 0.95})
			qt.Assert(t, qt.IsNil(err))
			t.Cleanup(func() { n.Close() })
			qt.Assert(t, qt.IsNil(n.Attach(receiver.NS, receiver.Index())))
			nstest.NewMarker(t, receiver).Mark(t, c.mark)
			s := capture(t, sender)

			f := transfer(t, sender, receiver, size)

			var got [][]byte
			var counts NPCounts
			nstest.Eventually(t, "all CNPs have arrived", func() bool {
				got = append(got, captured(t, s)...)
				counts, err = n.Counts()
				return err != nil || uint64(len(got)) == counts.Decrease+counts.Increase
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
				qt.Check(t, qt.IsTrue(counts.Decrease > counts.Increase), qt.Commentf("%+v", counts))
			} else {
				qt.Check(t, qt.Equals(counts.Decrease, 0))
			}
			qt.Check(t, qt.Equals(counts.NoClone+counts.NoFlow, 0))
			l, err := nl.LinkByIndex(sender.Index())
			qt.Assert(t, qt.IsNil(err))
			stats := l.Attrs().Statistics
			qt.Check(t, qt.Equals(stats.TxBytes/stats.TxPackets > 1514, c.maxSegs > 1), qt.Commentf("segments in a packet"))
		})
	}
}

// transfer sends so many bytes over TCP with ECN, and checks them. It returns the flow.
func transfer(t *testing.T, sender, receiver nstest.End, size int64) flow {
	t.Helper()
	const patience = 20 * time.Second
	ecn := func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_ecn", []byte("1"), 0) }
	nstest.Do(t, sender.NS, ecn)
	nstest.Do(t, receiver.NS, ecn)
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
		from, err = net.DialTimeout("tcp4", l.Addr().String(), patience)
		return err
	})
	t.Cleanup(func() { from.Close() })
	to, err := l.Accept()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { to.Close() })
	deadline := time.Now().Add(patience)
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
		src: from.LocalAddr().(*net.TCPAddr).AddrPort(), dst: from.RemoteAddr().(*net.TCPAddr).AddrPort(),
	}
}
