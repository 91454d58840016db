// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
)

// stallTimeout is longer than TCP ever waits, with the losses of these tests and on a busy machine,
// between two packets.
const stallTimeout = 20 * time.Second

// path is two hosts and the link between them.
type path struct{ client, server nstest.End }

func newPath(t *testing.T) path {
	t.Helper()
	client, server := nstest.Veth(t, nstest.New(t), nstest.New(t),
		netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.2/24"))
	return path{client, server}
}

// connection is a TCP connection from the client to the server, which sends the bytes of a stream.
type connection struct{ client, server *net.TCPConn }

// connect connects with this congestion control at both ends.
func (p path) connect(t *testing.T, control *loader.Control) connection {
	t.Helper()
	return p.connectTo(t, control, p.server.Addr.String(), p.server.Addr.String())
}

// connectTo is connect by other addresses of the server than its first. Some kernels leave out
// struct_ops programs for some packets (KNOWN_ISSUES.md). If one of the handshake is among them,
// the control hears of the flow with a later packet only, and another connection has to do.
func (p path) connectTo(t *testing.T, control *loader.Control, listenAddr,
	dialAddr string) connection {
	t.Helper()
	const attempts = 5
	for range attempts {
		c := p.connectOnce(t, control, listenAddr, dialAddr)
		if heardOf(t, control, c) {
			return c
		}
		t.Log("the kernel left out init")
		if qt.Check(t, qt.IsNil(c.close())) && !leaves(t, control, c) {
			t.Log("the kernel left out release")
		}
	}
	t.Fatalf("the control did not hear of %d flows", attempts)
	return connection{}
}

func (c connection) close() error { return errors.Join(c.client.Close(), c.server.Close()) }

// flowsLeave ends the connection, and waits until its flows are not in the table. Where the kernel
// left out release, the entry stays (KNOWN_ISSUES.md), and another connection has to do.
func (p path) flowsLeave(t *testing.T, control *loader.Control, c connection,
	end func(connection) error) {
	t.Helper()
	const attempts = 5
	for range attempts {
		qt.Assert(t, qt.IsNil(end(c)))
		if leaves(t, control, c) {
			_, err := control.Flow(c.key())
			qt.Check(t, qt.ErrorIs(err, loader.ErrNoFlow))
			return
		}
		t.Log("the kernel left out release")
		c = p.connect(t, control)
	}
	t.Fatalf("the flows of %d connections that ended stay in the table", attempts)
}

// leaves waits until no entry is of this connection. It reports whether that was so in time.
func leaves(t *testing.T, control *loader.Control, c connection) bool {
	t.Helper()
	return nstest.InTime(stallTimeout, func() bool {
		flows, err := control.Flows()
		qt.Assert(t, qt.IsNil(err))
		return !slices.ContainsFunc(flows, func(f loader.Flow) bool {
			return f.FlowKey == c.key() || f.FlowKey == reverse(c.key())
		})
	})
}

// heardOf reports whether both ends of a connection have their entry. The kernel's own controls
// keep none, nor does the one that does nothing.
func heardOf(t *testing.T, control *loader.Control, c connection) bool {
	t.Helper()
	if s := control.Scheme(); s.Object == nil || s.Sender == scheme.SenderLine {
		return true
	}
	for _, key := range []loader.FlowKey{c.key(), reverse(c.key())} {
		_, err := control.Flow(key)
		if errors.Is(err, loader.ErrNoFlow) {
			return false
		}
		qt.Assert(t, qt.IsNil(err))
	}
	return true
}

// connectOnce takes the connection as it comes.
func (p path) connectOnce(t *testing.T, control *loader.Control, listenAddr,
	dialAddr string) connection {
	t.Helper()
	choose := socket.Choose(control.Name())
	listen := net.ListenConfig{Control: choose}
	listen.SetMultipathTCP(false)
	dial := net.Dialer{Control: choose, Timeout: stallTimeout}
	var (
		l    net.Listener
		conn net.Conn
	)
	nstest.Do(t, p.server.NS, func() (err error) {
		l, err = listen.Listen(t.Context(), "tcp", net.JoinHostPort(listenAddr, "0"))
		return err
	})
	defer l.Close()
	nstest.Do(t, p.client.NS, func() error {
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return err
		}
		conn, err = dial.DialContext(t.Context(), "tcp", net.JoinHostPort(dialAddr, port))
		return err
	})
	c := connection{client: conn.(*net.TCPConn)}
	t.Cleanup(func() { c.client.Close() })
	accepted, err := l.Accept()
	qt.Assert(t, qt.IsNil(err))
	c.server = accepted.(*net.TCPConn)
	t.Cleanup(func() { c.server.Close() })
	return c
}

