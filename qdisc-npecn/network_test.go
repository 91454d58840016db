// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns"
	"github.com/pcn-linux/pcn/tc"
)

const (
	sinkPort  = 9
	minFrame  = 42 // Ethernet, IPv4, UDP
	srcPort   = 1000
	mtu       = 9000
	ethHeader = 14
)

// layout is who is connected to whom. Each link makes two ports, a->b with the odd id and b->a with
// the even one.
type layout struct {
	hosts, switches []string
	links           [][2]string
	options         Options // Ports and Nodes are filled in
	buffers         map[string]uint64
	// configures port "a->b"; Peer, Node and RateChanges are filled in
	port    func(name string) Port
	rates   map[string][]RateChange  // of ports, from the run's beginning on; for one run
	pauses  map[string][]PauseChange // of ports' data class, from the run's beginning on
	alignNs uint64                   // runs begin at a multiple of it; 0: at any time
	notECT  func(p packet) bool      // whether a packet is not ECN-capable; nil: all are

	first map[[2]int]uint32 // what towards found, by node and host: the model asks for each packet
}

// portName is the name of an egress port.
func portName(node, peer string) string { return node + "->" + peer }

func (l *layout) nodes() []string { return slices.Concat(l.hosts, l.switches) }

// node returns the number of a node. The model asks often, so it makes no list of all.
func (l *layout) node(name string) int {
	if host := slices.Index(l.hosts, name); host >= 0 {
		return host
	}
	return len(l.hosts) + slices.Index(l.switches, name)
}

func (l *layout) isHost(node int) bool { return node < len(l.hosts) }

// ends are the node that port id belongs to and the node it sends to.
func (l *layout) ends(id uint32) (node, peer int) {
	link := l.links[(id-1)/2]
	if id%2 == 0 {
		return l.node(link[1]), l.node(link[0])
	}
	return l.node(link[0]), l.node(link[1])
}

// id is that of port "a->b".
func (l *layout) id(name string) uint32 {
	for i, link := range l.links {
		switch name {
		case portName(link[0], link[1]):
			return uint32(2*i + 1)
		case portName(link[1], link[0]):
			return uint32(2*i + 2)
		}
	}
	panic("no port " + name)
}

func (l *layout) portsMax() uint32 { return uint32(2*len(l.links) + 1) }

// configure completes the options.
func (l *layout) configure() Options {
	o := l.options
	names := l.nodes()
	o.Nodes = make([]Node, len(names))
	for i, name := range names {
		o.Nodes[i].BufferBytes = l.buffers[name]
	}
	o.Ports = make([]Port, l.portsMax())
	for id := uint32(1); id < l.portsMax(); id++ {
		node, peer := l.ends(id)
		p := l.port(portName(names[node], names[peer]))
		p.Name = portName(names[node], names[peer])
		p.Node = uint32(node)
		p.Peer = (id - 1 ^ 1) + 1
		p.RateChanges = len(l.rates[p.Name])
		o.Ports[id] = p
	}
	return o
}

// towards is the port by which a node reaches a host: the first on a shortest path; 0: none.
func (l *layout) towards(node, host int) uint32 {
	if id, known := l.first[[2]int{node, host}]; known {
		return id
	}
	if l.first == nil {
		l.first = map[[2]int]uint32{}
	}
	id := l.findTowards(node, host)
	l.first[[2]int{node, host}] = id
	return id
}

func (l *layout) findTowards(node, host int) uint32 {
	dist := map[int]int{host: 0}
	for queue := []int{host}; len(queue) > 0; queue = queue[1:] {
		for id := uint32(1); id < l.portsMax(); id++ {
			from, to := l.ends(id)
			if _, seen := dist[from]; to != queue[0] || seen || (l.isHost(to) && to != host) {
				continue
			}
			dist[from] = dist[to] + 1
			if from == node {
				return id
			}
			queue = append(queue, from)
		}
	}
	return 0
}

// packet is one frame, handed to its host's port ahead of time.
type packet struct {
	from, to int // hosts
	class    int
	size     int    // of the frame, bytes
	atNs     uint64 // departure, from the run's beginning on
}

// delivery is what became of a packet.
type delivery struct {
	atNs   uint64 // ideal, from the run's beginning on
	marked bool
	lost   bool
}

func (d delivery) String() string {
	switch {
	case d.lost:
		return "lost"
	case d.marked:
		return fmt.Sprintf("%d marked", d.atNs)
	}
	return fmt.Sprint(d.atNs)
}

