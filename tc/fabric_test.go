// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
)

var fabricOptions = FabricOptions{HostBase: netip.MustParseAddr("10.0.0.0"), Hosts: 8, Nodes: 3,
	Ports: 40}

// network is a fabric whose ports are TAP devices.
type network struct {
	*Fabric
	ns    netns.NsHandle
	ports map[uint32]*tap // by id
}

func newNetwork(t *testing.T, ports ...FabricPort) *network {
	t.Helper()
	return newNetworkOf(t, fabricOptions, ports...)
}

func newNetworkOf(t *testing.T, o FabricOptions, ports ...FabricPort) *network {
	t.Helper()
	n := &network{ns: nstest.New(t), ports: map[uint32]*tap{}}
	f, err := LoadFabric(o)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { f.Close() })
	n.Fabric = f
	for _, p := range ports {
		dev := newTap(t, n.ns, fmt.Sprintf("port%d", p.ID), int(p.ID))
		qt.Assert(t, qt.IsNil(f.AddPort(n.ns, dev.ifindex, p)))
		n.ports[p.ID] = dev
	}
	return n
}

func (n *network) route(t *testing.T, node, host uint32, ports ...uint32) {
	t.Helper()
	var ifindexes []int
	for _, id := range ports {
		ifindexes = append(ifindexes, n.ports[id].ifindex)
	}
	qt.Assert(t, qt.IsNil(n.SetRoute(node, host, ifindexes...)))
}

// sent is what each port has sent since the last call; ports that sent nothing are left out.
func (n *network) sent(t *testing.T) map[uint32][][]byte {
	t.Helper()
	all := map[uint32][][]byte{}
	for id, dev := range n.ports {
		if frames := dev.sent(t); frames != nil {
			all[id] = frames
		}
	}
	return all
}

func (n *network) drops(t *testing.T) FabricDrops {
	t.Helper()
	d, err := n.Drops()
	qt.Assert(t, qt.IsNil(err))
	return d
}

// ingress runs the program on a packet that came in at a port.
func (n *network) ingress(t *testing.T, port uint32, frame []byte, skb skBuff) result {
	t.Helper()
	skb.Ifindex = uint32(n.ports[port].ifindex)
	return n.run(t, n.ns, "fabric", frame, skb)
}

// to is a flow to a host.
func to(host uint8) flow {
	f := someFlow()
	f.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, host}), f.dst.Port())
	return f
}

// The egress port learns whether a packet is ECN-capable, for WRED.
func TestFabricTellsOfECN(t *testing.T) {
	const ingressMark, notCapableBit, port = 0x50430000, 0x8000, 5
	n := newNetwork(t, FabricPort{ID: port}, FabricPort{ID: 6})
	n.route(t, 0, 2, 6)
	for ecn := range uint8(4) {
		want := uint32(ingressMark | port)
		if ecn == notECT {
			want |= notCapableBit
		}
		for name, frame := range map[string][]byte{"TCP": to(2).tcp(t, dataDSCP<<2|ecn, 100),
			"UDP": to(2).udp(t, ecn, 100)} {
			r := n.ingress(t, port, frame, skBuff{CB: carry(1<<40, false), Mark: 0xffffffff})
			qt.Check(t, qt.Equals(r.skb.Mark, want), qt.Commentf("%s, ECN %d", name, ecn))
		}
	}
}

func TestFabricOptionsAreChecked(t *testing.T) {
	_, err := LoadFabric(FabricOptions{HostBase: netip.MustParseAddr("fd00::"), Hosts: 1, Nodes: 1,
		Ports: 1})
	qt.Assert(t, qt.ErrorMatches(err, "fabric: host base fd00:: is not IPv4"))
	nstest.RequireRoot(t)
	f, err := LoadFabric(fabricOptions)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { f.Close() })
	for _, c := range []struct {
		node, host uint32
		paths      int
		want       string
	}{
		{0, 0, 0, "route of node 0 to host 0 has 0 paths, want 1 to 16"},
		{0, 0, 17, "route of node 0 to host 0 has 17 paths, want 1 to 16"},
		{0, 8, 1, "route of node 0 to host 8: the fabric has 3 nodes and 8 hosts"},
		{3, 0, 1, "route of node 3 to host 0: the fabric has 3 nodes and 8 hosts"},
	} {
		qt.Check(t, qt.ErrorMatches(f.SetRoute(c.node, c.host, make([]int, c.paths)...), c.want))
	}
	err = f.AddPort(netns.None(), 1, FabricPort{ID: 40})
	qt.Check(t, qt.ErrorMatches(err, "configure fabric port 40: .*"))
}