// key is the flow from client to server.
func (c connection) key() loader.FlowKey {
	return loader.FlowKey{Src: addrPort(c.client.LocalAddr()), Dst: addrPort(c.client.RemoteAddr()),
		Protocol: unix.IPPROTO_TCP}
}

// reverse is the flow of the other direction.
func reverse(k loader.FlowKey) loader.FlowKey {
	k.Src, k.Dst = k.Dst, k.Src
	return k
}

func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// stream is what a connection carries.
func stream() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{}) }

// send sends the stream until ctx ends, or the connection.
func (c connection) send(ctx context.Context) {
	src, buf := stream(), make([]byte, 64<<10)
	for ctx.Err() == nil {
		src.Read(buf)
		if _, err := c.client.Write(buf); err != nil {
			return
		}
	}
}

// start starts sending the stream, until the test ends.
func (c connection) start(t *testing.T) *receiver {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.send(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		c.client.Close()
		<-done
	})
	return &receiver{conn: c.server, want: stream()}
}

// receiver checks what arrives.
type receiver struct {
	conn *net.TCPConn
	want *rand.ChaCha8
}

// receive receives n bytes. Long waiting fails the test.
func (r *receiver) receive(t *testing.T, n int) {
	t.Helper()
	got, want := make([]byte, 64<<10), make([]byte, 64<<10)
	for n > 0 {
		k := min(n, len(got))
		qt.Assert(t, qt.IsNil(r.conn.SetReadDeadline(time.Now().Add(stallTimeout))))
		_, err := io.ReadFull(r.conn, got[:k])
		qt.Assert(t, qt.IsNil(err))
		r.want.Read(want[:k])
		qt.Assert(t, qt.IsTrue(bytes.Equal(got[:k], want[:k])))
		n -= k
	}
}

// drain receives what has arrived already, at whatever rate.
func (r *receiver) drain(t *testing.T) {
	t.Helper()
	const chunk = 64 << 10
	raw, err := r.conn.SyscallConn()
	qt.Assert(t, qt.IsNil(err))
	for queued := chunk; queued >= chunk; {
		r.receive(t, chunk)
		qt.Assert(t, qt.IsNil(raw.Control(func(fd uintptr) {
			queued,
				err = unix.IoctlGetInt(int(fd), unix.SIOCINQ)
		})))
		qt.Assert(t, qt.IsNil(err))
	}
}

func tcpInfo(t *testing.T, c *net.TCPConn) *unix.TCPInfo {
	t.Helper()
	info, err := socket.Info(c)
	qt.Assert(t, qt.IsNil(err))
	return info
}

