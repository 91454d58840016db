// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/socket"
)

// Port is where [Listen] listens by default.
const Port = 9819

// greeting is what Listen says first on TCP. Version 1 then reads until the end. On UDP it
// answers each probe.
const greeting = "pcn doctor 1\n"

// probe is a datagram: the ECN field that the answer shall have, that which the probe arrived with,
// and a number.
type probe struct {
	answerWith, arrivedWith uint8
	number                  uint16
	isAnswer                bool
}

const probeMagic = "pcnp"

// answerFlag is in the first byte of answers, which nobody answers: else a probe with a forged
// source would go back and forth between two listeners for ever. Earlier versions did not send it.
const answerFlag = 0x80

func (p probe) marshal() []byte {
	b := append([]byte(probeMagic), p.answerWith, p.arrivedWith)
	if p.isAnswer {
		b[len(probeMagic)] |= answerFlag
	}
	return binary.BigEndian.AppendUint16(b, p.number)
}

func unmarshalProbe(b []byte) (p probe, ok bool) {
	if len(b) != len(probeMagic)+4 || string(b[:len(probeMagic)]) != probeMagic {
		return p, false
	}
	b = b[len(probeMagic):]
	return probe{b[0] & ecnMask, b[1] & ecnMask, binary.BigEndian.Uint16(b[2:]),
		b[0]&answerFlag != 0}, true
}

// The ECN field of IP (RFC 3168).
const (
	notECT  = 0
	ect1    = 1
	ect0    = 2
	ce      = 3
	ecnMask = 3
)

// tcpiOptECN is TCPI_OPT_ECN of linux/tcp.h.
const tcpiOptECN = 8

var ecnNames = [4]string{"Not-ECT", "ECT(1)", "ECT(0)", "CE"}

// Listen answers the probes of other hosts' [Host.ProbePeer] until the context ends, on
// TCP and UDP of an address such as :9819.
func Listen(ctx context.Context, address string, ready func(net.Addr)) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for doctors: %w", err)
	}
	defer l.Close()
	udp, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		return fmt.Errorf("listen for doctors: %w", err)
	}
	defer udp.Close()
	stop := context.AfterFunc(ctx, func() {
		l.Close()
		udp.Close()
	})
	defer stop()
	if err := receiveECN(udp.(*net.UDPConn)); err != nil {
		return fmt.Errorf("listen for doctors: %w", err)
	}
	ready(l.Addr())
	go answerProbes(udp.(*net.UDPConn))
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listen for doctors: %w", err)
		}
		go swallow(c)
	}
}

// swallow greets and reads until the end, or for a minute.
func swallow(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // a closed connection ends below
	if _, err := c.Write([]byte(greeting)); err != nil {
		return
	}
	for b := make([]byte, 1<<16); ; {
		if _, err := c.Read(b); err != nil {
			return
		}
	}
}

// answerProbes answers until the socket is closed.
func answerProbes(udp *net.UDPConn) {
	for {
		b, ecn, from, err := readECN(udp)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		p, ok := unmarshalProbe(b)
		if err != nil || !ok || p.isAnswer {
			continue
		}
		p.arrivedWith, p.isAnswer = ecn, true
		if setECN(udp, p.answerWith) == nil {
			_, _ = udp.WriteToUDPAddrPort(p.marshal(), from) // the peer asks again
		}
	}
}

// receiveECN makes a socket tell the ECN field of what it receives, of IPv4 and of IPv6 if it takes
// both.
func receiveECN(udp *net.UDPConn) error {
	return setEither(udp, unix.IP_RECVTOS, unix.IPV6_RECVTCLASS, 1)
}

// setECN sets the ECN field of what a socket sends.
func setECN(udp *net.UDPConn, ecn uint8) error {
	return setEither(udp, unix.IP_TOS, unix.IPV6_TCLASS, int(ecn))
}

// setEither sets an option of IPv4 and that of IPv6. It fails if the socket takes neither.
func setEither(udp *net.UDPConn, v4, v6, value int) error {
	raw, err := udp.SyscallConn()
	if err != nil {
		return err
	}
	var err4, err6 error
	if err := raw.Control(func(fd uintptr) {
		err4 = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, v4, value)
		err6 = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, v6, value)
	}); err != nil {
		return err
	}
	if err4 != nil && err6 != nil {
		return errors.Join(err4, err6)
	}
	return nil
}