// Every node has routes of its own; packets pass unchanged, from hosts and from switches.
func TestFabricRoutes(t *testing.T) {
	n := newNetwork(t,
		FabricPort{ID: 1, Node: 0, FromHost: true}, FabricPort{ID: 2, Node: 0},
		FabricPort{ID: 3, Node: 0},
		FabricPort{ID: 4, Node: 2, FromHost: true}, FabricPort{ID: 5, Node: 2},
		FabricPort{ID: 6, Node: 2})
	n.route(t, 0, 0, 2)
	n.route(t, 0, 7, 3)
	n.route(t, 2, 0, 5)
	n.route(t, 2, 7, 6)
	n.route(t, 2, 3, 4) // back to where it came from
	for _, c := range []struct {
		in   uint32
		host uint8
		out  uint32
	}{
		{1, 0, 2}, {2, 0, 2}, {3, 0, 2},
		{1, 7, 3}, {2, 7, 3},
		{4, 0, 5}, {5, 0, 5},
		{4, 7, 6}, {6, 7, 6},
		{4, 3, 4}, {5, 3, 4},
	} {
		for _, frame := range [][]byte{to(c.host).tcp(t, ect0, 1000), to(c.host).udp(t, 0, 1),
			to(c.host).tcp(t, 0, 0)} {
			n.ports[c.in].receive(t, vnetHeader{}, frame)
			qt.Assert(t, qt.DeepEquals(n.sent(t), map[uint32][][]byte{c.out: {frame}}),
				qt.Commentf("from port %d to host %d", c.in, c.host))
		}
	}
	qt.Assert(t, qt.Equals(n.drops(t), FabricDrops{}))
}

func TestFabricDrops(t *testing.T) {
	n := newNetwork(t, FabricPort{ID: 1, Node: 0, FromHost: true}, FabricPort{ID: 2, Node: 0},
		FabricPort{ID: 3, Node: 1})
	for host := range fabricOptions.Hosts {
		n.route(t, 1, host, 1, 2, 3) // of another node
	}
	n.route(t, 0, 1, 2)
	good := to(1).tcp(t, ect0, 100)
	for _, in := range []uint32{1, 2} {
		for _, c := range []struct {
			name  string
			frame []byte
			want  FabricDrops
		}{
			{"ARP", to(1).arp(t), FabricDrops{NotIP: 1}},
			{"IPv6", to(1).tcpIPv6(t), FabricDrops{NotIP: 1}},
			{"VLAN", vlan(good, 10), FabricDrops{NotIP: 1}},
			{"first fragment", to(1).tcp(t, 0, 100, func(ip *layers.IPv4,
				_ *layers.TCP) {
				ip.Flags = layers.IPv4MoreFragments
			}), FabricDrops{NotIP: 1}},
			{"later fragment", to(1).tcp(t, 0, 100, func(ip *layers.IPv4, _ *layers.TCP) {
				ip.Flags,
					ip.FragOffset = 0, 1
			}), FabricDrops{NotIP: 1}},
			{"no host's address", to(8).tcp(t, 0, 100), FabricDrops{NoRoute: 1}},
			{"last address", to(255).tcp(t, 0, 100), FabricDrops{NoRoute: 1}},
			{"address below the hosts'", flow{src: someFlow().src,
				dst: netip.MustParseAddrPort("9.255.255.255:1")}.tcp(t, 0, 100),
				FabricDrops{NoRoute: 1}},
			{"host without route", to(2).tcp(t, 0, 100), FabricDrops{NoRoute: 1}},
		} {
			t.Run(fmt.Sprintf("%s, from port %d", c.name, in), func(t *testing.T) {
				before := n.drops(t)
				r := n.ingress(t, in, c.frame, skBuff{})
				qt.Check(t, qt.Equals(r.verdict, tcxDrop))
				qt.Check(t, qt.HasLen(n.sent(t), 0))
				after := n.drops(t)
				qt.Check(t, qt.Equals(FabricDrops{
					NotIP: after.NotIP - before.NotIP, NoRoute: after.NoRoute - before.NoRoute,
					NoPort:   after.NoPort - before.NoPort,
					Redirect: after.Redirect - before.Redirect,
				}, c.want))
			})
		}
	}
}