func TestTransfer(t *testing.T) {
	const bytes = 10 << 20
	control := registered(t, pcn(10e9))
	p := newPath(t)
	c := p.connect(t, control)

	for _, k := range []loader.FlowKey{c.key(), reverse(c.key())} {
		f, err := control.Flow(k)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(f.FlowKey, k))
		qt.Check(t, qt.Equals(f.SendRateBps, 10e9))
		qt.Check(t, qt.Equals(f.Stat("w"), 1.0/128))
		qt.Check(t, qt.IsTrue(f.ECN))
	}
	flows, err := control.Flows()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(flows, 2))

	f, losses := c.transferred(t, p, control, bytes)
	for attempts := 1; f.Losses < losses && attempts < 5; attempts++ {
		t.Logf("once more: the control heard of %d recoveries of %d", f.Losses, losses)
		p = newPath(t)
		c = p.connect(t, control)
		f, losses = c.transferred(t, p, control, bytes)
	}
	for _, end := range []*net.TCPConn{c.client, c.server} {
		const ecn = 8 // TCPI_OPT_ECN
		qt.Check(t, qt.Equals(tcpInfo(t, end).Options&ecn, ecn))
	}
	qt.Check(t, qt.Equals(f.Losses, losses))
	qt.Check(t, qt.Equals(f.SendRateBps, 10e9>>losses))
	qt.Check(t, qt.IsTrue(f.SRTT > 0 && f.SRTT < time.Second), qt.Commentf("%v", f.SRTT))
	const mss = 64 << 10 // no packet carries more
	qt.Check(t, qt.IsTrue(f.Packets >= bytes/mss), qt.Commentf("%d packets", f.Packets))
	qt.Check(t, qt.Equals(f.MarkedPackets, 0))

	p.flowsLeave(t, control, c, connection.close)
}

// transferred sends all and returns the flow, and how often it recovered: on a busy machine the
// timer may expire before an ACK comes.
func (c connection) transferred(
	t *testing.T, p path, control *loader.Control, bytes int64,
) (f loader.Flow, losses uint64) {
	t.Helper()
	c.sendAll(t, bytes)
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	return f, p.recoveries(t)
}

// A socket that loses its local port before its control is told, as all do whose port the kernel
// chose, and one that is disconnected leave the table like others.
func TestFlowsLeave(t *testing.T) {
	control := registered(t, pcn(1e9))
	p := newPath(t)
	for name, end := range map[string]func(connection) error{
		"closed by the client": connection.close,
		"closed by the server": func(c connection) error {
			return errors.Join(c.server.Close(),
				c.client.Close())
		},
		"reset": func(c connection) error {
			return errors.Join(c.client.SetLinger(0), c.client.Close(), c.server.Close())
		},
		"disconnected": func(c connection) error {
			return errors.Join(disconnect(c.client),
				c.server.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := p.connect(t, control)
			_, err := control.Flow(c.key())
			qt.Assert(t, qt.IsNil(err))
			p.flowsLeave(t, control, c, end)
		})
	}
}

// disconnect is connect(AF_UNSPEC).
func disconnect(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		var unspec unix.RawSockaddrAny
		_, _, errno = unix.Syscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&unspec)),
			unix.SizeofSockaddrInet4)
	})
	if errno != 0 {
		return errno
	}
	return err
}

// IPv6 flows, and IPv4 flows of IPv6 sockets, have their own addresses.
func TestFlowAddresses(t *testing.T) {
	control := registered(t, pcn(1e9))
	p := newPath(t)
	p.client.AddAddr(t, netip.MustParsePrefix("fd00::1/64"))
	p.server.AddAddr(t, netip.MustParsePrefix("fd00::2/64"))
	for _, c := range []struct{ listen, dial string }{
		{"10.0.0.2", "10.0.0.2"},
		{"::", "10.0.0.2"},
		{"fd00::2", "fd00::2"},
	} {
		t.Run(c.listen+" from "+c.dial, func(t *testing.T) {
			conn := p.connectTo(t, control, c.listen, c.dial)
			for _, k := range []loader.FlowKey{conn.key(), reverse(conn.key())} {
				_, err := control.Flow(k)
				qt.Check(t, qt.IsNil(err))
			}
			conn.start(t).receive(t, 1<<20)
		})
	}
}

// near is equality to 5%.
func near(got, want float64) bool { return got > 0.95*want && got < 1.05*want }

// checkRate checks that frames leave at a pace, to 5%, and that on average they never leave faster.
// A busy machine that makes a sender miss its time, often even, does not change the pace; if it is
// later still, another fifth of a second may do. If it is so late that TCP's timer expires, a flow
// may have another rate for good: then again, if not nil, sets its rate once more.
func (p path) checkRate(t *testing.T, r *receiver, wantBps float64, again func()) {
	t.Helper()
	for attempts := 5; ; attempts-- {
		before := p.recoveries(t)
		lost := func() bool { return again != nil && p.recoveries(t) > before }
		problem := p.rateProblem(t, r, wantBps, lost)
		if !lost() || attempts == 1 {
			qt.Check(t, qt.Equals(problem, ""))
			return
		}
		t.Log("once more, a timer expired:", problem)
		again()
	}
}

