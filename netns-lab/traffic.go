// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pcn/loader"
	"pcn/loader/ns"
	"pcn/netns-lab/experiment"
)

const (
	sinkPort      = 9 // discard
	flowSrcPort   = 10000
	flowDstPort   = 20000
	burstSrcPort  = 30000
	sendBuffer    = 4 << 20
	receiveBuffer = 16 << 20
	// receiveLowat wakes a reader once for so many bytes, not for every packet.
	receiveLowat = 256 << 10
	chunk        = 256 << 10
	startJitter  = 10_000 // ns: flows start within, by the seed
)

// stream is a TCP flow.
type stream struct {
	experiment.Flow
	id      uint32
	key     loader.FlowKey
	startNs uint64 // when it may send, on the papers' clock
	send    *net.TCPConn
	receive *net.TCPConn
	raw     syscall.RawConn // of send
}

// shot is one UDP flow of a burst.
type shot struct {
	name    string
	from    string
	to      string
	id      uint32
	key     loader.FlowKey
	startNs uint64
	frames  int
	bytes   uint64
	conn    *net.UDPConn
}

// traffic is all flows of a run.
type traffic struct {
	f       *fabric
	streams []*stream
	shots   []*shot
	ports   map[string]uint16 // how many source ports bursts have taken, by host
	wg      sync.WaitGroup
	errs    chan error
}

// newTraffic connects the flows; nothing is sent yet.
func newTraffic(ctx context.Context, f *fabric) (*traffic, error) {
	t := &traffic{f: f, errs: make(chan error, 2*len(f.plan.exp.Flows)+1)}
	for i, flow := range f.plan.exp.Flows {
		s := &stream{Flow: flow, id: uint32(i)}
		t.streams = append(t.streams, s) // before it is whole: close takes what there is
		if err := t.connect(ctx, s); err != nil {
			return nil, errors.Join(fmt.Errorf("flow %s: %w", flow.Name, err), t.close())
		}
	}
	for _, b := range f.plan.exp.Bursts {
		if err := t.openBurst(b); err != nil {
			return nil, errors.Join(fmt.Errorf("burst %s: %w", b.Name, err), t.close())
		}
	}
	return t, nil
}

// connect opens a flow's connection: the listener in the receiver's namespace, the dialer in the sender's.
func (t *traffic) connect(ctx context.Context, s *stream) error {
	p := t.f.plan
	from, to := p.host(s.From), p.host(s.To)
	src := netip.AddrPortFrom(p.nodes[from].addr, flowSrcPort+uint16(s.id))
	dst := netip.AddrPortFrom(p.nodes[to].addr, flowDstPort+uint16(s.id))
	s.key = loader.FlowKey{Src: src, Dst: dst, Protocol: unix.IPPROTO_TCP}
	if err := t.f.arrive.Track(s.key, s.id); err != nil {
		return err
	}
	var ln net.Listener
	if err := ns.Do(t.f.nodes[to].ns, func() (err error) {
		lc := net.ListenConfig{Control: t.listenerOptions}
		ln, err = lc.Listen(ctx, "tcp4", dst.String())
		return err
	}); err != nil {
		return fmt.Errorf("listen on %s: %w", dst, err)
	}
	defer ln.Close()
	if err := ns.Do(t.f.nodes[from].ns, func() error {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(src), Control: t.dialerOptions, KeepAlive: -1}
		c, err := d.DialContext(ctx, "tcp4", dst.String())
		if err == nil {
			s.send = c.(*net.TCPConn)
		}
		return err
	}); err != nil {
		return fmt.Errorf("connect %s to %s: %w", src, dst, err)
	}
	c, err := ln.Accept()
	if err != nil {
		return fmt.Errorf("accept on %s: %w", dst, err)
	}
	s.receive = c.(*net.TCPConn)
	if err := s.openWindow(); err != nil {
		return fmt.Errorf("open window: %w", err)
	}
	if s.raw, err = s.send.SyscallConn(); err != nil {
		return fmt.Errorf("get sender's socket: %w", err)
	}
	return t.setRates(s)
}

// openWindow lets the receiver say one byte: a handshake offers 64 KB at most, for which a flow would wait a round trip.
func (s *stream) openWindow() error {
	var b [1]byte
	if _, err := s.receive.Write(b[:]); err != nil {
		return err
	}
	_, err := io.ReadFull(s.send, b[:])
	return err
}

// option is a socket option of integer value.
type option struct{ level, name, value int }

func setOptions(c syscall.RawConn, options ...option) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		for _, o := range options {
			if err = unix.SetsockoptInt(int(fd), o.level, o.name, o.value); err != nil {
				err = fmt.Errorf("set socket option %d/%d to %d: %w", o.level, o.name, o.value, err)
				return
			}
		}
	}); cerr != nil {
		return cerr
	}
	return err
}

