// SPDX-License-Identifier: Apache-2.0

package socket_test

import (
	"net"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/socket"
)

// dial connects to a listener of this machine.
func dial(t *testing.T, control string) (*net.TCPConn, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { l.Close() })
	d := net.Dialer{Control: socket.Choose(control)}
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn), nil
}

// Every kernel has reno, and lets every user choose it.
func TestChosenControl(t *testing.T) {
	usual, err := dial(t, "")
	qt.Assert(t, qt.IsNil(err))
	byDefault, err := socket.Control(usual)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Not(qt.Equals(byDefault, "")))

	c, err := dial(t, "reno")
	qt.Assert(t, qt.IsNil(err))
	name, err := socket.Control(c)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(name, "reno"))
	raw, err := c.SyscallConn()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsNil(socket.SetControl(raw, byDefault)))
	name, err = socket.Control(c)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(name, byDefault))
}

func TestUnknownControl(t *testing.T) {
	_, err := dial(t, "none_such")
	qt.Check(t, qt.ErrorIs(err, unix.ENOENT))
	qt.Check(t, qt.ErrorMatches(err, ".*choose congestion control none_such: .*"))
}

func TestInfo(t *testing.T) {
	c, err := dial(t, "")
	qt.Assert(t, qt.IsNil(err))
	_, err = c.Write(make([]byte, 1000))
	qt.Assert(t, qt.IsNil(err))
	info, err := socket.Info(c)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(info.Bytes_sent, 1000))
	qt.Assert(t, qt.IsNil(c.Close()))
	_, err = socket.Info(c)
	qt.Check(t, qt.ErrorIs(err, net.ErrClosed))
}