// Programs send fragments, options of IPv4 and IPv6. All fragments of a datagram take one path, and
// datagrams of other hosts another.
func TestFabricRoutesAnyIP(t *testing.T) {
	options := fabricOptions
	options.AnyIP = true
	n := newNetworkOf(t, options, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2},
		FabricPort{ID: 3}, FabricPort{ID: 4})
	n.route(t, 0, 1, 2, 3, 4)
	path := func(frame []byte) uint32 {
		n.ports[1].receive(t, vnetHeader{}, frame)
		sent := n.sent(t)
		qt.Assert(t, qt.HasLen(sent, 1))
		for id, frames := range sent {
			qt.Assert(t, qt.DeepEquals(frames, [][]byte{frame}))
			return id
		}
		return 0
	}
	taken := map[uint32]bool{}
	for host := range uint8(30) {
		f := to(1)
		f.src = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, host}), 5000)
		var fragments []uint32
		for i := range 4 {
			fragments = append(fragments, path(f.tcp(t, 0, 1000, fragmentAt(uint16(i*125)))))
			f.src = netip.AddrPortFrom(f.src.Addr(), f.src.Port()+1) // what stands there is data
		}
		qt.Assert(t, qt.DeepEquals(fragments, slices.Repeat(fragments[:1], 4)))
		taken[fragments[0]] = true
	}
	qt.Check(t, qt.HasLen(taken, 3))

	v6 := someFlowIPv6()
	v6.dst = netip.AddrPortFrom(netip.MustParseAddr("fd00::10.0.0.1"), 80)
	whole := v6.tcpData(t, ect0, 100)
	path(whole)
	first := path(withExtensions(whole, 44, []byte{6, 0, 0, 1, 0, 0, 0, 7}))
	later := path(withExtensions(v6.datagram(t, 0, make([]byte, 300)), 44,
		[]byte{6, 0, 0, 9, 0, 0, 0, 7}))
	qt.Check(t, qt.Equals(later, first))

	qt.Check(t, qt.Equals(n.drops(t), FabricDrops{}))
	for _, frame := range [][]byte{to(1).arp(t), vlan(to(1).tcp(t, 0, 1), 10),
		someFlowIPv6().tcpData(t, 0, 1)} {
		qt.Check(t, qt.Equals(n.ingress(t, 1, frame, skBuff{}).verdict, tcxDrop))
		qt.Check(t, qt.HasLen(n.sent(t), 0))
	}
	qt.Check(t, qt.Equals(n.drops(t), FabricDrops{NotIP: 3}))
}

// A device whose group is no port of the fabric, within the table or beyond it, is not taken for
// one.
func TestFabricUnknownPort(t *testing.T) {
	for _, group := range []int{0, 7, int(fabricOptions.Ports), 1 << 20} {
		t.Run(fmt.Sprintf("group %d", group), func(t *testing.T) {
			n := newNetwork(t, FabricPort{ID: 1, Node: 0})
			n.route(t, 0, 1, 1)
			dev := newTap(t, n.ns, "stranger", group)
			r := n.run(t, n.ns, "fabric", to(1).tcp(t, 0, 100),
				skBuff{Ifindex: uint32(dev.ifindex)})
			qt.Check(t, qt.Equals(r.verdict, tcxDrop))
			qt.Check(t, qt.Equals(n.drops(t), FabricDrops{NoPort: 1}))
		})
	}
}