// readECN reads a datagram and its ECN field.
func readECN(udp *net.UDPConn) (b []byte, ecn uint8, from netip.AddrPort, err error) {
	b, oob := make([]byte, 64), make([]byte, 128)
	n, oobn, _, from, err := udp.ReadMsgUDPAddrPort(b, oob)
	if err != nil {
		return nil, 0, from, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, 0, from, err
	}
	for _, m := range messages {
		isV4 := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_TOS
		isV6 := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_TCLASS
		if (isV4 || isV6) && len(m.Data) > 0 {
			if isV6 && len(m.Data) >= 4 {
				return b[:n], uint8(binary.NativeEndian.Uint32(m.Data)) & ecnMask, from, nil
			}
			return b[:n], m.Data[0] & ecnMask, from, nil
		}
	}
	return b[:n], 0, from, nil
}

// PeerOptions says how to probe the path to another host.
type PeerOptions struct {
	// Address is HOST:PORT of any TCP service there. That of [Listen] shows more.
	Address string
	// Load is how long to send as fast as the path allows, to see whether it marks; 0 does not. It
	// needs Listen.
	Load time.Duration
}

// ProbePeer checks the path to another host: whether ECN gets there and back, and whether the host
// there answers marks with CNPs. It connects to a TCP service, and sends it some hundred bytes in
// packets that carry CE, as if a switch had marked them.
func ProbePeer(ctx context.Context, h *host.Host, o PeerOptions) []Check {
	var found checks
	control := controlWithECN(h)
	c, err := dialWith(ctx, o.Address, control)
	if err != nil {
		found.bad(Fail, "peer", err.Error(), "a TCP service at "+o.Address,
			"start pcn host doctor --listen there, or name a port that is open")
		return found.all
	}
	defer c.Close()
	isDoctor := greets(c)
	info, err := socket.Info(c)
	if err != nil {
		found.bad(Fail, "peer", err.Error(), "a connection that stays", "try another port")
		return found.all
	}
	found.ok("peer", "%s answers after %v", o.Address, time.Duration(info.Rtt)*time.Microsecond)
	if isDoctor {
		checkCodepoints(&found, o.Address)
	} else {
		found.bad(Warn, "path keeps ECN", "not looked at: "+o.Address+" is not a doctor's",
			"pcn host doctor --listen at the peer", fmt.Sprintf(
				"start it there, then: pcn host doctor --peer HOST:%d", Port))
	}
	switch {
	case control == "":
		found.bad(Warn, "peer's ECN", "not looked at: no control that needs ECN runs here",
			"a control such as pcn", "pcn host up --control pcn --on IFACE --rtt 50us")
	case info.Options&tcpiOptECN == 0:
		found.bad(Fail, "peer's ECN", "the peer, or something on the way, refused ECN",
			"ECN in the handshake", "net.ipv4.tcp_ecn must not be 0 there; and here syn must run "+
				"at the interface (pcn host status), or the peer's server needs a control with ECN")
	default:
		found.ok("peer's ECN", "negotiated with %s", control)
		checkMarks(ctx, h, &found, c, control)
	}
	if o.Load > 0 {
		checkLoad(ctx, &found, o, control, isDoctor)
	}
	return found.all
}

// controlWithECN returns a control of this host that asks for ECN, pcn first; empty if none runs.
func controlWithECN(h *host.Host) string {
	names, err := h.Registered()
	if err != nil {
		return ""
	}
	if slices.Contains(names, "pcn") {
		return "pcn"
	}
	if i := slices.IndexFunc(names, host.NeedsECN); i >= 0 {
		return names[i]
	}
	return ""
}

// dialWith connects with a congestion control, chosen before the handshake; empty: the default.
func dialWith(ctx context.Context, address, control string) (*net.TCPConn, error) {
	dialer := net.Dialer{
		Timeout: 3 * time.Second, FallbackDelay: -1, Control: socket.Choose(control),
	}
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}

// greets reports whether the service is that of Listen. Others may wait for us to speak.
func greets(c *net.TCPConn) bool {
	const patience = 500 * time.Millisecond
	_ = c.SetReadDeadline(time.Now().Add(patience))
	defer c.SetReadDeadline(time.Time{})
	line, err := bufio.NewReaderSize(c, len(greeting)).ReadString('\n')
	return err == nil && line == greeting
}