// network is a layout made of namespaces and veth pairs.
type network struct {
	t testing.TB
	*layout
	config  Options
	q       *Qdisc
	fabric  *tc.Fabric
	arrive  *tc.Arrive
	ns      []netns.NsHandle
	nl      []*netlink.Handle
	ifindex []int // of each port
	// of each host, if there is QCN: a packet socket that gets the CNMs that come to it
	cnms    []int
	sent    int // packets of earlier runs
	t0Ns    uint64
	repeats uint64  // PAUSE frames that events told of
	storms  []Storm // that events told of
}

// newNetwork makes the layout, or fails the test.
func newNetwork(t testing.TB, l *layout) *network {
	t.Helper()
	n := &network{t: t, layout: l, config: l.configure(), ifindex: make([]int, l.portsMax())}
	n.load()
	for range l.nodes() {
		n.addNode()
	}
	for id := uint32(1); id < l.portsMax(); id += 2 {
		n.addLink(id)
	}
	for id := uint32(1); id < l.portsMax(); id++ {
		n.attachPort(id)
	}
	n.setRoutes()
	n.captureCNMs()
	return n
}

// load puts the programs into the kernel.
func (n *network) load() {
	n.t.Helper()
	var err error
	n.q, err = Load(n.config)
	n.check(err)
	n.t.Cleanup(func() { qt.Check(n.t, qt.IsNil(n.q.Close())) })
	n.arrive, err = tc.LoadArrive(tc.ArriveOptions{SinkPort: sinkPort, Events: n.q.Events(),
		DilationShift: n.config.DilationShift})
	n.check(err)
	n.t.Cleanup(func() { qt.Check(n.t, qt.IsNil(n.arrive.Close())) })
	n.fabric, err = tc.LoadFabric(tc.FabricOptions{
		HostBase: hostAddr(0), Hosts: uint32(len(n.hosts)), Nodes: uint32(len(n.nodes())),
		Ports: n.portsMax(),
	})
	n.check(err)
	n.t.Cleanup(func() { qt.Check(n.t, qt.IsNil(n.fabric.Close())) })
}

func (n *network) check(err error) {
	n.t.Helper()
	qt.Assert(n.t, qt.IsNil(err))
}

func hostAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

var hostMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}

// addNode makes a namespace without a name, in which the kernel itself sends nothing.
func (n *network) addNode() {
	n.t.Helper()
	h := newNamespace(n.t)
	n.ns = append(n.ns, h)
	n.check(ns.Do(h, func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	}))
	nl, err := netlink.NewHandleAt(h, unix.NETLINK_ROUTE)
	n.check(err)
	n.t.Cleanup(nl.Close)
	n.nl = append(n.nl, nl)
}

// newNamespace makes a network namespace that goes when the test ends.
func newNamespace(t testing.TB) netns.NsHandle {
	t.Helper()
	h, err := ns.New(func() error { return nil })
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { h.Close() })
	return h
}

// addLink makes the veth pair of ports id and id + 1.
func (n *network) addLink(id uint32) {
	n.t.Helper()
	a, b := n.ends(id)
	names := n.nodes()
	n.check(n.nl[a].LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: names[b], MTU: mtu, HardwareAddr: hostMAC,
			Namespace: netlink.NsFd(n.ns[a])},
		PeerName: names[a], PeerMTU: mtu, PeerHardwareAddr: hostMAC,
		PeerNamespace: netlink.NsFd(n.ns[b]),
	}))
	for _, port := range []uint32{id, id + 1} {
		node, peer := n.ends(port)
		dev, err := n.nl[node].LinkByName(names[peer])
		n.check(err)
		n.ifindex[port] = dev.Attrs().Index
		n.check(n.nl[node].LinkSetGroup(dev, int(port)))
		n.check(n.nl[node].LinkSetARPOff(dev))
		n.check(n.nl[node].LinkSetUp(dev))
	}
}

func (n *network) attachPort(id uint32) {
	n.t.Helper()
	node, peer := n.ends(id)
	if n.isHost(node) {
		n.check(n.arrive.Attach(n.ns[node], n.ifindex[id]))
	} else {
		n.check(n.fabric.AddPort(n.ns[node], n.ifindex[id], tc.FabricPort{
			ID: id, Node: uint32(node), FromHost: n.isHost(peer),
		}))
	}
	n.check(Attach(n.nl[node], n.ifindex[id]))
}

func (n *network) setRoutes() {
	n.t.Helper()
	for node := len(n.hosts); node < len(n.nodes()); node++ {
		for host := range n.hosts {
			if id := n.towards(node, host); id != 0 {
				n.check(n.fabric.SetRoute(uint32(node), uint32(host), n.ifindex[id]))
			}
		}
	}
}

// nowNs is the papers' time.
func (n *network) nowNs() uint64 {
	var ts unix.Timespec
	n.check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	return uint64(ts.Nano()) >> n.config.DilationShift
}