// A host's packet that the port refuses is counted.
func TestFabricCountsFailure(t *testing.T) {
	n := newNetwork(t, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2})
	n.route(t, 0, 1, 2)
	nl := nstest.Netlink(t, n.ns)
	l, err := nl.LinkByIndex(n.ports[2].ifindex)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(nl.LinkSetDown(l)))
	r := n.ingress(t, 1, to(1).tcp(t, 0, 100), skBuff{})
	qt.Check(t, qt.Equals(r.verdict, tcxDrop))
	qt.Check(t, qt.Equals(n.drops(t), FabricDrops{Redirect: 1}))
}

// The egress port's qdisc is told the ingress port and the class, and the last port's mark is in
// the packet.
func TestFabricTellsEgress(t *testing.T) {
	const ingressMark = 0x50430000
	n := newNetwork(t, FabricPort{ID: 1, FromHost: true}, FabricPort{ID: 2}, FabricPort{ID: 39})
	n.route(t, 0, 2, 39)
	for _, c := range []struct {
		port    uint32
		verdict uint32
	}{{1, tcxDrop}, {2, tcxRedirect}, {39, tcxRedirect}} {
		for dscp := range uint8(64) {
			frame := to(2).tcp(t, dscp<<2|ect0, 100)
			r := n.ingress(t, c.port, frame, skBuff{CB: carry(1<<40, false), Mark: 0xffffffff,
				Priority: 99})
			qt.Assert(t, qt.Equals(r.verdict, c.verdict))
			qt.Assert(t, qt.Equals(r.skb.Mark, ingressMark|c.port))
			qt.Assert(t, qt.Equals(r.skb.Priority, uint32(dscp>>3)))
			qt.Assert(t, qt.Equals(r.skb.CB, carry(1<<40, false)),
				qt.Commentf("the ideal time goes on"))
		}
		checkMarks(t, func(frame []byte, verdict bool) result {
			return n.ingress(t, c.port, frame, skBuff{CB: carry(1, verdict)})
		}, c.verdict)
		// What looks like a verdict, but was not written by a port.
		frame := to(2).tcp(t, ect0, 100)
		r := n.ingress(t, c.port, frame, skBuff{CB: [5]uint32{carryMagic ^ 1<<8 | carryCE}})
		qt.Check(t, qt.DeepEquals(r.frame, frame))
	}
	for _, frame := range n.sent(t)[39] {
		qt.Assert(t, qt.Equals(checksum(frame), 0), qt.Commentf("clones are as the packet"))
	}
}

// paths are the ids of equal-cost ports.
func paths(n int) (ids []uint32) {
	for i := range n {
		ids = append(ids, uint32(10+i))
	}
	return ids
}

// newECMP has port 1 of node 0 and port 2 of node 1, both with equal-cost paths to host 2.
func newECMP(t *testing.T, seed0, seed1 uint32, n int) *network {
	t.Helper()
	ports := []FabricPort{{ID: 1, Node: 0, FromHost: true, Seed: seed0},
		{ID: 2, Node: 1, FromHost: true, Seed: seed1}}
	for _, id := range paths(n) {
		ports = append(ports, FabricPort{ID: id, Node: 2})
	}
	net := newNetwork(t, ports...)
	net.route(t, 0, 2, paths(n)...)
	net.route(t, 1, 2, paths(n)...)
	return net
}

// path is which of the equal-cost ports a frame leaves by.
func (n *network) path(t *testing.T, in uint32, frame []byte) int {
	t.Helper()
	n.ports[in].receive(t, vnetHeader{}, frame)
	sent := n.sent(t)
	qt.Assert(t, qt.HasLen(sent, 1))
	for id := range sent {
		return int(id - 10)
	}
	panic("unreachable")
}

// manyFlows are flows whose ports follow one another, as those of one client's connections do.
func manyFlows(n int) (flows []flow) {
	for i := range n {
		f := to(2)
		f.src = netip.AddrPortFrom(f.src.Addr(), uint16(32768+i))
		flows = append(flows, f)
	}
	return flows
}