// rateProblem says what is not as checkRate wants it, until lost.
func (p path) rateProblem(
	t *testing.T, r *receiver, wantBps float64, lost func() bool,
) string {
	t.Helper()
	const stretches, perS = 100, 5
	r.drain(t)
	wire := nstest.NewWire(t, p.client)
	var got []float64
	ok := false
	start, bytes := time.Now(), p.client.SentBytes(t)
	for len(got) < stretches && !ok && !lost() {
		r.receive(t, int(wantBps/8/perS))
		paceBps := wire.PaceBps(t)
		ok = near(paceBps, wantBps)
		got = append(got, math.Round(paceBps/1e5)/10)
	}
	averageBps := float64(p.client.SentBytes(t)-bytes) * 8 / time.Since(start).Seconds()
	switch {
	case !ok:
		return fmt.Sprintf("%v Mbit/s, want %.2f", got, wantBps/1e6)
	case averageBps >= 1.05*wantBps:
		return fmt.Sprintf("%g bit/s on average, want at most %g", averageBps, wantBps)
	}
	return ""
}

// Frames of 1514 bytes, the last of which 1448 are payload.
const (
	frameBytes   = 1514
	payloadBytes = 1448
)

func TestRateIsKept(t *testing.T) {
	control := registered(t, pcn(1e9))
	p := newPath(t)
	c := p.connect(t, control)
	r := c.start(t)
	for _, rateBps := range []uint64{100e6, 20e6, 50e6} {
		set := func() { qt.Assert(t, qt.IsNil(control.SetSendRate(c.key(), rateBps))) }
		set()
		p.checkRate(t, r, float64(rateBps), set)
		f, err := control.Flow(c.key())
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(f.SendRateBps, rateBps))
	}
	for _, rateBps := range []uint64{0, loader.MinSendRateBps - 1, 1e9 + 1} {
		err := control.SetSendRate(c.key(), rateBps)
		qt.Check(t, qt.ErrorMatches(err, "set rate of flow .* want 1000000 to 1000000000 bit/s"))
	}
	qt.Check(t, qt.ErrorIs(control.SetSendRate(loader.FlowKey{Src: c.key().Src, Dst: c.key().Src},
		1e8), loader.ErrNoFlow))
}

func TestLineKeepsRate(t *testing.T) {
	const rateBps = 100e6
	control := registered(t, line(rateBps))
	p := newPath(t)
	r := p.connect(t, control).start(t)
	p.checkRate(t, r, rateBps, nil)
}

// With dilation the kernel's clock runs slower than the papers'.
func TestRateIsDilated(t *testing.T) {
	control := registered(t, dilated(pcn(40e9), 10))
	p := newPath(t)
	c := p.connect(t, control)
	r := c.start(t)
	p.checkRate(t, r, 40e9/(1<<10),
		func() { qt.Assert(t, qt.IsNil(control.SetSendRate(c.key(), 40e9))) })
}

// SO_MAX_PACING_RATE, in bytes of payload per second, holds under every control and may change on
// the way.
func TestMaxPacingRate(t *testing.T) {
	for name, r := range paced(1e9) {
		t.Run(name, func(t *testing.T) {
			control := registered(t, r)
			p := newPath(t)
			c := p.connect(t, control)
			r := c.start(t)
			for _, bytesPerS := range []int{2.5e6, 5e6} {
				raw, err := c.client.SyscallConn()
				qt.Assert(t, qt.IsNil(err))
				var errno error
				qt.Assert(t, qt.IsNil(raw.Control(func(fd uintptr) {
					errno = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE,
						bytesPerS)
				})))
				qt.Assert(t, qt.IsNil(errno))
				p.checkRate(t, r, float64(bytesPerS)*8*frameBytes/payloadBytes, nil)
			}
		})
	}
}