// run hands all packets to their ports ahead of their time, waits until the network is empty and
// returns what became of them. Packets of one host must be in the order of their departure.
func (n *network) run(packets []packet) []delivery {
	n.t.Helper()
	n.send(packets)
	n.waitEmpty()
	return n.deliveries(packets)
}

// send chooses the run's beginning and hands the packets over.
func (n *network) send(packets []packet) {
	n.t.Helper()
	const sendKernelNs = 200_000 // for one packet, on a slow machine
	n.t0Ns = n.nowNs() + uint64(len(packets)+100)*sendKernelNs>>n.config.DilationShift
	if n.alignNs > 0 {
		n.t0Ns = (n.t0Ns + n.alignNs - 1) / n.alignNs * n.alignNs
	}
	n.changeRates()
	n.beginWatchdogs()
	senders := map[[2]int]int{}
	for i, p := range packets {
		n.check(n.arrive.Track(n.flow(n.sent+i, p), uint32(i)))
		at := [2]int{p.from, p.class}
		fd, ok := senders[at]
		if !ok {
			fd = n.openSender(p.from, p.class)
			senders[at] = fd
		}
		n.check(n.sendFrame(fd, n.sent+i, p))
	}
	n.sent += len(packets)
	if len(packets) > 0 && n.nowNs() > n.t0Ns+packets[0].atNs {
		n.t.Fatalf("the machine is too slow to hand over %d packets in time", len(packets))
	}
}

// changeRates tells the ports their rates to come.
func (n *network) changeRates() {
	n.t.Helper()
	for name, changes := range n.rates {
		var absolute []RateChange
		for _, c := range changes {
			absolute = append(absolute, RateChange{AtNs: n.t0Ns + c.AtNs, RateBps: c.RateBps})
		}
		n.check(n.q.ChangeRates(n.id(name), absolute))
	}
}

// beginWatchdogs tells the ports the PAUSE to come.
func (n *network) beginWatchdogs() {
	n.t.Helper()
	n.check(n.q.BeginWatchdogs(n.t0Ns))
	for name, changes := range n.pauses {
		var absolute []PauseChange
		for _, c := range changes {
			absolute = append(absolute, PauseChange{AtNs: n.t0Ns + c.AtNs, Pause: c.Pause})
		}
		n.check(n.q.TellPauses(n.id(name), dataClass, absolute))
	}
}

// flow is the flow of the i-th packet: each packet is one of its own, so that arrivals tell its
// time.
func (n *network) flow(i int, p packet) loader.FlowKey {
	return loader.FlowKey{
		Src:      netip.AddrPortFrom(hostAddr(p.from), uint16(srcPort+i)),
		Dst:      netip.AddrPortFrom(hostAddr(p.to), sinkPort),
		Protocol: unix.IPPROTO_UDP,
	}
}

// openSender opens a packet socket of a host: its frames go to the port as they are, with class and
// departure.
func (n *network) openSender(host, class int) int {
	n.t.Helper()
	var fd int
	n.check(ns.Do(n.ns[host], func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	}))
	n.t.Cleanup(func() { unix.Close(fd) })
	var txtime [8]byte // struct sock_txtime
	binary.NativeEndian.PutUint32(txtime[:], unix.CLOCK_MONOTONIC)
	n.check(unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_TXTIME, string(txtime[:])))
	n.check(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, class))
	n.check(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1<<29))
	return fd
}

func (n *network) sendFrame(fd, i int, p packet) error {
	oob := make([]byte, unix.CmsgSpace(8))
	binary.NativeEndian.PutUint64(oob, uint64(unix.CmsgLen(8)))
	binary.NativeEndian.PutUint32(oob[8:], unix.SOL_SOCKET)
	binary.NativeEndian.PutUint32(oob[12:], unix.SCM_TXTIME)
	binary.NativeEndian.PutUint64(oob[unix.CmsgLen(0):], (n.t0Ns+p.atNs)<<n.config.DilationShift)
	to := &unix.SockaddrLinklayer{Protocol: 0x0008, /* ETH_P_IP, big endian */
		Ifindex: n.hostDevice(p.from), Halen: 6}
	b := frame(n.flow(i, p), p)
	if n.notCapable(p) {
		b[ethHeader+1] &^= 3
	}
	if err := unix.Sendmsg(fd, b, oob, to, 0); err != nil {
		return fmt.Errorf("send packet %d: %w", i, err)
	}
	return nil
}

func (n *network) hostDevice(host int) int {
	for id := uint32(1); id < n.portsMax(); id++ {
		if node, _ := n.ends(id); node == host {
			return n.ifindex[id]
		}
	}
	panic("no port")
}

