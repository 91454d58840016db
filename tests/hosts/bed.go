// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns"
	"github.com/pcn-linux/pcn/tc"
)

// Offloads says what one skb is on the way from a sender to the receiver.
type Offloads string

// The three beds.
const (
	// Supers cross the router: veth's default. The router marks 64 KB at once.
	Supers Offloads = "supers"
	// Segments cross the router, as on a wire, and the receiver merges them (GRO).
	Segments Offloads = "segments"
	// None: one skb is one packet everywhere.
	None Offloads = "none"
)

// Options describe a bed.
type Options struct {
	Offloads Offloads
	IPv6     bool
	MTU      int    // 0: 1500
	RateBps  uint64 // of the router's port to the receiver; 0: it has no queue and marks nothing
	// The router marks ECN-capable packets that find a queue of more than KMin bytes, by chance up
	// to KMax (with probability PMax there), and all behind it. Mark marks at any queue.
	KMin, KMax   uint64
	PMax, Mark   float64
	LimitPackets uint32 // of the router's queue; 0: 1000
	Senders      int    // 0: 2
	// Nagle lets TCP wait for more to send before it sends less than a packet. That is its
	// default, which iperf3 leaves. Go's is not to wait.
	Nagle         bool
	ReceiveBuffer int // bytes that the receiver's TCP may take; 0: Linux decides
	// Drop is the queue from which on the router drops packets that are not ECN-capable; 0: never.
	Drop uint64
	// NoNP leaves the notification point out: the receiver sends no CNPs.
	NoNP bool
	// DefaultECN leaves net.ipv4.tcp_ecn at Linux's default, 2: the kernel's own controls then
	// have no ECN.
	DefaultECN bool
}

// Bed is a network of senders, a router and a receiver.
type Bed struct {
	o        Options
	t        testing.TB
	senders  []node
	router   netns.NsHandle
	receiver node
	wred     *tc.WRED

	retransmitted uint64  // packets that Fill's senders sent again
	inFlight      float64 // bytes of Fill's first connection, the mean
}

// node is a host: its namespace, its one device and its address.
type node struct {
	ns    netns.NsHandle
	link  netlink.Link
	addr  netip.Addr
	index int
}

const device = "veth0"

// New builds a bed that is there until the test ends.
func New(t testing.TB, o Options) *Bed {
	t.Helper()
	o.MTU = cmp.Or(o.MTU, 1500)
	o.Senders = cmp.Or(o.Senders, 2)
	o.LimitPackets = cmp.Or(o.LimitPackets, 1000)
	b := &Bed{o: o, t: t, router: nstest.New(t)}
	nstest.Do(t, b.router, func() error {
		return errors.Join(sysctl("net/ipv4/ip_forward", "1"),
			sysctl("net/ipv6/conf/all/forwarding", "1"))
	})
	for i := range o.Senders {
		b.senders = append(b.senders, b.connect(i+1, false))
	}
	b.receiver = b.connect(100, true)
	if o.RateBps != 0 {
		b.shape()
	}
	return b
}

func sysctl(name, value string) error {
	return os.WriteFile("/proc/sys/"+name, []byte(value), 0)
}

// addresses returns those of a host and of the router's port to it.
func (b *Bed) addresses(host int) (own, router netip.Prefix) {
	text := func(last int) string {
		if b.o.IPv6 {
			return fmt.Sprintf("fd00:%d::%d/64", host, last)
		}
		return fmt.Sprintf("10.0.%d.%d/24", host, last)
	}
	return netip.MustParsePrefix(text(1)), netip.MustParsePrefix(text(2))
}