// Each recovery, and each timeout, halves the rate, once.
func TestLossHalvesRate(t *testing.T) {
	const lineRateBps, drops = 10e9, 3
	control := registered(t, pcn(lineRateBps))
	f, losses := afterLosses(t, control, drops)
	qt.Check(t, qt.Equals(f.Losses, losses))
	qt.Check(t, qt.Equals(f.SendRateBps, lineRateBps>>losses))
	qt.Check(t, qt.Equals(f.Stat("w"), 1.0/128))
	qt.Check(t, qt.IsTrue(f.Retransmissions >= drops),
		qt.Commentf("%d retransmissions", f.Retransmissions))
}

// afterLosses sends over a path that drops, and returns the flow and how often it recovered. TCP
// does not tell the control of a timeout within a recovery, and some kernels leave out struct_ops
// programs for some packets (KNOWN_ISSUES.md): then it tries other flows, up to five in all.
func afterLosses(t *testing.T, control *loader.Control, drops uint64) (f loader.Flow,
	losses uint64) {
	t.Helper()
	for range 5 {
		if f, losses = afterDrops(t, control, drops); f.Losses >= losses {
			break
		}
		t.Logf("the control heard of %d recoveries of %d", f.Losses, losses)
	}
	return f, losses
}

// afterDrops does that with one flow.
func afterDrops(t *testing.T, control *loader.Control, drops uint64) (f loader.Flow,
	losses uint64) {
	t.Helper()
	p := newPath(t)
	d := nstest.NewDropper(t, p.server)
	c := p.connect(t, control)
	r := c.start(t)
	d.DropEvery(t, 5000) // more than are on the way at once
	for d.Dropped(t) < drops {
		r.receive(t, 64<<10)
	}
	d.DropEvery(t, 0)
	r.receive(t, 1<<20)
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	losses = p.recoveries(t) // read last: the flow goes on
	qt.Assert(t, qt.IsTrue(losses >= drops), qt.Commentf("%d recoveries", losses))
	return f, losses
}

// recoveries is how often a connection of the client went into recovery or timed out.
func (p path) recoveries(t *testing.T) uint64 {
	t.Helper()
	return nstest.Recoveries(t, p.client.NS)
}

// One packet in a hundred is lost: the transfer goes on, at the floor of the rate.
func TestTransferSurvivesLoss(t *testing.T) {
	control := registered(t, with(pcn(200e6), "min_rate", "50Mbps"))
	p := newPath(t)
	d := nstest.NewDropper(t, p.server)
	d.DropEvery(t, 100)
	c := p.connect(t, control)
	c.start(t).receive(t, 10<<20)
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(d.Dropped(t) > 50), qt.Commentf("%d dropped", d.Dropped(t)))
	qt.Check(t, qt.IsTrue(f.Losses > 10), qt.Commentf("%d losses", f.Losses))
	qt.Check(t, qt.Equals(f.SendRateBps, 50e6))
}

// After a blackout, of which the retransmission timer tells, the flow goes on with an open window.
func TestTransferSurvivesBlackout(t *testing.T) {
	control := registered(t, pcn(200e6))
	p := newPath(t)
	d := nstest.NewDropper(t, p.server)
	c := p.connect(t, control)
	r := c.start(t)
	var f loader.Flow
	for range 5 { // a kernel may leave out the program that hears of the timer (KNOWN_ISSUES.md)
		blackout(t, d, c, r)
		var err error
		f, err = control.Flow(c.key())
		qt.Assert(t, qt.IsNil(err))
		if f.Losses > 0 {
			break
		}
		t.Log("once more: the control was not told that the timer expired")
	}
	qt.Check(t, qt.IsTrue(f.Losses > 0))
	qt.Check(t, qt.Equals(f.SendRateBps, 200e6>>f.Losses))
}