// listenerOptions are inherited by the accepted socket: its ACKs go by the control class.
func (t *traffic) listenerOptions(_, _ string, c syscall.RawConn) error {
	return errors.Join(t.setControl(c), setOptions(c,
		option{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer},
		option{unix.SOL_SOCKET, unix.SO_RCVLOWAT, receiveLowat},
		option{unix.IPPROTO_IP, unix.IP_TOS, ControlDSCP << 2}))
}

func (t *traffic) dialerOptions(_, _ string, c syscall.RawConn) error {
	return errors.Join(t.setControl(c), setOptions(c,
		option{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer},
		option{unix.IPPROTO_IP, unix.IP_TOS, DataDSCP << 2}))
}

// setControl chooses the congestion control by name, on every socket.
func (t *traffic) setControl(c syscall.RawConn) error {
	name := t.f.control.Name()
	var err error
	if cerr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	}); cerr != nil {
		return cerr
	}
	if err != nil {
		return fmt.Errorf("choose congestion control %s: %w", name, err)
	}
	return nil
}

// setRates puts the flow where it starts: one with a rate at its initial rate, from where its control takes it; one
// without control at that rate for good. One with a window starts as its control does. The limit holds for all.
func (t *traffic) setRates(s *stream) error {
	switch {
	case t.f.scheme == schemePFC:
		return t.limit(s, uint64(s.InitialRate))
	case !t.f.control.HasRate():
		return t.limitWindow(s)
	}
	if err := t.f.control.SetSendRate(s.key, uint64(s.InitialRate)); err != nil {
		return err
	}
	return t.limit(s, uint64(s.InitialRate))
}

// limitWindow limits a flow that has a window, and so makes TCP pace it, only if it must.
func (t *traffic) limitWindow(s *stream) error {
	if s.LimitRate >= t.f.plan.exp.Topology.Rate {
		return nil
	}
	return t.limit(s, uint64(s.LimitRate))
}

// limit sets SO_MAX_PACING_RATE, which counts payload; 0: none.
func (t *traffic) limit(s *stream, rateBps uint64) error {
	frame := uint64(t.f.plan.exp.Frame)
	payload := frame - ethHeader - tcpIPHeader
	value := ^uint64(0)
	if rateBps != 0 {
		value = t.f.clock.bytesPerS(rateBps) * payload / frame
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], value)
	var err error
	if cerr := s.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, string(b[:]))
	}); cerr != nil {
		return cerr
	}
	if err != nil {
		return fmt.Errorf("set SO_MAX_PACING_RATE: %w", err)
	}
	return nil
}

// openBurst opens the sockets of a burst. Their send buffers hold all of it, so that it can be sent ahead of
// its time.
func (t *traffic) openBurst(b experiment.Burst) error {
	p := t.f.plan
	to := p.host(b.To)
	for _, from := range b.From {
		i := p.host(from)
		starts := b.Starts(p.exp.Duration)
		for k := range b.Flows * len(starts) {
			s := &shot{
				name: fmt.Sprintf("%s-%s-%d", b.Name, from, k), from: from, to: b.To,
				id:     uint32(len(t.streams) + len(t.shots)),
				frames: p.burstFrames(b), bytes: uint64(b.Size),
			}
			s.key = loader.FlowKey{
				Src:      netip.AddrPortFrom(p.nodes[i].addr, t.freePort(from)),
				Dst:      netip.AddrPortFrom(p.nodes[to].addr, sinkPort),
				Protocol: unix.IPPROTO_UDP,
			}
			s.startNs = uint64(starts[k/b.Flows])
			t.shots = append(t.shots, s)
			if err := t.openShot(s, t.f.nodes[i]); err != nil {
				return fmt.Errorf("flow %s: %w", s.name, err)
			}
		}
	}
	return nil
}

// freePort is the next source port for bursts of this host.
func (t *traffic) freePort(host string) uint16 {
	if t.ports == nil {
		t.ports = map[string]uint16{}
	}
	port := burstSrcPort + t.ports[host]
	t.ports[host]++
	return port
}

func (t *traffic) openShot(s *shot, n netNode) error {
	if err := t.f.arrive.Track(s.key, s.id); err != nil {
		return err
	}
	const skbOverhead = 2048 // what an skb costs a send buffer beside its frame, and more
	buffer := s.frames * (int(t.f.plan.exp.Frame) + skbOverhead)
	// struct sock_txtime: departure times are on the monotonic clock
	var txtime [8]byte
	binary.NativeEndian.PutUint32(txtime[:], unix.CLOCK_MONOTONIC)
	return ns.Do(n.ns, func() error {
		c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(s.key.Src), net.UDPAddrFromAddrPort(s.key.Dst))
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		s.conn = c
		raw, err := c.SyscallConn()
		if err != nil {
			return fmt.Errorf("get socket: %w", err)
		}
		if err := setOptions(raw,
			option{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer},
			option{unix.IPPROTO_IP, unix.IP_TOS, DataDSCP << 2}); err != nil {
			return err
		}
		if cerr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_TXTIME, string(txtime[:]))
		}); cerr != nil {
			return cerr
		}
		if err != nil {
			return fmt.Errorf("set SO_TXTIME: %w", err)
		}
		return nil
	})
}