// connect makes a host and its link to the router.
func (b *Bed) connect(number int, receives bool) node {
	t := b.t
	t.Helper()
	n := node{ns: nstest.New(t)}
	port := fmt.Sprintf("port%d", number)
	own, gateway := b.addresses(number)
	n.addr = own.Addr()
	router, host := nstest.Netlink(t, b.router), nstest.Netlink(t, n.ns)
	b.ok(router.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: port, MTU: b.o.MTU}, PeerName: device,
		PeerMTU: uint32(b.o.MTU), PeerNamespace: netlink.NsFd(n.ns),
	}))
	far, err := router.LinkByName(port)
	b.ok(err)
	t.Cleanup(func() { router.LinkDel(far) })
	n.link, err = host.LinkByName(device)
	b.ok(err)
	n.index = n.link.Attrs().Index
	lo, err := host.LinkByName("lo")
	b.ok(err)
	b.ok(errors.Join(host.LinkSetUp(lo), address(router, far, gateway),
		address(host, n.link, own)))
	if b.o.Offloads == None {
		b.ok(errors.Join(host.LinkSetGSOMaxSegs(n.link, 1), router.LinkSetGSOMaxSegs(far, 1)))
	}
	nstest.Do(t, n.ns, func() error {
		ecn := "1"
		if b.o.DefaultECN {
			ecn = "2"
		}
		err := errors.Join(sysctl("net/ipv4/tcp_ecn", ecn),
			setOffload(device, tso, b.o.Offloads == Supers),
			setOffload(device, gso, b.o.Offloads != None))
		if receives && b.o.Offloads == Segments {
			err = errors.Join(err, setOffload(device, gro, true))
		}
		return err
	})
	nstest.Do(t, b.router, func() error {
		return setOffload(port, tso, b.o.Offloads == Supers)
	})
	b.ok(errors.Join(router.LinkSetUp(far), host.LinkSetUp(n.link)))
	b.neighbours(router, far, host, n.link, own.Addr(), gateway.Addr())
	b.ok(host.RouteAdd(&netlink.Route{LinkIndex: n.index, Gw: gateway.Addr().AsSlice(),
		Dst: everywhere(own.Addr())}))
	return n
}

func everywhere(like netip.Addr) *net.IPNet {
	bits := like.BitLen()
	return &net.IPNet{IP: make(net.IP, bits/8), Mask: net.CIDRMask(0, bits)}
}

func (b *Bed) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func address(nl *netlink.Handle, l netlink.Link, p netip.Prefix) error {
	return nl.AddrAdd(l, &netlink.Addr{
		IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())},
		Flags: unix.IFA_F_NODAD,
	})
}

// neighbours makes both ends of a link know each other, so that none asks while packets wait.
func (b *Bed) neighbours(near *netlink.Handle, nearLink netlink.Link, far *netlink.Handle,
	farLink netlink.Link, farAddr, nearAddr netip.Addr) {
	b.t.Helper()
	add := func(nl *netlink.Handle, from, to netlink.Link, addr netip.Addr) error {
		return nl.NeighAdd(&netlink.Neigh{LinkIndex: from.Attrs().Index,
			State: netlink.NUD_PERMANENT, IP: addr.AsSlice(),
			HardwareAddr: to.Attrs().HardwareAddr})
	}
	b.ok(errors.Join(add(near, nearLink, farLink, farAddr), add(far, farLink, nearLink, nearAddr)))
}

// shape gives the router's port to the receiver its rate, its queue and its marks.
func (b *Bed) shape() {
	t, o := b.t, b.o
	t.Helper()
	nl := nstest.Netlink(t, b.router)
	port, err := nl.LinkByName("port100")
	b.ok(err)
	b.ok(nl.LinkSetTxQLen(port, int(o.LimitPackets))) // pfifo's limit when it is added
	at := netlink.QdiscAttrs{LinkIndex: port.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
		Parent: netlink.HANDLE_ROOT}
	htb := netlink.NewHtb(at)
	htb.Defcls = 1
	class := netlink.MakeHandle(1, 1)
	b.ok(nl.QdiscAdd(htb))
	burst := uint32(2 * o.MTU)
	b.ok(nl.ClassAdd(netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: port.Attrs().Index, Parent: at.Handle, Handle: class},
		netlink.HtbClassAttrs{Rate: o.RateBps, Ceil: o.RateBps, Buffer: burst, Cbuffer: burst},
	)))
	fifo := &netlink.GenericQdisc{QdiscType: "pfifo", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: port.Attrs().Index, Parent: class, Handle: netlink.MakeHandle(10, 0)}}
	b.ok(nl.QdiscAdd(fifo))
	b.wred, err = tc.LoadWRED(tc.WREDOptions{KMinBytes: o.KMin, KMaxBytes: o.KMax,
		PMax: max(o.PMax, 1e-6), FixedProbability: o.Mark, WREDBytes: o.Drop})
	b.ok(err)
	t.Cleanup(func() { b.wred.Close() })
	b.ok(b.wred.Attach(b.router, port.Attrs().Index))
}