// checkCodepoints sends each value of the ECN field there and back.
func checkCodepoints(found *checks, address string) {
	const name = "path keeps ECN"
	const do = "look for a router, tunnel or firewall that rewrites the TOS byte"
	c, err := net.Dial("udp", address)
	if err != nil {
		found.bad(Warn, name, err.Error(), "answers on UDP", "open the port for UDP too")
		return
	}
	defer c.Close()
	udp := c.(*net.UDPConn)
	if err := receiveECN(udp); err != nil {
		found.bad(Warn, name, err.Error(), "answers on UDP", "")
		return
	}
	var wrong []string
	for _, ecn := range []uint8{notECT, ect0, ect1, ce} {
		there, back, err := exchange(udp, ecn)
		if err != nil {
			found.bad(Warn, name, "no answer on UDP: "+err.Error(), "answers",
				"open the port of "+address+" for UDP too")
			return
		}
		for way, got := range map[string]uint8{"there": there, "back": back} {
			isMarked := got == ce && ecn != notECT // a queue was there
			if got != ecn && !isMarked {
				wrong = append(wrong, fmt.Sprintf("%s is %s on the way %s", ecnNames[ecn],
					ecnNames[got], way))
			}
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		found.bad(Fail, name, strings.Join(wrong, ", "), "each value as it was sent", do)
		return
	}
	found.ok(name, "%s both ways", strings.Join(ecnNames[:], ", "))
}

// exchange sends a probe with an ECN field until it is answered, and returns what arrived there and
// here.
func exchange(udp *net.UDPConn, ecn uint8) (there, back uint8, err error) {
	const tries, patience = 4, 300 * time.Millisecond
	if err := setECN(udp, ecn); err != nil {
		return 0, 0, err
	}
	for try := range tries {
		number := uint16(ecn)<<8 | uint16(try)
		if _, err = udp.Write(probe{answerWith: ecn, number: number}.marshal()); err != nil {
			continue
		}
		_ = udp.SetReadDeadline(time.Now().Add(patience))
		for {
			var b []byte
			if b, back, _, err = readECN(udp); err != nil {
				break
			}
			if p, ok := unmarshalProbe(b); ok && p.number>>8 == uint16(ecn) {
				return p.arrivedWith, back, nil
			}
		}
	}
	return 0, 0, err
}

// checkMarks sends marked packets, as if a switch had marked them, and looks for their echo and for
// CNPs.
func checkMarks(ctx context.Context, h *host.Host, found *checks, c *net.TCPConn, control string) {
	const name = "marks come back"
	mark, err := markOwn(c)
	if err != nil {
		found.bad(Warn, name, err.Error(), "a program that marks the probe's packets",
			"pcn host doctor as root")
		return
	}
	defer mark.Close()
	refusedBefore := refused(h)
	var info *unix.TCPInfo
	var flow host.LiveFlow
	sent := 0
	const patience, pause = 2 * time.Second, 5 * time.Millisecond
	for until := time.Now().Add(patience); time.Now().Before(until) && ctx.Err() == nil; {
		if _, err = c.Write([]byte{0}); err != nil {
			break
		}
		sent++
		time.Sleep(pause)
		if info, err = socket.Info(c); err != nil {
			break
		}
		flow, _ = flowOf(h, c)
		if info.Delivered_ce > 0 && (control != "pcn" || flow.CNPDecrease > 0) {
			break
		}
	}
	switch {
	case info != nil && info.Delivered_ce > 0:
		found.ok(name, "%d of %d marked packets were echoed", info.Delivered_ce, sent)
	case err != nil:
		found.bad(Warn, name, fmt.Sprintf("the service closed the connection: %v", err),
			"a service that waits", "pcn host doctor --listen at the peer")
		return
	default:
		found.bad(Fail, name, fmt.Sprintf("none of %d marked packets was echoed", sent),
			"an echo of CE (ECE, or AccECN)", "look for a device that clears CE on the way")
	}
	if control != "pcn" {
		return
	}
	if flow.CNPDecrease > 0 {
		found.ok("CNPs", "the peer answered %d marked packets with %d CNPs", sent, flow.CNPDecrease)
		return
	}
	is := "none came"
	for reason, n := range refused(h) {
		if more := n - refusedBefore[reason]; more > 0 {
			is += fmt.Sprintf("; RP refused %d: %s", more, reason)
		}
	}
	found.bad(Warn, "CNPs", is, "a CNP for the marked packets", "pcn host up with np at the peer; "+
		"rp here, with prefixes that it is in; UDP port 4791 open; else feedback: auto here")
}

// markOwn marks all ECN-capable packets of a socket where they leave, until it is closed.
func markOwn(c *net.TCPConn) (link.Link, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cookie uint64
	var get error
	err = raw.Control(func(fd uintptr) {
		cookie, get = unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE)
	})
	if err := errors.Join(err, get); err != nil {
		return nil, err
	}
	remote := c.RemoteAddr().(*net.TCPAddr)
	routes, err := netlink.RouteGet(remote.IP)
	if err != nil || len(routes) == 0 {
		return nil, fmt.Errorf("find the interface to %s: %w", remote.IP, err)
	}
	const next = -1 // TCX_NEXT
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "doctor_mark", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.FnGetSocketCookie.Call(),
			asm.LoadImm(asm.R1, int64(cookie), asm.DWord),
			asm.JNE.Reg(asm.R0, asm.R1, "next"),
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.FnSkbEcnSetCe.Call(),
			asm.Mov.Imm(asm.R0, next).WithSymbol("next"),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("load the program that marks: %w", err)
	}
	defer p.Close()
	l, err := link.AttachTCX(link.TCXOptions{
		Interface: routes[0].LinkIndex, Program: p, Attach: ebpf.AttachTCXEgress,
		Anchor: link.Tail(),
	})
	if err != nil {
		return nil, fmt.Errorf("attach the program that marks: %w", err)
	}
	return l, nil
}