// chiSquare999 is what the statistic of n equally likely paths exceeds once in a thousand times.
var chiSquare999 = map[int]float64{2: 10.83, 3: 13.82, 4: 16.27, 5: 18.47, 8: 24.32, 16: 37.70}

// checkSpread checks that so many packets are spread evenly.
func checkSpread(t *testing.T, counts []int, total int) {
	t.Helper()
	expected, chi2, sum := float64(total)/float64(len(counts)), 0.0, 0
	for _, c := range counts {
		chi2 += (float64(c) - expected) * (float64(c) - expected) / expected
		sum += c
	}
	qt.Check(t, qt.Equals(sum, total))
	qt.Check(t, qt.IsTrue(chi2 < chiSquare999[len(counts)]),
		qt.Commentf("chi-square %.1f of %v", chi2, counts))
}

func TestFabricSpreadsFlows(t *testing.T) {
	const packets = 1000
	for n := range chiSquare999 {
		t.Run(fmt.Sprintf("%d paths", n), func(t *testing.T) {
			net := newECMP(t, 1, 2, n)
			spread := func() {
				t.Helper()
				sent, counts := net.sent(t), make([]int, n)
				for i, id := range paths(n) {
					counts[i] = len(sent[id])
				}
				checkSpread(t, counts, packets)
			}
			for _, f := range manyFlows(packets) {
				net.ports[1].receive(t, vnetHeader{}, f.tcp(t, 0, 1))
			}
			spread()
			rnd := rand.New(rand.NewPCG(5, uint64(n)))
			for range packets {
				f := randomFlow(rnd)
				f.dst = netip.AddrPortFrom(to(2).dst.Addr(), f.dst.Port())
				net.ports[1].receive(t, vnetHeader{}, f.udp(t, 0, 1))
			}
			spread()
		})
	}
}

// All packets of a flow take one path, whatever is in them.
func TestFabricKeepsFlowOnPath(t *testing.T) {
	net := newECMP(t, 1, 2, 16)
	for i, f := range manyFlows(20) {
		tcp, udp := f.tcp(t, 0, 1), f.udp(t, 0, 1)
		tcpPath, udpPath, icmpPath := net.path(t, 1, tcp), net.path(t, 1, udp),
			net.path(t, 1, f.icmp(t, 0))
		for size := range 5 {
			segment := f.tcp(t, ce, size*100, func(ip *layers.IPv4, tcp *layers.TCP) {
				ip.TTL, ip.Id, tcp.Seq, tcp.PSH = 3, uint16(size), uint32(size)<<20, true
			})
			qt.Check(t, qt.Equals(net.path(t, 1, segment), tcpPath), qt.Commentf("TCP flow %d", i))
			qt.Check(t, qt.Equals(net.path(t, 1, f.udp(t, ce, size*100)), udpPath),
				qt.Commentf("UDP flow %d", i))
			qt.Check(t, qt.Equals(net.path(t, 1, f.icmp(t, uint16(size))), icmpPath),
				qt.Commentf("ping %d", i))
		}
	}
}

// Flows that one switch sends the same way part at the next, if that has another seed; with the
// same seed they would all stay together.
func TestFabricDoesNotPolarise(t *testing.T) {
	const n = 4
	for _, seeds := range [][2]uint32{{0, 1}, {1, 2}, {1, 1 << 31}, {7, 8}} {
		t.Run(fmt.Sprint(seeds), func(t *testing.T) {
			net := newECMP(t, seeds[0], seeds[1], n)
			second, total := [n][n]int{}, [n]int{}
			for _, f := range manyFlows(2000) {
				frame := f.tcp(t, 0, 1)
				first := net.path(t, 1, frame)
				second[first][net.path(t, 2, frame)]++
				total[first]++
			}
			for i := range n {
				checkSpread(t, second[i][:], total[i])
			}
		})
	}
	same := newECMP(t, 5, 5, n)
	for _, f := range manyFlows(20) {
		frame := f.tcp(t, 0, 1)
		qt.Assert(t, qt.Equals(same.path(t, 1, frame), same.path(t, 2, frame)))
	}
}

