// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

const (
	payloadBytes = 1448 // of a frame of 1514 bytes
	tcpiOptECN   = 8    // linux/tcp.h: TCPI_OPT_ECN
	// stallTimeout is longer than TCP ever waits in these tests.
	stallTimeout = 10 * time.Second
)

// registered registers a congestion control until the test ends. Its name may be free only a moment
// after another test has ended.
func registered(t *testing.T, register func() (*loader.Control, error)) *loader.Control {
	t.Helper()
	nstest.RequireRoot(t)
	nstest.Turn(t)
	var (
		c   *loader.Control
		err error
	)
	nstest.Eventually(t, "the name of the control is free", func() bool {
		c, err = register()
		return !errors.Is(err, unix.EEXIST)
	})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() {
		qt.Check(t, qt.IsNil(c.Close()))
		nstest.Eventually(t, "the control is gone", func() bool { return !available(t, c.Name()) })
	})
	return c
}

func available(t *testing.T, name string) bool {
	t.Helper()
	_, err := loader.KernelControl(name)
	return err == nil
}

// end is one host of a path.
type end struct{ nstest.End }

// path is two hosts and the link between them.
type path struct{ client, server end }

func newPath(t *testing.T) path {
	t.Helper()
	client, server := nstest.Veth(t, nstest.New(t), nstest.New(t),
		netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.2/24"))
	return path{end{client}, end{server}}
}

// plainSYN makes the host's SYNs not ECN-capable.
func (e end) plainSYN(t *testing.T) {
	t.Helper()
	syn, err := tc.LoadPlainSYN()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { syn.Close() })
	qt.Assert(t, qt.IsNil(syn.Attach(e.NS, e.Index())))
}

// filters are the device's clsact, if any, and the names of its filters: ingress | egress.
func (e end) filters(t *testing.T) string {
	t.Helper()
	nl := nstest.Netlink(t, e.NS)
	qdiscs, err := nl.QdiscList(e.Link)
	qt.Assert(t, qt.IsNil(err))
	var out []string
	for _, q := range qdiscs {
		if q.Type() == "clsact" {
			out = append(out, q.Type())
		}
	}
	if out == nil {
		return ""
	}
	for i, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		if i > 0 {
			out = append(out, "|")
		}
		filters, err := nl.FilterList(e.Link, parent)
		qt.Assert(t, qt.IsNil(err))
		for _, f := range filters {
			if b, ok := f.(*netlink.BpfFilter); ok && b.Name != "" {
				out = append(out, b.Name)
			}
		}
	}
	return strings.Join(out, " ")
}

// connection is a TCP connection from the client to the server, which carries a stream.
type connection struct {
	client, server *net.TCPConn
	sent, received *rand.ChaCha8
}

// connect connects with these congestion controls; "" is the namespace's own.
func (p path) connect(t *testing.T, clientControl, serverControl string) connection {
	t.Helper()
	listen := net.ListenConfig{Control: socket.Choose(serverControl)}
	listen.SetMultipathTCP(false)
	dial := net.Dialer{Control: socket.Choose(clientControl), Timeout: stallTimeout}
	var (
		l    net.Listener
		conn net.Conn
	)
	nstest.Do(t, p.server.NS, func() (err error) {
		l, err = listen.Listen(t.Context(), "tcp", p.server.Addr.String()+":0")
		return err
	})
	defer l.Close()
	nstest.Do(t, p.client.NS, func() (err error) {
		conn, err = dial.DialContext(t.Context(), "tcp", l.Addr().String())
		return err
	})
	accepted, err := l.Accept()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() {
		conn.Close()
		accepted.Close()
	})
	return connection{conn.(*net.TCPConn), accepted.(*net.TCPConn), stream(), stream()}
}

func stream() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{}) }

// transfer sends n bytes of the stream, a multiple of 64 KB, and checks what arrives.
func (c connection) transfer(t *testing.T, n int) {
	t.Helper()
	const chunk = 64 << 10
	sent := make(chan error, 1)
	go func() {
		buf := make([]byte, chunk)
		for range n / chunk {
			c.sent.Read(buf)
			if _, err := c.client.Write(buf); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	got, want := make([]byte, chunk), make([]byte, chunk)
	for range n / chunk {
		qt.Assert(t, qt.IsNil(c.server.SetReadDeadline(time.Now().Add(stallTimeout))))
		_, err := io.ReadFull(c.server, got)
		qt.Assert(t, qt.IsNil(err))
		c.received.Read(want)
		qt.Assert(t, qt.IsTrue(bytes.Equal(got, want)))
	}
	qt.Assert(t, qt.IsNil(<-sent))
	nstest.Eventually(t, "everything is acknowledged", func() bool { return tcpInfo(t, c.client).Unacked == 0 })
}

// flow is what the control knows of the flow from client to server.
func (c connection) flow(t *testing.T, control *loader.Control) loader.Flow {
	t.Helper()
	f, err := control.Flow(loader.FlowKey{
		Src: c.client.LocalAddr().(*net.TCPAddr).AddrPort(), Dst: c.client.RemoteAddr().(*net.TCPAddr).AddrPort(),
		Protocol: unix.IPPROTO_TCP,
	})
	qt.Assert(t, qt.IsNil(err))
	return f
}

func tcpInfo(t *testing.T, c *net.TCPConn) *unix.TCPInfo {
	t.Helper()
	info, err := socket.Info(c)
	qt.Assert(t, qt.IsNil(err))
	return info
}
