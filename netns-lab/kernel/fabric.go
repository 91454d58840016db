// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/network"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// hostMAC is the address of every host: without ARP, a host takes every destination for its own address.
var hostMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}

// netNode is a node's namespace.
type netNode struct {
	ns       netns.NsHandle
	nl       *netlink.Handle
	requests *nl.SocketHandle // for what nl has no function for
}

// fabric is a plan made real: namespaces, links, qdiscs and programs.
type fabric struct {
	plan    *plan
	scheme  string
	clock   clock
	reg     *registry
	nodes   []netNode
	ifindex []int // of each port
	options npecn.Options
	qdisc   *npecn.Qdisc
	control *loader.Control
	sw      *tc.Fabric
	stamp   *tc.Stamp
	arrive  *tc.Arrive
	np      *tc.NP
	rp      *tc.RP
	// firstRTT makes LDCP's packets of the first round trip not ECN-capable.
	firstRTT *tc.FirstRTT
}

// newFabric builds it all, or nothing.
func newFabric(p *plan, scheme string) (*fabric, error) {
	f := describeFabric(p, scheme)
	if err := f.build(f.steps()...); err != nil {
		return nil, err
	}
	return f, nil
}

// describeFabric is a fabric of which nothing is built yet.
func describeFabric(p *plan, scheme string) *fabric {
	return &fabric{
		plan: p, scheme: scheme, clock: clock{p.exp.Dilation}, ifindex: make([]int, len(p.ports)),
		options: p.qdiscOptions(scheme),
	}
}

func (f *fabric) steps() []func() error {
	return append(append([]func() error{f.loadQdisc}, f.stepsWithoutQdisc()...), f.attachQdiscs)
}

func (f *fabric) stepsWithoutQdisc() []func() error {
	return []func() error{f.makeNodes, f.load, f.makeLinks, f.configureHosts, f.attach}
}

// build claims the machine and takes the steps, and removes what they made if one fails.
func (f *fabric) build(steps ...func() error) (err error) {
	if f.reg, err = openRegistry(); err != nil {
		return err
	}
	err = f.hurry(func() error {
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, f.close())
	}
	return nil
}

func (f *fabric) loadQdisc() (err error) {
	f.qdisc, err = npecn.Load(f.options)
	return err
}

// load puts the other programs into the kernel.
func (f *fabric) load() (err error) {
	if f.sw, err = tc.LoadFabric(tc.FabricOptions{
		HostBase: network.HostAddr(0), Hosts: uint32(f.plan.hosts),
		Nodes: uint32(len(f.plan.nodes)), Ports: uint32(len(f.plan.ports)),
	}); err != nil {
		return err
	}
	if f.stamp, err = tc.LoadStamp(tc.StampOptions{
		DataDSCP: DataDSCP, ControlDSCP: ControlDSCP, DataClasses: dataClasses(f.plan.exp), AddressMAC: f.scheme == schemeQCN,
		ECT1: experiment.HasTCD(f.scheme),
	}); err != nil {
		return err
	}
	arrive := tc.ArriveOptions{SinkPort: sinkPort, MaxFlows: f.plan.flows(), DilationShift: f.shift()}
	if f.qdisc != nil {
		arrive.SampleNs, arrive.Events = uint64(f.plan.exp.Sample), f.qdisc.Events()
	}
	if f.arrive, err = tc.LoadArrive(arrive); err != nil {
		return err
	}
	return f.loadControl()
}

// makeNodes makes a namespace a node, named as the node.
func (f *fabric) makeNodes() error {
	names := make([]string, len(f.plan.nodes))
	for i, n := range f.plan.nodes {
		names[i] = n.name
	}
	if err := f.reg.claim(names); err != nil {
		return err
	}
	if err := allowFiles(f.files()); err != nil {
		return err
	}
	f.nodes = make([]netNode, len(names))
	return parallel(len(names), func(i int) (err error) {
		f.nodes[i], err = newNode(names[i])
		return err
	})
}

// files is how many a fabric has open: for each node a namespace and two sockets, and for each port its programs' links.
func (f *fabric) files() int {
	const programsOfPort = 8
	return 3*len(f.plan.nodes) + programsOfPort*len(f.plan.ports)
}

// newNode makes a namespace and a netlink socket in it, on a thread that enters it and is thrown away.
func newNode(name string) (n netNode, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		n, err = enterNewNode(name)
	}()
	<-done
	return n, err
}