func (l *layout) notCapable(p packet) bool { return l.notECT != nil && l.notECT(p) }

// frame is an Ethernet frame of the packet's size: UDP, of its class, ECN-capable.
func frame(k loader.FlowKey, p packet) []byte {
	const ect0 = 2
	b := make([]byte, p.size)
	copy(b, hostMAC)
	src, dst := k.Src.Addr().As4(), k.Dst.Addr().As4()
	copy(b[6:], slices.Concat([]byte{2, 0}, src[:])) // by which CNMs find back
	binary.BigEndian.PutUint16(b[12:], unix.ETH_P_IP)
	ip := b[ethHeader:]
	ip[0], ip[1] = 0x45, byte(p.class<<5|ect0)
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	ip[8], ip[9] = 64, unix.IPPROTO_UDP
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp, k.Src.Port())
	binary.BigEndian.PutUint16(udp[2:], k.Dst.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	return b
}

// waitEmpty waits until no port holds a packet.
func (n *network) waitEmpty() {
	n.t.Helper()
	n.waitUntil("no port holds a packet", func() bool { return n.held() == 0 })
}

// waitUntil looks every 20 us of the papers' time. The guest's clock jumps while nothing runs;
// after 10 minutes of it, something is stuck.
func (n *network) waitUntil(what string, done func() bool) {
	n.t.Helper()
	const patience = 10 * time.Minute
	step := time.Duration(20_000) << n.config.DilationShift
	for began := time.Now(); !done(); time.Sleep(step) {
		if time.Since(began) > patience {
			n.t.Fatalf("%s: still not so\n%s", what, n.dump())
		}
	}
}

func (n *network) kernelStats(port string) kernelStats {
	n.t.Helper()
	id := n.id(port)
	node, _ := n.ends(id)
	s, err := readKernelStats(n.ns[node], n.ifindex[id])
	n.check(err)
	return s
}

func (n *network) stats(id uint32) Stats {
	n.t.Helper()
	s, err := n.q.Stats(id)
	n.check(err)
	return s
}

// held is how many packets the ports hold.
func (n *network) held() (total uint64) {
	n.t.Helper()
	for id := uint32(1); id < n.portsMax(); id++ {
		s := n.stats(id)
		total += s.QueuedPackets + s.WirePackets
	}
	return total
}

func (n *network) dump() string {
	var b strings.Builder
	for id := uint32(1); id < n.portsMax(); id++ {
		s := n.stats(id)
		s.Lateness = Lateness{}
		fmt.Fprintf(&b, "%s %+v\n", n.config.Ports[id].Name, s)
	}
	return b.String()
}

// deliveries reads what became of the packets of the latest run.
func (n *network) deliveries(packets []packet) []delivery {
	n.t.Helper()
	out := make([]delivery, len(packets))
	for i, p := range packets {
		a, err := n.arrive.Flow(n.flow(n.sent-len(packets)+i, p), 1)
		n.check(err)
		qt.Assert(n.t, qt.IsTrue(a.Packets <= 1),
			qt.Commentf("packet %d came %d times", i, a.Packets))
		out[i] = delivery{lost: a.Packets == 0}
		if a.Packets == 1 {
			out[i] = delivery{atNs: a.LastNs - n.t0Ns, marked: a.MarkedPackets == 1}
		}
	}
	return out
}

// repeated is how many PAUSE frames ports would have sent that repeat them; [network.events] was
// called before.
func (n *network) repeated() uint64 {
	n.t.Helper()
	sum := n.repeats
	for id := uint32(1); id < n.portsMax(); id++ {
		rows, err := n.q.PauseRepeats(id, n.nowNs())
		n.check(err)
		for _, r := range rows {
			sum += r.Frames
		}
	}
	return sum
}

// events reads all events so far; times are from the run's beginning on.
func (n *network) events() (pfc []PFCEvent, queue []QueueSample) {
	n.t.Helper()
	r, err := n.q.NewEventReader()
	n.check(err)
	defer r.Close()
	n.check(r.Drain(Sink{
		PFC: func(e PFCEvent) {
			e.SentNs -= n.t0Ns
			e.EffectNs -= n.t0Ns
			pfc = append(pfc, e)
		},
		Repeats: func(r PauseRepeats) { n.repeats += r.Frames },
		Queue:   func(s QueueSample) { queue = append(queue, s) },
		Flow:    func(FlowSample) {},
		Off:     func(Off) {}, Detected: func(Detected) {},
		Storm: func(s Storm) {
			s.AtNs -= n.t0Ns
			n.storms = append(n.storms, s)
		},
	}))
	lost, err := n.q.EventsLost()
	n.check(err)
	qt.Assert(n.t, qt.Equals(lost, 0))
	return pfc, queue
}