// flowOf returns the state of one of this process's own connections.
func flowOf(h *host.Host, c *net.TCPConn) (host.LiveFlow, bool) {
	flows, err := h.Flows()
	if err != nil {
		return host.LiveFlow{}, false
	}
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	remote := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	plain := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
	}
	same := func(a, b netip.AddrPort) bool { return plain(a) == plain(b) }
	for _, f := range flows {
		if same(f.Src, local) && same(f.Dst, remote) {
			return f, true
		}
	}
	return host.LiveFlow{}, false
}

// refused returns what the reaction point counts beside the CNPs that it obeys.
func refused(h *host.Host) map[string]uint64 {
	s, err := h.Status(context.Background(), nil)
	if err != nil {
		return nil
	}
	counts := map[string]uint64{}
	for _, one := range s.Components {
		if one.Name == host.RPName {
			maps.Copy(counts, one.Counts)
		}
	}
	maps.DeleteFunc(counts, func(name string, _ uint64) bool {
		return strings.HasPrefix(name, "cnp_")
	})
	return counts
}

// checkLoad fills the path, and looks for marks.
func checkLoad(
	ctx context.Context, found *checks, o PeerOptions, control string, isDoctor bool,
) {
	const name = "path marks"
	if !isDoctor {
		found.bad(Warn, name, "not looked at: "+o.Address+" is not a doctor's",
			"pcn host doctor --listen at the peer", "start it there")
		return
	}
	const senders = 4
	type result struct {
		info *unix.TCPInfo
		err  error
	}
	results := make(chan result, senders)
	var open []*net.TCPConn
	for range senders {
		c, err := dialWith(ctx, o.Address, control)
		if err != nil {
			found.bad(Fail, name, err.Error(), "connections to "+o.Address, "try again")
			break
		}
		open = append(open, c)
		go func() { // the socket stays in its network namespace
			defer c.Close()
			_ = c.SetWriteDeadline(time.Now().Add(o.Load))
			for b := make([]byte, 1<<16); ctx.Err() == nil; {
				if _, err := c.Write(b); err != nil {
					break
				}
			}
			info, err := socket.Info(c)
			results <- result{info, err}
		}()
	}
	var marked, lost, bytes uint64
	for range open {
		if r := <-results; r.err == nil {
			marked += uint64(r.info.Delivered_ce)
			lost += uint64(r.info.Total_retrans)
			bytes += r.info.Bytes_acked
		}
	}
	is := fmt.Sprintf("%d connections, %.0f Mbit/s: %d packets marked, %d sent again", len(open),
		float64(bytes)*8/1e6/o.Load.Seconds(), marked, lost)
	switch {
	case marked > 0:
		found.ok(name, "%s", is)
	case lost > 0:
		found.bad(Fail, name, is, "marks before losses",
			"ECN, and its thresholds, at the switches on the way: see pcn docs host")
	default:
		found.bad(Warn, name, is+"; no queue was long enough to tell", "marks",
			"send from two hosts at a time, or longer")
	}
}