// blackout loses everything until the timer expires, and checks that the flow goes on after.
func blackout(t *testing.T, d *nstest.Dropper, c connection, r *receiver) {
	t.Helper()
	r.receive(t, 1<<20)
	d.DropEvery(t, 1)
	const caLoss = 4 // TCP_CA_Loss
	nstest.Eventually(t, "the retransmission timer expires",
		func() bool { return tcpInfo(t, c.client).Ca_state == caLoss })
	d.DropEvery(t, 0)
	r.receive(t, 1<<20)
	nstest.Eventually(t, "the window is open again",
		func() bool { return tcpInfo(t, c.client).Snd_cwnd == 1<<20 })
}

// Flows that find the table full have the window of a plain TCP, and are counted.
func TestTableFull(t *testing.T) {
	table := pcn(50e6)
	table.MaxFlows = 1
	p := newPath(t)
	d := nstest.NewDropper(t, p.server)
	addr := p.server.Addr.String()
	var control *loader.Control
	var c connection
	for attempts := 5; ; attempts-- {
		control = registered(t, table)
		p.connectOnce(t, control, addr, addr) // one end takes the entry
		first := refused(t, control)
		c = p.connectOnce(t, control, addr, addr)
		second := refused(t, control)
		if first == 1 && second == 3 {
			break
		}
		// the kernel left out init of an end (KNOWN_ISSUES.md), which is counted with its first ACK
		t.Logf("once more: %d ends were refused, then %d", first, second)
		qt.Assert(t, qt.IsTrue(attempts > 1 && first <= 1 && second <= 3))
		qt.Assert(t, qt.IsNil(control.Close()))
	}
	_, err := control.Flow(c.key())
	qt.Assert(t, qt.ErrorIs(err, loader.ErrNoFlow))
	r := c.start(t)
	r.receive(t, 1<<20)
	window := tcpInfo(t, c.client).Snd_cwnd
	qt.Check(t, qt.IsTrue(window >= 10 && window < 1<<20), qt.Commentf("%d packets", window))
	before := tcpInfo(t, c.client).Total_retrans
	const every = 50 // packets; CUBIC grows by one a packet at most, and a loss takes 30%
	d.DropEvery(t, every)
	r.receive(t, 8<<20)
	lossy := tcpInfo(t, c.client)
	d.DropEvery(t, 0)
	qt.Check(t, qt.IsTrue(lossy.Total_retrans > before))
	qt.Check(t, qt.IsTrue(lossy.Snd_cwnd <= every*10/3), qt.Commentf("%d packets", lossy.Snd_cwnd))
	qt.Check(t, qt.Equals(refused(t, control), 3))
}

// Packets that are not full count as what they are.
func TestSentBytesOfSmallWrites(t *testing.T) {
	for _, table := range []loader.Registration{pcn(50e6), ldcp()} {
		t.Run(table.Scheme.Name, func(t *testing.T) {
			control := registered(t, table)
			c := newPath(t).connect(t, control)
			const writes, bytes = 200, 100
			for range writes {
				_, err := c.client.Write(make([]byte, bytes))
				qt.Assert(t, qt.IsNil(err))
				_, err = io.ReadFull(c.server, make([]byte, bytes))
				qt.Assert(t, qt.IsNil(err))
			}
			flow, err := control.Flow(c.key())
			qt.Assert(t, qt.IsNil(err))
			const headers = 14 + 20 + 32
			most := uint64(writes * (bytes + headers))
			qt.Check(t, qt.IsTrue(flow.SentBytes > most/2 && flow.SentBytes <= most),
				qt.Commentf("%d, at most %d", flow.SentBytes, most))
		})
	}
}

func refused(t *testing.T, control *loader.Control) uint64 {
	t.Helper()
	got, err := control.FlowsRefused()
	qt.Assert(t, qt.IsNil(err))
	return got
}

// Sockets keep a control that was unregistered.
func TestTransferSurvivesUnregistering(t *testing.T) {
	control := registered(t, pcn(1e9))
	r := newPath(t).connect(t, control).start(t)
	r.receive(t, 1<<20)
	qt.Assert(t, qt.IsNil(control.Close()))
	nstest.Eventually(t, "the name is free", func() bool { return !available(t, "pcn") })
	r.receive(t, 10<<20)
}
