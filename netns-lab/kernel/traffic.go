// SPDX-License-Identifier: Apache-2.0

package kernel

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
	"time"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

const (
	sinkPort      = 9 // discard
	receiveBuffer = 16 << 20
	chunk         = 256 << 10
	startJitter   = 10_000 // ns: flows start within, by the seed
	unpaced       = 10     // packets of a connection that Linux does not pace: tcp_update_skb_after_send
)

// portRange are the ports that one side of flows takes at a host.
type portRange struct{ first, last uint16 }

// The ports of TCP flows' senders and receivers, and of bursts, which are UDP.
var (
	flowSrcPorts  = portRange{10000, 19999}
	flowDstPorts  = portRange{20000, 65535}
	burstSrcPorts = portRange{30000, 65535}
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
	primed  uint64          // bytes that were sent before it started
}

// shot is one UDP flow of a burst.
type shot struct {
	name    string
	group   string // name of the burst
	from    string
	to      string
	id      uint32
	key     loader.FlowKey
	startNs uint64
	frames  int
	bytes   uint64

	gapNs    uint64 // between packets that leave at a rate; 0: all leave at once
	priority int
	conn     *net.UDPConn
}

// ecn is the ECN field of its packets: a burst is not ECN-capable, one that sends at a rate is ECT(0).
func (s *shot) ecn() int {
	if s.gapNs == 0 {
		return 0
	}
	return 2
}

// traffic is all flows of a run.
type traffic struct {
	f       *fabric
	streams []*stream
	shots   []*shot
	taken   map[takenPorts]uint16 // how many
	buffers buffers
	data    []byte // what streams send, again and again
	wg      sync.WaitGroup
	errs    chan error
}

// takenPorts are those of a range at a host.
type takenPorts struct {
	host int
	portRange
}

// buffers are the sizes of sockets' buffers, in bytes.
type buffers struct {
	send  int
	lowat int // a reader is woken once for so many, not for every packet
}

// buffersFor shares the memory that flows may fill among them.
func buffersFor(flows int) buffers {
	const (
		sendMost, sendLeast, sendAll    = 4 << 20, 256 << 10, 256 << 20
		lowatMost, lowatLeast, lowatAll = 256 << 10, 16 << 10, 16 << 20
	)
	flows = max(flows, 1)
	return buffers{
		send:  min(max(sendAll/flows, sendLeast), sendMost),
		lowat: min(max(lowatAll/flows, lowatLeast), lowatMost),
	}
}

// allowFiles lets the process have an open file for each socket.
func allowFiles(sockets int) error {
	const others = 4096 // namespaces, programs, maps
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	want := uint64(sockets + others)
	if l.Cur >= want {
		return nil
	}
	l.Cur, l.Max = want, max(l.Max, want)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("raise the limit of open files to %d, for as many flows: %w", want, err)
	}
	return nil
}

