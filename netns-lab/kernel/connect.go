// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
)

// connector opens the connections of TCP flows.
type connector struct {
	plan      *plan
	nodes     namespaces
	control   string // congestion control of both ends, unless the flow has its own
	buffers   buffers
	addresses *addresses
}

// connect opens a flow's connection between its hosts' namespaces.
func (c *connector) connect(ctx context.Context, s *stream) error {
	from, to := c.plan.host(s.From), c.plan.host(s.To)
	src, err := c.addresses.next(from, flowSrcPorts)
	if err != nil {
		return err
	}
	dst, err := c.addresses.next(to, flowDstPorts)
	if err != nil {
		return err
	}
	s.key = loader.FlowKey{Src: src, Dst: dst, Protocol: unix.IPPROTO_TCP}
	control := cmp.Or(s.Control, c.control)
	ln, err := c.listen(ctx, c.nodes[to], dst, control)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", dst, err)
	}
	defer ln.Close()
	options := c.dialerOptions(control, s.Priority)
	if s.send, err = c.dial(ctx, c.nodes[from], src, dst, options); err != nil {
		return fmt.Errorf("connect %s to %s: %w", src, dst, err)
	}
	conn, err := ln.Accept()
	if err != nil {
		return fmt.Errorf("accept on %s: %w", dst, err)
	}
	s.receive = conn.(*net.TCPConn)
	if err := c.classifyACKs(s.receive, s.Priority); err != nil {
		return fmt.Errorf("set the class of ACKs of %s: %w", dst, err)
	}
	if s.raw, err = s.send.SyscallConn(); err != nil {
		return fmt.Errorf("get sender's socket: %w", err)
	}
	return nil
}

// classifyACKs gives the receiver's ACKs the class of their flow's data, if they are to have it.
func (c *connector) classifyACKs(conn *net.TCPConn, priority int) error {
	if c.plan.exp.Transport.Acks != experiment.ReplyData {
		return nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return setOptions(raw, option{unix.IPPROTO_IP, unix.IP_TOS, dataDSCP(priority) << 2})
}

func (c *connector) listen(
	ctx context.Context, n namespace, dst netip.AddrPort, control string,
) (ln net.Listener, err error) {
	err = n.do(func() (err error) {
		lc := net.ListenConfig{Control: c.listenerOptions(control), KeepAlive: -1}
		// Go's default is MPTCP, whose receiving socket wakes its reader at every packet,
		// whatever SO_RCVLOWAT says: a quarter of all instructions of a run.
		lc.SetMultipathTCP(false)
		ln, err = lc.Listen(ctx, "tcp4", dst.String())
		return err
	})
	return ln, err
}

func (c *connector) dial(
	ctx context.Context, n namespace, src, dst netip.AddrPort, options socketOptions,
) (conn *net.TCPConn, err error) {
	err = n.do(func() error {
		d := net.Dialer{
			LocalAddr: net.TCPAddrFromAddrPort(src), Control: options, KeepAlive: -1,
		}
		tcp, err := d.DialContext(ctx, "tcp4", dst.String())
		if err == nil {
			conn = tcp.(*net.TCPConn)
		}
		return err
	})
	return conn, err
}

// socketOptions sets the options of a socket before it is bound.
type socketOptions = func(network, address string, raw syscall.RawConn) error

// listenerOptions returns the options that the accepted socket inherits. They put its ACKs into the
// control class.
func (c *connector) listenerOptions(control string) socketOptions {
	return func(_, _ string, raw syscall.RawConn) error {
		return errors.Join(socket.SetControl(raw, control), setOptions(raw,
			option{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer},
			option{unix.SOL_SOCKET, unix.SO_RCVLOWAT, c.buffers.lowat},
			option{unix.IPPROTO_IP, unix.IP_TOS, controlDSCP << 2}))
	}
}

func (c *connector) dialerOptions(control string, priority int) socketOptions {
	return func(_, _ string, raw syscall.RawConn) error {
		return errors.Join(socket.SetControl(raw, control), setOptions(raw,
			option{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, c.buffers.send},
			option{unix.IPPROTO_IP, unix.IP_TOS, dataDSCP(priority) << 2}))
	}
}

// openWindows announces the whole receive window to senders: a SYN-ACK can announce 64 KB at most,
// the next segment more.
func openWindows(streams []*stream) error {
	var b [1]byte
	for _, s := range streams {
		if _, err := s.receive.Write(b[:]); err != nil {
			return fmt.Errorf("flow %s: open the window: %w", s.Name, err)
		}
	}
	for _, s := range streams {
		if _, err := io.ReadFull(s.send, b[:]); err != nil {
			return fmt.Errorf("flow %s: hear of the window: %w", s.Name, err)
		}
	}
	return nil
}