// A packet that waits in a switch is off its socket's account if a host-facing port cloned it: TCP
// small queues see the host's own queue only.
func TestFabricOrphansHostPackets(t *testing.T) {
	const datagrams, size, rate = 20, 1000, 250 // bytes, bytes/s: one leaves in four seconds
	for _, c := range []struct {
		fromHost bool
		waits    bool
	}{{true, false}, {false, true}} {
		t.Run(fmt.Sprintf("from host %v", c.fromHost), func(t *testing.T) {
			host, sw := nstest.New(t), nstest.New(t)
			_, b := nstest.Veth(t, host, sw, netip.MustParsePrefix("10.0.0.1/24"),
				netip.MustParsePrefix("10.0.0.2/24"))
			out := newTap(t, sw, "out", 2)
			nl := nstest.Netlink(t, sw)
			qt.Assert(t, qt.IsNil(nl.LinkSetGroup(b.Link, 1)))
			qt.Assert(t, qt.IsNil(nl.QdiscReplace(&netlink.Tbf{
				QdiscAttrs: netlink.QdiscAttrs{LinkIndex: out.ifindex, Parent: netlink.HANDLE_ROOT,
					Handle: netlink.MakeHandle(1, 0)},
				Rate:   rate,
				Buffer: netlink.Xmittime(rate, 2*size),
				Limit:  1 << 20,
			})))
			f, err := LoadFabric(fabricOptions)
			qt.Assert(t, qt.IsNil(err))
			t.Cleanup(func() { f.Close() })
			qt.Assert(t, qt.IsNil(f.AddPort(sw, b.Index(),
				FabricPort{ID: 1, FromHost: c.fromHost})))
			qt.Assert(t, qt.IsNil(f.SetRoute(0, 2, out.ifindex)))
			var socket int
			nstest.Do(t, host, func() (err error) {
				socket, err = sendDatagrams(b.Addr, datagrams, size)
				return err
			})
			t.Cleanup(func() { unix.Close(socket) })
			var waiting uint32
			nstest.Eventually(t, "the datagrams wait at the port", func() bool {
				qdiscs,
					err := nl.QdiscList(&netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Index: out.ifindex}})
				qt.Assert(t, qt.IsNil(err))
				stats := qdiscs[0].Attrs().Statistics
				waiting = stats.Queue.Qlen
				return waiting+stats.Basic.Packets == datagrams
			})
			qt.Assert(t, qt.IsTrue(waiting > datagrams/2), qt.Commentf("%d datagrams", waiting))
			unsent, err := unix.IoctlGetInt(socket, unix.SIOCOUTQ)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(unsent >= size*datagrams/2, c.waits),
				qt.Commentf("%d bytes", unsent))
			qt.Check(t, qt.Equals(unsent == 0, !c.waits), qt.Commentf("%d bytes", unsent))
		})
	}
}

// sendDatagrams returns the socket that it sent by.
func sendDatagrams(to netip.Addr, n, size int) (int, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make socket: %w", err)
	}
	for range n {
		if err := unix.Sendto(s, make([]byte, size), 0,
			&unix.SockaddrInet4{Addr: to.As4(), Port: 7}); err != nil {
			return -1, errors.Join(fmt.Errorf("send datagram: %w", err), unix.Close(s))
		}
	}
	return s, nil
}

// TestFabricWithoutSamples: a port's packets pass no program for CNMs if there are none.
func TestFabricWithoutSamples(t *testing.T) {
	nstest.RequireRoot(t)
	for unsampled, want := range map[bool]int{false: 2, true: 1} {
		o := fabricOptions
		o.Unsampled = unsampled
		f, err := LoadFabric(o)
		qt.Assert(t, qt.IsNil(err))
		t.Cleanup(func() { f.Close() })
		ns := nstest.New(t)
		dev := newTap(t, ns, "port1", 1)
		qt.Assert(t, qt.IsNil(f.AddPort(ns, dev.ifindex, FabricPort{ID: 1})))
		qt.Check(t, qt.HasLen(f.links, want), qt.Commentf("unsampled %v", unsampled))
	}
}
