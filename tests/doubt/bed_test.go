// SPDX-License-Identifier: Apache-2.0

package doubt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/config/scheme/compile"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

const (
	bottleneckMbit = 200
	lineRateBps    = 1e9
	periodT        = time.Millisecond
)

// bed is a sender and a receiver with a router between them, whose port to the receiver is the
// bottleneck: 200 Mbit/s.
type bed struct {
	sender, router, receiver netns.NsHandle
	port                     int // index of the router's device to the receiver
	senderDev, receiverDev   int
	senderAddr, receiverAddr string
}

// bufferBytes is the tail drop buffer of the bottleneck.
func newBed(t *testing.T, bufferBytes int) *bed {
	t.Helper()
	b := &bed{
		sender: nstest.New(t), router: nstest.New(t), receiver: nstest.New(t),
		senderAddr: "10.9.1.2", receiverAddr: "10.9.2.2",
	}
	b.senderDev = b.link(t, b.sender, "10.9.1.2/24", "10.9.1.1/24", "left")
	b.receiverDev = b.link(t, b.receiver, "10.9.2.2/24", "10.9.2.1/24", "right")
	run(t, b.sender, "ip route add default via 10.9.1.1")
	run(t, b.receiver, "ip route add default via 10.9.2.1")
	nstest.Sysctl(t, b.router, "ip_forward", "1")
	for _, line := range []string{
		"tc qdisc add dev right root handle 1: htb default 1",
		fmt.Sprintf("tc class add dev right parent 1: classid 1:1 htb rate %dmbit burst 15k "+
			"cburst 15k", bottleneckMbit),
		fmt.Sprintf("tc qdisc add dev right parent 1:1 handle 2: bfifo limit %d", bufferBytes),
	} {
		run(t, b.router, line)
	}
	l, err := nstest.Netlink(t, b.router).LinkByName("right")
	qt.Assert(t, qt.IsNil(err))
	b.port = l.Attrs().Index
	return b
}

// link connects a host to the router, and returns the index of the host's device.
func (b *bed) link(t *testing.T, host netns.NsHandle, own, routers, name string) int {
	t.Helper()
	nl, router := nstest.Netlink(t, host), nstest.Netlink(t, b.router)
	qt.Assert(t, qt.IsNil(router.LinkAdd(&netlink.Veth{
		LinkAttrs:     netlink.LinkAttrs{Name: name},
		PeerName:      "veth0",
		PeerNamespace: netlink.NsFd(host),
	})))
	up := func(nl *netlink.Handle, h netns.NsHandle, name, address string) netlink.Link {
		l, err := nl.LinkByName(name)
		qt.Assert(t, qt.IsNil(err))
		run(t, h, "ip addr add "+address+" dev "+name)
		qt.Assert(t, qt.IsNil(nl.LinkSetUp(l)))
		// one skb is one packet
		run(t, h, "ip link set "+name+" gso_max_segs 1 gso_max_size 1514 gro_max_size 1514")
		return l
	}
	routersLink := up(router, b.router, name, routers)
	t.Cleanup(func() { router.LinkDel(routersLink) })
	return up(nl, host, "veth0", own).Attrs().Index
}

// run runs a command in the namespace.
func run(t testing.TB, h netns.NsHandle, line string) {
	t.Helper()
	nstest.Do(t, h, func() error {
		words := strings.Fields(line)
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
		return nil
	})
}

// mark makes the bottleneck mark packets behind a short queue.
func (b *bed) mark(t *testing.T) {
	t.Helper()
	w, err := tc.LoadWRED(tc.WREDOptions{KMinBytes: 30_000, KMaxBytes: 30_000, PMax: 1})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { w.Close() })
	qt.Assert(t, qt.IsNil(w.Attach(b.router, b.port)))
}

// registered registers a control as a host does.
func registered(
	t *testing.T, name string, maxFlows uint32, keysAndValues ...string,
) *loader.Control {
	t.Helper()
	s, ok := scheme.Builtin().ByControl(name)
	if name == ownWindow {
		s, ok = compiledWindow(t), true
	}
	qt.Assert(t, qt.IsTrue(ok))
	return registeredScheme(t, s, maxFlows, keysAndValues...)
}

// ownWindow is a control with a window as pcn scheme new writes it for users.
const ownWindow = "ownwindow"

func compiledWindow(t *testing.T) scheme.Scheme {
	t.Helper()
	template, err := bpf.Templates.ReadFile("templates/window.c")
	qt.Assert(t, qt.IsNil(err))
	path := filepath.Join(t.TempDir(), ownWindow+".c")
	text := strings.ReplaceAll(string(template), "NAME", ownWindow)
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(text), 0o600)))
	own, err := compile.Scheme(t.Context(), path, compile.Sources{Kernel: npecn.Source()})
	qt.Assert(t, qt.IsNil(err))
	_, s, err := scheme.Builtin().With(own)
	qt.Assert(t, qt.IsNil(err))
	return s
}