// Control registers a scheme's control as a host does, with PCN's parts at the hosts where the
// scheme needs them. The names in given are parameters and their values.
func (b *Bed) Control(name string, network scheme.Network, given map[string]string) *Control {
	t := b.t
	t.Helper()
	s, ok := scheme.Builtin().ByControl(name)
	c := &Control{bed: b, Name: name}
	if !ok {
		return c // the kernel's
	}
	settings := scheme.Settings{Given: map[string]scheme.Value{}}
	for key, text := range given {
		p := s.Object.Param(key)
		if p == nil {
			continue // of another control
		}
		v, err := p.Parse(text)
		b.ok(err)
		settings.Given[key] = v
	}
	nstest.Turn(t)
	var err error
	c.loaded, err = loader.Register(loader.Registration{Scheme: s, Settings: settings,
		Network: network})
	b.ok(err)
	t.Cleanup(func() { c.loaded.Close() })
	if !s.HearsCNPs() {
		return c
	}
	values, problems := s.Object.Resolve(settings, network)
	if len(problems) > 0 {
		t.Fatalf("parameters of %s: %+v", name, problems)
	}
	c.np, err = tc.LoadHostNP(hostNP(t, values, network))
	b.ok(err)
	t.Cleanup(func() { c.np.Close() })
	if !b.o.NoNP {
		b.ok(c.np.Attach(b.receiver.ns, b.receiver.index))
	}
	c.rp, err = tc.LoadHostRP(c.loaded, tc.HostRPOptions{})
	b.ok(err)
	t.Cleanup(func() { c.rp.Close() })
	for _, sender := range b.senders {
		b.ok(c.rp.Attach(sender.ns, sender.index))
		b.ok(c.rp.Allow(sender.index, everyone...))
	}
	return c
}

// PlainSYNs makes the senders' SYNs not ECN-capable, as pcn host does where controls need ECN.
func (b *Bed) PlainSYNs() {
	b.t.Helper()
	syn, err := tc.LoadPlainSYN()
	b.ok(err)
	b.t.Cleanup(func() { syn.Close() })
	for _, sender := range b.senders {
		b.ok(syn.Attach(sender.ns, sender.index))
	}
}

var everyone = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0"),
}

// Control is a congestion control that hosts of a bed use.
type Control struct {
	Name   string
	bed    *Bed
	loaded *loader.Control // nil: the kernel's
	np     *tc.NP
	rp     *tc.RP
}

// NPCounts returns the counters of the receiver's notification point.
func (c *Control) NPCounts() tc.Counts {
	c.bed.t.Helper()
	n, err := c.np.Counts()
	c.bed.ok(err)
	return n
}

// RPCounts returns the counters of the senders' reaction point.
func (c *Control) RPCounts() tc.Counts {
	c.bed.t.Helper()
	n, err := c.rp.Counts()
	c.bed.ok(err)
	return n
}

// Connection is a TCP connection from a sender to the receiver.
type Connection struct{ Sender, Receiver *net.TCPConn }

// Connect connects a sender with the receiver, by a control at both ends.
func (b *Bed) Connect(sender int, control string) Connection {
	t := b.t
	t.Helper()
	listen := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(socket.SetControl(c, control), b.setReceiveBuffer(c))
	}}
	listen.SetMultipathTCP(false)
	dial := net.Dialer{Control: socket.Choose(control)}
	var (
		l   net.Listener
		out net.Conn
	)
	nstest.Do(t, b.receiver.ns, func() (err error) {
		l, err = listen.Listen(t.Context(), "tcp", net.JoinHostPort(b.receiver.addr.String(), "0"))
		return err
	})
	defer l.Close()
	b.ok(ns.Do(b.senders[sender].ns, func() (err error) {
		out, err = dial.DialContext(t.Context(), "tcp", l.Addr().String())
		return err
	}))
	in, err := l.Accept()
	b.ok(err)
	t.Cleanup(func() {
		out.Close()
		in.Close()
	})
	b.ok(out.(*net.TCPConn).SetNoDelay(!b.o.Nagle))
	return Connection{out.(*net.TCPConn), in.(*net.TCPConn)}
}

// superPacket returns the mean length of what a sender gave its device: packets, or super-packets.
func (b *Bed) superPacket(sender int) float64 {
	b.t.Helper()
	n := b.senders[sender]
	l, err := nstest.Netlink(b.t, n.ns).LinkByIndex(n.index)
	b.ok(err)
	sent := l.Attrs().Statistics
	return float64(sent.TxBytes) / float64(sent.TxPackets)
}

// setReceiveBuffer limits what a listener's connections may have in flight.
func (b *Bed) setReceiveBuffer(c syscall.RawConn) error {
	if b.o.ReceiveBuffer == 0 {
		return nil
	}
	return socket.Do(c, func(fd int) error {
		// Linux doubles the number
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, b.o.ReceiveBuffer/2)
	})
}

// hostNP returns the options of a host's notification point with a scheme's parameters.
func hostNP(t testing.TB, v *scheme.Values, n scheme.Network) tc.HostNPOptions {
	t.Helper()
	params, err := v.Bytes(scheme.NotificationVariable, n, false)
	if err != nil {
		t.Fatal(err)
	}
	return tc.HostNPOptions{TNs: uint64(v.Get("T").Number),
		CongestedShare: v.Get("congested_share").Number, Params: params}
}