func enterNewNode(name string) (netNode, error) {
	home, err := netns.Get()
	if err != nil {
		return netNode{}, fmt.Errorf("get the network namespace to return to: %w", err)
	}
	defer home.Close()
	defer netns.Set(home) // Go keeps the process's main thread, which would keep the namespace
	h, err := netns.NewNamed(name)
	if err != nil {
		return netNode{}, fmt.Errorf("make network namespace %s: %w", name, err)
	}
	if err := disableIPv6(); err != nil {
		h.Close()
		return netNode{}, fmt.Errorf("disable IPv6 in namespace %s: %w", name, err)
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		h.Close()
		return netNode{}, fmt.Errorf("open netlink in namespace %s: %w", name, err)
	}
	requests, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		handle.Close()
		h.Close()
		return netNode{}, fmt.Errorf("open netlink in namespace %s: %w", name, err)
	}
	return netNode{h, handle, &nl.SocketHandle{Socket: requests}}, nil
}

// disableIPv6 keeps the thread's namespace from speaking it: its solicitations would be packets that nobody asked for.
func disableIPv6() error {
	for _, conf := range []string{"all", "default"} {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+conf+"/disable_ipv6", []byte("1"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			return err
		}
	}
	return nil
}

// makeLinks makes a veth a link, its ends in its nodes' namespaces.
func (f *fabric) makeLinks() error {
	return parallel(len(f.plan.ports)/2, func(i int) error {
		a := uint32(2*i + 1)
		if err := f.makeLink(a, a+1); err != nil {
			return fmt.Errorf("make link %s: %w", f.plan.ports[a].name, err)
		}
		return nil
	})
}

func (f *fabric) makeLink(a, b uint32) error {
	na, nb := f.node(a), f.node(b)
	mtu := int(f.plan.exp.Frame) - ethHeader
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{
			Name: f.plan.device(a), MTU: mtu, HardwareAddr: hostMAC, Namespace: netlink.NsFd(na.ns),
		},
		PeerName: f.plan.device(b), PeerMTU: uint32(mtu), PeerHardwareAddr: hostMAC, PeerNamespace: netlink.NsFd(nb.ns),
	}
	if err := na.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("add veth: %w", err)
	}
	for _, id := range []uint32{a, b} {
		if err := f.configureDevice(id); err != nil {
			return fmt.Errorf("device %s: %w", f.plan.device(id), err)
		}
	}
	return nil
}

func (f *fabric) node(port uint32) netNode { return f.nodes[f.plan.ports[port].node] }

// configureDevice names a port by its netdev group, makes every skb one packet, and sets it up, without ARP.
func (f *fabric) configureDevice(id uint32) error {
	n := f.node(id)
	dev, err := n.nl.LinkByName(f.plan.device(id))
	if err != nil {
		return fmt.Errorf("find it: %w", err)
	}
	f.ifindex[id] = dev.Attrs().Index
	const flags = unix.IFF_UP | unix.IFF_NOARP
	change := nl.NewIfInfomsg(unix.AF_UNSPEC)
	change.Index, change.Flags, change.Change = int32(f.ifindex[id]), flags, flags
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK) // all at once: netlink's functions take a request each
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: n.requests}
	req.AddData(change)
	req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(id)))
	req.AddData(nl.NewRtAttr(unix.IFLA_GSO_MAX_SEGS, nl.Uint32Attr(1)))
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("set it up as port %d: %w", id, err)
	}
	return nil
}

// RTO's minimum, on the papers' clock: above the longest pause (a queue of 8 MB at 40 Gbit/s is 1.6 ms); in a lossy
// network, where it is needed, above the gap of LDCP's least window behind a queue of its own host (2.4 ms).
const (
	rtoMinNs      = 30_000_000
	rtoMinLossyNs = 10_000_000
)

// rtoMinMaxMs is the kernel's TCP_RTO_MAX.
const rtoMinMaxMs = 120_000