// burstFrames is how many packets all bursts are.
func (t *traffic) burstFrames() int {
	var n int
	for _, s := range t.shots {
		n += s.frames
	}
	return n
}

// loadBursts hands all bursts to their hosts' ports, each packet with its departure time: t0Ns is t = 0 on the
// papers' clock. The flows of a host take turns, packet by packet.
func (t *traffic) loadBursts(t0Ns uint64) error {
	payload := make([]byte, t.f.plan.exp.Frame-ethHeader-udpIPHeader)
	left := t.shots
	for round := 0; len(left) > 0; round++ {
		var more []*shot
		for _, s := range left {
			if err := t.sendFrame(s, round, t0Ns+s.startNs, payload); err != nil {
				return fmt.Errorf("flow %s: %w", s.name, err)
			}
			if round+1 < s.frames {
				more = append(more, s)
			}
		}
		left = more
	}
	return nil
}

func (t *traffic) sendFrame(s *shot, i int, atNs uint64, payload []byte) error {
	if rest := s.bytes - uint64(i)*uint64(len(payload)); rest < uint64(len(payload)) {
		payload = payload[:rest]
	}
	oob := make([]byte, unix.CmsgSpace(8))
	// struct cmsghdr of a 64-bit machine: length, level, type
	binary.NativeEndian.PutUint64(oob, uint64(unix.CmsgLen(8)))
	binary.NativeEndian.PutUint32(oob[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(oob[12:], unix.SCM_TXTIME)
	binary.NativeEndian.PutUint64(oob[unix.CmsgLen(0):], t.f.clock.kernel(atNs))
	if _, _, err := s.conn.WriteMsgUDPAddrPort(payload, oob, netip.AddrPort{}); err != nil {
		return fmt.Errorf("send packet %d: %w", i, err)
	}
	return nil
}

// start sends the flows off: each at its time after t = 0, give or take the seed.
func (t *traffic) start(ctx context.Context, t0Ns uint64) {
	rng := t.f.plan.rng()
	for _, s := range t.streams {
		s.startNs = uint64(int64(t0Ns)+int64(s.Start)) + rng.Uint64N(startJitter)
		t.wg.Add(2)
		go t.run(s.Name+": send", func() error { return t.pump(ctx, s) })
		go t.run(s.Name+": receive", func() error { return drain(s.receive) })
	}
}

func (t *traffic) run(what string, fn func() error) {
	defer t.wg.Done()
	if err := fn(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled) {
		t.errs <- fmt.Errorf("flow %s: %w", what, err)
	}
}

// pump writes the flow's data: Size bytes, or without end.
func (t *traffic) pump(ctx context.Context, s *stream) error {
	if err := t.f.clock.sleepUntil(ctx, s.startNs); err != nil {
		return err
	}
	buf := make([]byte, chunk)
	left := uint64(s.Size)
	for first := true; s.Size == 0 || left > 0; first = false {
		n := uint64(len(buf))
		if s.Size != 0 {
			n = min(n, left)
		}
		sent, err := s.send.Write(buf[:n])
		if err != nil {
			return err
		}
		left -= uint64(sent)
		// with packets under way at its initial rate, a controlled flow is its control's
		if first && t.f.control.HasRate() {
			if err := t.limit(s, uint64(s.LimitRate)); err != nil {
				return err
			}
		}
	}
	return s.send.CloseWrite()
}

// drain reads until the end without copying.
func drain(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	end := false
	for !end {
		var rerr error
		if err := raw.Read(func(fd uintptr) bool {
			for {
				n, err := recvTrunc(int(fd))
				switch {
				case err == unix.EAGAIN:
					return false
				case err != nil:
					rerr = err
					return true
				case n == 0:
					end = true
					return true
				}
			}
		}); err != nil {
			return err
		}
		if rerr != nil && !errors.Is(rerr, unix.ECONNRESET) {
			return os.NewSyscallError("recv", rerr)
		}
		end = end || rerr != nil
	}
	return nil
}

// close resets the connections, so that nothing unsent is sent, and waits for the goroutines.
func (t *traffic) close() error {
	var errs []error
	shut := func(c io.Closer) {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for _, s := range t.streams {
		if s.send != nil {
			errs = append(errs, s.send.SetLinger(0))
			shut(s.send)
		}
		if s.receive != nil {
			shut(s.receive)
		}
	}
	for _, s := range t.shots {
		if s.conn != nil {
			shut(s.conn)
		}
	}
	t.wg.Wait()
	close(t.errs)
	for err := range t.errs {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close flows: %w", err)
	}
	return nil
}

// tcpInfo is the kernel's view of the flow's sender.
func (s *stream) tcpInfo() (*unix.TCPInfo, error) {
	var (
		info *unix.TCPInfo
		err  error
	)
	if cerr := s.raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); cerr != nil {
		return nil, fmt.Errorf("flow %s: %w", s.Name, cerr)
	}
	if err != nil {
		return nil, fmt.Errorf("flow %s: read TCP_INFO: %w", s.Name, err)
	}
	return info, nil
}