func registeredScheme(
	t *testing.T, s scheme.Scheme, maxFlows uint32, keysAndValues ...string,
) *loader.Control {
	t.Helper()
	nstest.RequireRoot(t)
	nstest.Turn(t)
	given := map[string]scheme.Value{}
	if s.Object.Param("T") != nil {
		given["T"] = scheme.Value{Kind: scheme.KindTime, Number: float64(periodT)}
	}
	for i := 0; i < len(keysAndValues); i += 2 {
		v, err := s.Object.Param(keysAndValues[i]).Parse(keysAndValues[i+1])
		qt.Assert(t, qt.IsNil(err))
		given[keysAndValues[i]] = v
	}
	control, err := loader.Register(loader.Registration{
		Scheme: s, Settings: scheme.Settings{Given: given}, MaxFlows: maxFlows, NetnsKeys: true,
		Network: scheme.Network{
			LineRateBps: lineRateBps, BaseRTTNs: uint64(periodT), FrameBytes: 1514, Host: true,
		},
	})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(control.Close())) })
	return control
}

// points adds the notification point to the receiver and the reaction point to the sender.
func (b *bed) points(t *testing.T, control *loader.Control) {
	t.Helper()
	np, err := tc.LoadHostNP(tc.HostNPOptions{
		TNs: uint64(periodT), CongestedShare: 0.95, NetnsKeys: true,
	})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { np.Close() })
	qt.Assert(t, qt.IsNil(np.Attach(b.receiver, b.receiverDev)))
	rp, err := tc.LoadHostRP(control, tc.HostRPOptions{})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { rp.Close() })
	qt.Assert(t, qt.IsNil(rp.Allow(b.senderDev)))
	qt.Assert(t, qt.IsNil(rp.Attach(b.sender, b.senderDev)))
}

// behindNAT has the router replace the sender's address. CNPs go to the router, which is nobody's
// flow: they are packets of a connection that it does not know.
func (b *bed) behindNAT(t *testing.T, control *loader.Control) {
	b.points(t, control)
	for _, line := range []string{
		"nft add table ip nat",
		"nft add chain ip nat post { type nat hook postrouting priority 100 ; }",
		"nft add rule ip nat post oifname right masquerade",
	} {
		run(t, b.router, line)
	}
}

// overlay has the flows in a VXLAN, and NP and RP at the interfaces below it: they see UDP.
func (b *bed) overlay(t *testing.T, control *loader.Control) {
	b.points(t, control)
	b.tunnel(t)
}

// tunnel has the flows in a VXLAN.
func (b *bed) tunnel(t *testing.T) {
	tunnel := func(h netns.NsHandle, own, peer, address string) int {
		run(t, h, "ip link add vx0 type vxlan id 42 dev veth0 local "+own+" remote "+peer+
			" dstport 4789")
		run(t, h, "ip addr add "+address+"/24 dev vx0")
		run(t, h, "ip link set vx0 up")
		run(t, h, "ip link set vx0 gso_max_segs 1")
		l, err := nstest.Netlink(t, h).LinkByName("vx0")
		qt.Assert(t, qt.IsNil(err))
		return l.Attrs().Index
	}
	b.senderDev = tunnel(b.sender, b.senderAddr, b.receiverAddr, "10.10.0.1")
	b.receiverDev = tunnel(b.receiver, b.receiverAddr, b.senderAddr, "10.10.0.2")
	b.senderAddr, b.receiverAddr = "10.10.0.1", "10.10.0.2"
}

// programInFront has a program of somebody else before NP, that lets packets pass, as Cilium's do:
// then no program behind it runs.
func (b *bed) programInFront(t *testing.T, control *loader.Control) {
	b.points(t, control)
	const pass = 0 // TCX_PASS
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, pass), asm.Return()}})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { program.Close() })
	nstest.Do(t, b.receiver, func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: b.receiverDev, Program: program,
			Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
}

// noECN makes the receiver's host refuse ECN.
func (b *bed) noECN(t *testing.T) {
	nstest.Sysctl(t, b.receiver, "tcp_ecn", "0")
}

// flow is a connection over the bed that sends all the time.
type flow struct {
	client, server *net.TCPConn
}

func chooses(name string) func(_, _ string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		return errors.Join(socket.SetControl(c, name), socket.Do(c, func(fd int) error {
			// a port that a socket still has whose connection was reset
			return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}))
	}
}