// newTraffic connects the flows; nothing is sent yet.
func newTraffic(ctx context.Context, f *fabric) (*traffic, error) {
	flows := f.plan.exp.Flows
	t := &traffic{
		f: f, taken: make(map[takenPorts]uint16), buffers: buffersFor(len(flows)), data: make([]byte, chunk),
		errs: make(chan error, 2*len(flows)+1),
	}
	if err := allowFiles(2*len(flows) + int(f.plan.flows())); err != nil {
		return nil, err
	}
	for i, flow := range flows {
		s := &stream{Flow: flow, id: uint32(i)}
		t.streams = append(t.streams, s) // before it is whole: close takes what there is
		if err := t.connect(ctx, s); err != nil {
			return nil, errors.Join(fmt.Errorf("flow %s: %w", flow.Name, err), t.close())
		}
	}
	for _, prepare := range []func() error{t.openWindows, func() error { return t.prime(ctx) }, t.begin} {
		if err := prepare(); err != nil {
			return nil, errors.Join(err, t.close())
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
	src, err := t.freeAddr(from, flowSrcPorts)
	if err != nil {
		return err
	}
	dst, err := t.freeAddr(to, flowDstPorts)
	if err != nil {
		return err
	}
	s.key = loader.FlowKey{Src: src, Dst: dst, Protocol: unix.IPPROTO_TCP}
	var ln net.Listener
	if err := ns.Do(t.f.nodes[to].ns, func() (err error) {
		lc := net.ListenConfig{Control: t.listenerOptions, KeepAlive: -1}
		ln, err = lc.Listen(ctx, "tcp4", dst.String())
		return err
	}); err != nil {
		return fmt.Errorf("listen on %s: %w", dst, err)
	}
	defer ln.Close()
	if err := ns.Do(t.f.nodes[from].ns, func() error {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(src), Control: t.dialerOptions(s.Priority), KeepAlive: -1}
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
	if s.raw, err = s.send.SyscallConn(); err != nil {
		return fmt.Errorf("get sender's socket: %w", err)
	}
	return nil
}

// prime sends the packets of each flow that TCP does not pace, if the flow is to start below the rate of its link: a byte
// each, and by another control, so that its own knows nothing of them.
func (t *traffic) prime(ctx context.Context) error {
	var slow []*stream
	for _, s := range t.streams {
		if t.paced() && s.InitialRate < t.f.plan.exp.Topology.Rate {
			slow = append(slow, s)
		}
	}
	for range unpaced { // one by one: TCP puts bytes together that it can't send at once
		for _, s := range slow {
			if err := s.primeOnce(); err != nil {
				return fmt.Errorf("flow %s: send a packet before it starts: %w", s.Name, err)
			}
		}
		for _, s := range slow {
			if err := s.waitAcked(ctx); err != nil {
				return fmt.Errorf("flow %s: wait for what it sent before it starts: %w", s.Name, err)
			}
		}
	}
	return nil
}

// paced says whether flows go by rates.
func (t *traffic) paced() bool { return t.f.scheme == schemePFC || t.f.control.HasRate() }

func (s *stream) primeOnce() error {
	if s.primed == 0 {
		if err := setControl(s.raw, "reno"); err != nil {
			return err
		}
	}
	if _, err := s.send.Write([]byte{0}); err != nil {
		return err
	}
	s.primed++
	return nil
}

// waitAcked waits until all that was sent has been acknowledged.
func (s *stream) waitAcked(ctx context.Context) error {
	for {
		info, err := s.tcpInfo()
		if err != nil || info.Unacked == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// begin makes flows as new, whatever was sent before, has them counted, and puts them where they start.
func (t *traffic) begin() error {
	for _, s := range t.streams {
		if err := t.beginFlow(s); err != nil {
			return fmt.Errorf("flow %s: %w", s.Name, err)
		}
	}
	return nil
}

func (t *traffic) beginFlow(s *stream) error {
	if s.primed > 0 {
		if err := setControl(s.raw, t.f.control.Name()); err != nil {
			return err
		}
	}
	if t.f.np != nil {
		if err := t.f.np.Forget(s.key); err != nil {
			return err
		}
	}
	if err := t.f.arrive.Track(s.key, s.id); err != nil {
		return err
	}
	return t.setRates(s)
}

// openWindows tells senders the whole receive window: a SYN-ACK has no room for more than 64 KB, the segment after it has.
func (t *traffic) openWindows() error {
	var b [1]byte
	for _, s := range t.streams {
		if _, err := s.receive.Write(b[:]); err != nil {
			return fmt.Errorf("flow %s: open the window: %w", s.Name, err)
		}
	}
	for _, s := range t.streams {
		if _, err := io.ReadFull(s.send, b[:]); err != nil {
			return fmt.Errorf("flow %s: hear of the window: %w", s.Name, err)
		}
	}
	return nil
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
	return errors.Join(setControl(c, t.f.control.Name()), setOptions(c,
		option{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer},
		option{unix.SOL_SOCKET, unix.SO_RCVLOWAT, t.buffers.lowat},
		option{unix.IPPROTO_IP, unix.IP_TOS, ControlDSCP << 2}))
}

// dialerOptions are those of a sender of a priority.
func (t *traffic) dialerOptions(priority int) func(_, _ string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return errors.Join(setControl(c, t.f.control.Name()), setOptions(c,
			option{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, t.buffers.send},
			option{unix.IPPROTO_IP, unix.IP_TOS, dataDSCP(priority) << 2}))
	}
}

// setControl chooses a socket's congestion control by name.
func setControl(c syscall.RawConn, name string) error {
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
				name: fmt.Sprintf("%s-%s-%d", b.Name, from, k), group: b.Name, from: from, to: b.To,
				id:     uint32(len(t.streams) + len(t.shots)),
				frames: p.burstFrames(b), bytes: uint64(b.Size), priority: b.Priority, gapNs: t.f.plan.gapNs(b),
			}
			src, err := t.freeAddr(i, burstSrcPorts)
			if err != nil {
				return fmt.Errorf("flow %s: %w", s.name, err)
			}
			s.key = loader.FlowKey{Src: src, Dst: netip.AddrPortFrom(p.nodes[to].addr, sinkPort), Protocol: unix.IPPROTO_UDP}
			s.startNs = uint64(starts[k/b.Flows])
			t.shots = append(t.shots, s)
			if err := t.openShot(s, t.f.nodes[i]); err != nil {
				return fmt.Errorf("flow %s: %w", s.name, err)
			}
		}
	}
	return nil
}

// freeAddr is a host's address with the next port of the range.
func (t *traffic) freeAddr(host int, r portRange) (netip.AddrPort, error) {
	n := &t.f.plan.nodes[host]
	at := takenPorts{host, r}
	if t.taken[at] > r.last-r.first {
		return netip.AddrPort{}, fmt.Errorf("host %s has ports for %d flows only: spread them over more hosts", n.name, t.taken[at])
	}
	port := r.first + t.taken[at]
	t.taken[at]++
	return netip.AddrPortFrom(n.addr, port), nil
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
			option{unix.IPPROTO_IP, unix.IP_TOS, dataDSCP(s.priority)<<2 | s.ecn()}); err != nil {
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
			if err := t.sendFrame(s, round, t0Ns+s.startNs+uint64(round)*s.gapNs, payload); err != nil {
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

// start sends the flows off: each at its time after t = 0, and a little later by the seed unless it is exact.
func (t *traffic) start(ctx context.Context, t0Ns uint64) {
	rng := t.f.plan.rng()
	for _, s := range t.streams {
		s.startNs = uint64(int64(t0Ns) + int64(s.Start))
		if !s.Exact {
			s.startNs += rng.Uint64N(startJitter)
		}
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

// pump writes the flow's data: Size bytes, or without end. A flow that has ended stays open: a bare FIN is of the control
// class, and could overtake data that waits for it.
func (t *traffic) pump(ctx context.Context, s *stream) error {
	if err := t.f.clock.sleepUntil(ctx, s.startNs); err != nil {
		return err
	}
	left := uint64(s.Size)
	for first := true; s.Size == 0 || left > 0; first = false {
		n := uint64(len(t.data))
		if first && s.primed > 0 {
			n = 1 // TCP halves the gap behind the first packet after a pause, to catch up: that of a byte, then
		}
		if s.Size != 0 && left <= n {
			n = left
			if err := s.stampCompletion(); err != nil {
				return err
			}
		}
		sent, err := s.send.Write(t.data[:n])
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
	return nil
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