// sysctls make TCP the RDMA-like transport that the papers have: paced, lossless, never starting over. The congestion
// control is chosen by each socket.
func (f *fabric) sysctls() [][2]string {
	return append([][2]string{
		{"net/ipv4/tcp_early_retrans", "0"},   // no tail-loss probes
		{"net/ipv4/tcp_no_metrics_save", "1"}, // runs do not learn from runs
		{"net/ipv4/tcp_slow_start_after_idle", "0"},
		{"net/ipv4/tcp_autocorking", "0"},
		{"net/ipv4/tcp_rmem", "4096 16777216 33554432"},
		{"net/ipv4/tcp_wmem", "4096 4194304 33554432"},
		{"net/ipv4/tcp_comp_sack_nr", "0"}, // an ACK for each packet also behind a loss
	}, f.ecnSysctls()...)
}

// ecnSysctls choose how receivers tell of marks. The counter of ACKs' three bits is enough for AccECN; its option would
// take payload from data packets.
func (f *fabric) ecnSysctls() [][2]string {
	e := f.plan.exp
	ldcp := f.scheme == schemeLDCP && e.LDCP.Feedback == experiment.FeedbackAccECN
	pcn := f.scheme == schemePCN && (e.PCN.Feedback == experiment.FeedbackACK || e.PCN.Feedback == experiment.FeedbackAuto)
	if ldcp || pcn {
		return [][2]string{{"net/ipv4/tcp_ecn", "3"}, {"net/ipv4/tcp_ecn_option", "0"}}
	}
	return [][2]string{{"net/ipv4/tcp_ecn", "1"}}
}

// configureHosts gives hosts their address, route and settings.
func (f *fabric) configureHosts() error {
	if err := f.setMachine(); err != nil {
		return fmt.Errorf("change the machine's settings: %w", err)
	}
	return parallel(f.plan.hosts, func(i int) error {
		if err := f.configureHost(i); err != nil {
			return fmt.Errorf("configure host %s: %w", f.plan.nodes[i].name, err)
		}
		return nil
	})
}

// machineSettings are the whole machine's, by file: the backlog takes all packets there can be, as its drops are silent;
// the TCP memory, in pages, is no limit, or receivers with data of many flows drop.
var machineSettings = [][2]string{
	{"/proc/sys/net/core/netdev_max_backlog", "1000000"},
	{"/proc/sys/net/ipv4/tcp_mem", "16777216 16777216 16777216"},
}