// connect opens a connection from the sender to the receiver. Ports may be 0.
func (b *bed) connect(t *testing.T, control, peerControl string, clientPort, serverPort int) *flow {
	t.Helper()
	var l net.Listener
	nstest.Do(t, b.receiver, func() (err error) {
		listen := net.ListenConfig{Control: chooses(peerControl)}
		listen.SetMultipathTCP(false)
		at := fmt.Sprintf("%s:%d", b.receiverAddr, serverPort)
		l, err = listen.Listen(t.Context(), "tcp4", at)
		return err
	})
	defer l.Close()
	f := &flow{}
	nstest.Do(t, b.sender, func() error {
		d := net.Dialer{
			Control: chooses(control), Timeout: nstest.Patience,
			LocalAddr: &net.TCPAddr{IP: net.ParseIP(b.senderAddr), Port: clientPort},
		}
		c, err := d.DialContext(t.Context(), "tcp4", l.Addr().String())
		if err != nil {
			return err
		}
		f.client = c.(*net.TCPConn)
		return nil
	})
	t.Cleanup(func() { f.client.Close() })
	c, err := l.Accept()
	qt.Assert(t, qt.IsNil(err))
	f.server = c.(*net.TCPConn)
	t.Cleanup(func() { f.server.Close() })
	return f
}

// transfer sends for this long, and returns what arrived.
func (f *flow) transfer(ctx context.Context, d time.Duration) (bytes int64) {
	end := time.Now().Add(d)
	f.client.SetWriteDeadline(end)
	f.server.SetReadDeadline(end)
	go f.send(ctx)
	bytes, _ = io.Copy(io.Discard, f.server)
	return bytes
}

// send sends until the connection fails or is closed.
func (f *flow) send(ctx context.Context) {
	buf := make([]byte, 1<<16)
	for ctx.Err() == nil {
		if _, err := f.client.Write(buf); err != nil {
			return
		}
	}
}

// sending sends until the test ends.
func (f *flow) sending(t *testing.T) {
	go f.send(t.Context())
	go io.Copy(io.Discard, f.server)
}

// heardOf sends a byte, with which the control hears of the flow if the kernel left out init
// (KNOWN_ISSUES.md).
func (f *flow) heardOf(t *testing.T, control *loader.Control) {
	t.Helper()
	f.exchange(t)
	nstest.Eventually(t, "the control hears of the flow", func() bool {
		_, err := control.Flow(f.key(t))
		return err == nil
	})
}

// exchange sends a byte, and receives it.
func (f *flow) exchange(t *testing.T) {
	t.Helper()
	_, err := f.client.Write([]byte{0})
	qt.Assert(t, qt.IsNil(err))
	_, err = io.ReadFull(f.server, make([]byte, 1))
	qt.Assert(t, qt.IsNil(err))
}

// key is the flow's in the sender's namespace.
func (f *flow) key(t *testing.T) loader.FlowKey {
	addr := func(a net.Addr) netip.AddrPort {
		p := a.(*net.TCPAddr).AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	var cookie uint64
	raw, err := f.client.SyscallConn()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(raw.Control(func(fd uintptr) {
		size := uint32(8)
		const soNetnsCookie = 71
		unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, soNetnsCookie,
			uintptr(unsafe.Pointer(&cookie)), uintptr(unsafe.Pointer(&size)), 0)
	})))
	return loader.FlowKey{
		Src: addr(f.client.LocalAddr()), Dst: addr(f.client.RemoteAddr()),
		Protocol: unix.IPPROTO_TCP, Netns: cookie,
	}
}

func (f *flow) info(t *testing.T) *unix.TCPInfo {
	t.Helper()
	info, err := socket.Info(f.client)
	qt.Assert(t, qt.IsNil(err))
	return info
}

// measured is one transfer.
type measured struct {
	mbps        float64
	retransmits uint32
}

func (m measured) String() string {
	return fmt.Sprintf("%.1f Mbit/s, %d retransmissions", m.mbps, m.retransmits)
}

// measure transfers with a control.
func (b *bed) measure(t *testing.T, control, peerControl string, d time.Duration) measured {
	t.Helper()
	f := b.connect(t, control, peerControl, 0, 0)
	return f.measure(t, d)
}

func (f *flow) measure(t *testing.T, d time.Duration) measured {
	t.Helper()
	began := f.info(t).Total_retrans
	n := f.transfer(t.Context(), d)
	m := measured{float64(n) * 8 / d.Seconds() / 1e6, f.info(t).Total_retrans - began}
	return m
}

func median[T any](values []T, less func(a, b T) int) T {
	sorted := slices.SortedFunc(slices.Values(values), less)
	return sorted[len(sorted)/2]
}