func (f *fabric) setMachine() error {
	for _, s := range machineSettings {
		if err := f.reg.change(s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

// expedited is a setting of the machine by which the kernel asks all CPUs whether their readers are done, and does not
// wait until they pass by: tens of ms each time a program comes to a device or goes, with everybody locked out.
const expedited = "/sys/kernel/rcu_expedited"

// hurry calls fn with that setting.
func (f *fabric) hurry(fn func() error) error {
	if err := f.reg.change(expedited, "1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("change the machine's settings: %w", err)
	}
	err := fn()
	return errors.Join(err, f.reg.restore(expedited))
}

func (f *fabric) configureHost(i int) error {
	n, h := f.plan.nodes[i], f.nodes[i]
	if err := ns.Do(h.ns, func() error {
		for _, s := range f.sysctls() {
			if err := os.WriteFile("/proc/sys/"+s[0], []byte(s[1]), 0); err != nil {
				return fmt.Errorf("set sysctl: %w", err)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	const loopback = 1 // of every namespace
	if err := h.nl.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: loopback}}); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	dev := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: f.ifindex[n.ports[0]]}}
	addr := n.addr.As4()
	ip := net.IP(addr[:])
	if err := h.nl.AddrAdd(dev, &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)}}); err != nil {
		return fmt.Errorf("add address %s: %w", n.addr, err)
	}
	rtoNs := uint64(rtoMinNs)
	if !f.plan.exp.PFCOn(f.scheme) {
		rtoNs = rtoMinLossyNs
	}
	rtoMs := min(f.clock.kernel(rtoNs)/1e6, rtoMinMaxMs)
	route := &netlink.Route{
		LinkIndex: dev.Index, Scope: netlink.SCOPE_LINK, Src: ip,
		Dst:      &net.IPNet{IP: net.IPv4(10, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
		QuickACK: f.quickACK(), RtoMin: int(rtoMs), RtoMinLock: true,
	}
	if err := h.nl.RouteAdd(route); err != nil {
		return fmt.Errorf("add route: %w", err)
	}
	return nil
}

// quickACK makes receivers acknowledge every packet; 0: every second.
func (f *fabric) quickACK() int {
	if f.scheme == schemeLDCP && f.plan.exp.LDCP.DelayedAck > 1 {
		return 0
	}
	return 1
}

// attach puts the programs on every port, and the routes into the switches.
func (f *fabric) attach() error {
	if err := parallel(len(f.nodes), func(i int) error {
		return ns.Do(f.nodes[i].ns, func() error { return f.attachNode(i) })
	}); err != nil {
		return err
	}
	for n, routes := range f.plan.routes() {
		for host, ports := range routes {
			if len(ports) == 0 {
				continue // failed links may cut a switch off
			}
			out := make([]int, len(ports))
			for i, id := range ports {
				out[i] = f.ifindex[id]
			}
			if err := f.sw.SetRoute(uint32(n), uint32(host), out...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fabric) attachQdiscs() error {
	return parallel(len(f.plan.ports)-1, func(i int) error {
		id := uint32(i + 1)
		if err := npecn.Attach(f.node(id).nl, f.ifindex[id]); err != nil {
			return fmt.Errorf("port %s: %w", f.plan.ports[id].name, err)
		}
		return nil
	})
}

// attachNode attaches the programs of a node's ports, from inside it.
func (f *fabric) attachNode(i int) error {
	attach := f.attachSwitch
	if f.plan.nodes[i].isHost {
		attach = f.attachHost
	}
	for _, id := range f.plan.nodes[i].ports {
		if err := attach(id); err != nil {
			return fmt.Errorf("port %s: %w", f.plan.ports[id].name, err)
		}
	}
	return nil
}

func (f *fabric) attachSwitch(id uint32) error {
	n := uint32(f.plan.ports[id].node)
	return f.sw.AddPort(netns.None(), f.ifindex[id], tc.FabricPort{
		ID: id, Node: n, FromHost: f.plan.fromHost(id), Seed: hashSeed(f.plan.ports[id].node),
	})
}

func (f *fabric) attachHost(id uint32) error {
	here, ifindex := netns.None(), f.ifindex[id]
	if err := f.arrive.Attach(here, ifindex); err != nil {
		return err
	}
	if f.np != nil {
		if err := f.np.Attach(here, ifindex); err != nil {
			return err
		}
	}
	if f.rp != nil {
		if err := f.rp.Attach(here, ifindex); err != nil {
			return err
		}
	}
	if f.firstRTT != nil {
		if err := f.firstRTT.Attach(here, ifindex); err != nil {
			return err
		}
	}
	return f.stamp.Attach(here, ifindex)
}

// close removes everything, and gives the machine back last.
func (f *fabric) close() error {
	err := f.hurry(func() error {
		errs := []error{f.removeNodes()}
		for _, c := range f.closers() {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	})
	if err := errors.Join(err, f.reg.restoreAll(), f.reg.unlock()); err != nil {
		return fmt.Errorf("remove the lab: %w", err)
	}
	return nil
}

// removeNodes returns when the kernel, which removes namespaces later, has removed the ports.
func (f *fabric) removeNodes() error {
	var errs []error
	for _, n := range f.nodes {
		if n.nl == nil {
			continue // not made
		}
		n.nl.Close()
		n.requests.Close()
		errs = append(errs, n.ns.Close())
	}
	if err := errors.Join(append(errs, f.reg.clean())...); err != nil {
		return err
	}
	const patience = time.Minute
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		if gone, err := f.orphaned(); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("ports are still there %s after their namespaces: does another process use one of these (lsns -t net)?", patience)
}

// orphaned says whether the ports of all programs are gone.
func (f *fabric) orphaned() (bool, error) {
	if f.sw != nil {
		if gone, err := f.sw.Orphaned(); !gone || err != nil {
			return false, err
		}
	}
	if f.arrive != nil {
		return f.arrive.Orphaned()
	}
	return true, nil
}

type closer interface{ Close() error }

// closers are the loaded objects; a nil pointer is no object.
func (f *fabric) closers() []closer {
	var out []closer
	if f.firstRTT != nil {
		out = append(out, f.firstRTT)
	}
	if f.rp != nil {
		out = append(out, f.rp)
	}
	if f.np != nil {
		out = append(out, f.np)
	}
	if f.arrive != nil {
		out = append(out, f.arrive)
	}
	if f.stamp != nil {
		out = append(out, f.stamp)
	}
	if f.sw != nil {
		out = append(out, f.sw)
	}
	if f.control != nil {
		out = append(out, f.control)
	}
	if f.qdisc != nil {
		out = append(out, f.qdisc)
	}
	return out
}
