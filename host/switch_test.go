// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
)

func wredAt(name string, w host.WRED) host.SwitchPort {
	return host.SwitchPort{Interface: name, WRED: &w}
}

func npecnAt(name string, rate config.Rate) host.SwitchPort {
	return host.SwitchPort{Interface: name, NPECN: &host.NPECN{Rate: rate}}
}

func switchUp(t *testing.T, ports ...host.SwitchPort) []host.Change {
	t.Helper()
	changes, err := host.New().SwitchUp(context.Background(), ports)
	qt.Assert(t, qt.IsNil(err))
	return changes
}

func switchDown(t *testing.T, interfaces ...string) []host.Change {
	t.Helper()
	changes, err := host.New().SwitchDown(context.Background(), interfaces...)
	qt.Assert(t, qt.IsNil(err))
	return changes
}

// switchPort returns the only switch port.
func switchPort(t *testing.T) host.SwitchPortStatus {
	t.Helper()
	ports, err := host.New().SwitchStatus()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(ports, 1))
	return ports[0]
}

// slowHTB gives the device a root qdisc that sends a packet, and then 100 bytes a second.
func slowHTB(t *testing.T, e nstest.End) {
	t.Helper()
	nl := nstest.Netlink(t, e.NS)
	root := netlink.NewHtb(netlink.QdiscAttrs{
		LinkIndex: e.Index(), Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0),
	})
	root.Defcls = 1
	qt.Assert(t, qt.IsNil(nl.QdiscReplace(root)))
	qt.Assert(t, qt.IsNil(nl.ClassReplace(netlink.NewHtbClass(
		netlink.ClassAttrs{
			LinkIndex: e.Index(), Parent: netlink.MakeHandle(1, 0),
			Handle: netlink.MakeHandle(1, 1),
		},
		netlink.HtbClassAttrs{Rate: 800, Buffer: 1500, Cbuffer: 1500},
	))))
}

const (
	notECT   = 0
	ect0     = 2
	ce       = 3
	ectMask  = 3
	sinkPort = 9
	payload  = 1000
	frame    = payload + 8 + 20 + 14 // UDP, IPv4, Ethernet
)

// sendUDP sends datagrams to the peer, each with its number first.
func sendUDP(t *testing.T, peer nstest.End, n int, tos int) {
	t.Helper()
	udp, err := net.ListenUDP("udp4", nil)
	qt.Assert(t, qt.IsNil(err))
	defer udp.Close()
	raw, err := udp.SyscallConn()
	qt.Assert(t, qt.IsNil(err))
	var set error
	qt.Assert(t, qt.IsNil(raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, tos)
	})))
	qt.Assert(t, qt.IsNil(set))
	for i := range n {
		data := make([]byte, payload)
		data[0] = byte(i)
		_, err := udp.WriteToUDPAddrPort(data, netip.AddrPortFrom(peer.Addr, sinkPort))
		qt.Assert(t, qt.IsNil(err))
	}
}

// sink receives datagrams at the peer.
type sink struct{ *net.UDPConn }

func newSink(t *testing.T, peer nstest.End) sink {
	t.Helper()
	var s sink
	nstest.Do(t, peer.NS, func() (err error) {
		s.UDPConn, err = net.ListenUDP("udp4", &net.UDPAddr{Port: sinkPort})
		return err
	})
	t.Cleanup(func() { s.Close() })
	raw, err := s.SyscallConn()
	qt.Assert(t, qt.IsNil(err))
	var set error
	qt.Assert(t, qt.IsNil(raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	})))
	qt.Assert(t, qt.IsNil(set))
	return s
}

// receive returns the numbers and ECN fields of n datagrams, and the time from the first to the
// last.
func (s sink) receive(t *testing.T, n int) (numbers, ecn []int, took time.Duration) {
	t.Helper()
	qt.Assert(t, qt.IsNil(s.SetReadDeadline(time.Now().Add(20*time.Second))))
	var first time.Time
	for i := range n {
		data, oob := make([]byte, payload), make([]byte, 64)
		_, oobn, _, _, err := s.ReadMsgUDPAddrPort(data, oob)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("datagram %d of %d", i, n))
		if i == 0 {
			first = time.Now()
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.HasLen(messages, 1))
		numbers = append(numbers, int(data[0]))
		ecn = append(ecn, int(messages[0].Data[0])&ectMask)
	}
	return numbers, ecn, time.Since(first)
}

func upTo(n int) []int {
	var out []int
	for i := range n {
		out = append(out, i)
	}
	return out
}

// quiet stops what the kernel sends on its own, which would be counted too: ARP, and IPv6's
// searches for routers and neighbours.
func quiet(t *testing.T, here, peer nstest.End) {
	t.Helper()
	off := "/proc/sys/net/ipv6/conf/" + here.Link.Attrs().Name + "/disable_ipv6"
	if err := os.WriteFile(off, []byte("1"), 0); !errors.Is(err, os.ErrNotExist) {
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Assert(t, qt.IsNil(nstest.Netlink(t, here.NS).NeighSet(&netlink.Neigh{
		LinkIndex: here.Index(), State: netlink.NUD_PERMANENT, IP: peer.Addr.AsSlice(),
		HardwareAddr: peer.MAC,
	})))
}

func TestSwitchPortsAreChecked(t *testing.T) {
	for _, c := range []struct {
		port host.SwitchPort
		want string
	}{
		{host.SwitchPort{Interface: "e"}, "switch port e: want either WRED or NP-ECN"},
		{host.SwitchPort{Interface: "e", WRED: &host.WRED{}, NPECN: &host.NPECN{}}, ".*either.*"},
		{wredAt("e", host.WRED{KMin: 2, KMax: 1, PMax: 1}), "min 2B is above max 1B.*"},
		{wredAt("e", host.WRED{KMin: 2, KMax: 2}), "probability 0: .*"},
		{wredAt("e", host.WRED{KMin: 2, KMax: 2, PMax: 2}), "probability 2: .*"},
		{wredAt("e", host.WRED{KMax: 2e9, PMax: 1}), "queues of 2GB and 0B: .*"},
		{wredAt("e", host.WRED{K: 2e9, PMax: 1}), "queues of 0B and 2GB: .*"},
		{npecnAt("e", 0), "rate 0bps: .*"},
		{npecnAt("e", 900e9), "rate 900Gbps: .*"},
		{
			host.SwitchPort{Interface: "e", NPECN: &host.NPECN{Rate: 1e9, Buffer: 1}},
			"buffer 1B: .*",
		},
	} {
		_, err := host.New().SwitchUp(context.Background(), []host.SwitchPort{c.port})
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
}

func TestSwitchWRED(t *testing.T) {
	here, peer := wire(t)
	port := wredAt("veth0", host.WRED{KMin: 100, KMax: 100, PMax: 1, K: 100})
	_, err := host.New().SwitchUp(context.Background(), []host.SwitchPort{port})
	qt.Assert(t, qt.ErrorMatches(err,
		"the root qdisc of veth0 is noqueue, which shows no queue to mark by: tc qdisc replace .*"))
	_, err = os.Stat(host.DefaultRoot)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))

	quiet(t, here, peer)
	slowHTB(t, here)
	is := func(what string) []host.Change {
		return []host.Change{{Component: "switch_veth0", What: what}}
	}
	qt.Check(t, qt.DeepEquals(switchUp(t, port), is(host.Added)))
	qt.Check(t, qt.DeepEquals(switchUp(t, port), is(host.Kept)))
	sendUDP(t, peer, 3, notECT) // two spend the burst, one queues
	before := switchPort(t)
	qt.Check(t, qt.Equals(before.Qdisc, "htb"))
	qt.Check(t, qt.Equals(before.QueueBytes, frame))
	sendUDP(t, peer, 3, ect0)
	sendUDP(t, peer, 4, notECT)
	after := switchPort(t)
	qt.Check(t, qt.Equals(after.Counts["marked"]-before.Counts["marked"], 3))
	qt.Check(t, qt.Equals(after.Counts["dropped"]-before.Counts["dropped"], 4))
	qt.Check(t, qt.IsTrue(after.OK()), qt.Commentf("%+v", after))

	// A change keeps the counters.
	port.WRED.K = 0
	qt.Check(t, qt.DeepEquals(switchUp(t, port), is(host.Changed)))
	sendUDP(t, peer, 2, notECT)
	qt.Check(t, qt.Equals(switchPort(t).Counts["dropped"], after.Counts["dropped"]))

	// pcn host up leaves ports alone, and neither misses nor wants them.
	qt.Check(t, qt.DeepEquals(up(t, "stamp: {interfaces: [veth0]}\n"),
		map[string]string{"stamp": host.Added}))
	s, err := host.New().Status(context.Background(), parse(t, "stamp: {interfaces: [veth0]}\n"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
	qt.Check(t, qt.HasLen(s.Components, 2))

	server := httptest.NewServer(host.New().Handler(0))
	defer server.Close()
	response, err := http.Get(server.URL + "/metrics")
	qt.Assert(t, qt.IsNil(err))
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(string(text),
		fmt.Sprintf("pcn_events_total{component=\"switch_veth0\",event=\"marked\"} %d\n",
			after.Counts["marked"])))

	// Without a queue it marks nothing, and says so.
	nl := nstest.Netlink(t, here.NS)
	qt.Assert(t, qt.IsNil(nl.QdiscDel(netlink.NewHtb(netlink.QdiscAttrs{
		LinkIndex: here.Index(), Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0),
	}))))
	qt.Check(t, qt.IsFalse(func() bool { p := switchPort(t); return p.OK() }()))

	_, err = host.New().SwitchDown(context.Background(), "eth9")
	qt.Check(t, qt.ErrorMatches(err, "eth9 is no switch port: .*"))
	_, err = host.New().SwitchStatus("eth9")
	qt.Check(t, qt.ErrorMatches(err, "eth9 is no switch port: .*"))
	qt.Check(t, qt.DeepEquals(switchDown(t, "veth0"), is(host.Removed)))
	qt.Check(t, qt.HasLen(switchDown(t), 0))
	qt.Check(t, qt.Equals(statusOf(t).Components[0].Name, "stamp"))
}

// pairs lists the veths of NP-ECN ports.
func pairs(t *testing.T, e nstest.End) []string {
	t.Helper()
	links, err := nstest.Netlink(t, e.NS).LinkList()
	qt.Assert(t, qt.IsNil(err))
	var names []string
	for _, l := range links {
		if name := l.Attrs().Name; len(name) > 5 && name[:5] == "pcnsw" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A packet is marked if others wait behind it when it starts: of a burst, all but the first, which
// starts when it comes, and the last.
func TestSwitchNPECN(t *testing.T) {
	vmtest.NeedsDebian(t) // no other packet comes at that moment
	here, peer := wire(t)
	quiet(t, here, peer)
	s := newSink(t, peer)
	is := func(what string) []host.Change {
		return []host.Change{{Component: "switch_veth0", What: what}}
	}
	pairOf := func(g string) []string {
		name := fmt.Sprintf("pcnsw%d%s", here.Index(), g)
		return []string{name, name + "r"}
	}
	const rate = 1_000_000
	slow := npecnAt("veth0", rate)
	qt.Check(t, qt.DeepEquals(switchUp(t, slow), is(host.Added)))
	qt.Check(t, qt.DeepEquals(switchUp(t, slow), is(host.Kept)))
	qt.Check(t, qt.DeepEquals(pairs(t, here), pairOf("a")))

	const packets = 10
	const packetTime = frame * 8 * time.Second / rate
	burst := func() {
		t.Helper()
		before := switchPort(t).Counts
		sendUDP(t, peer, packets, ect0)
		numbers, ecn, took := s.receive(t, packets)
		qt.Check(t, qt.DeepEquals(numbers, upTo(packets)))
		qt.Check(t, qt.DeepEquals(ecn, slices.Concat(
			[]int{ect0}, slices.Repeat([]int{ce}, packets-2), []int{ect0})))
		// the first is on its way while it is counted from
		qt.Check(t, qt.IsTrue(took > (packets-2)*packetTime), qt.Commentf("took %s", took))
		after := switchPort(t).Counts
		qt.Check(t, qt.Equals(after["marked"]-before["marked"], packets-2))
		qt.Check(t, qt.Equals(after["passed"]-before["passed"], 2))
	}
	burst()

	sendUDP(t, peer, packets, notECT)
	_, ecn, _ := s.receive(t, packets)
	qt.Check(t, qt.DeepEquals(ecn, slices.Repeat([]int{notECT}, packets)))
	// DSCP 48 is control: ahead of data, and never marked
	sendUDP(t, peer, packets, 48<<2|ect0)
	_, ecn, _ = s.receive(t, packets)
	qt.Check(t, qt.DeepEquals(ecn, slices.Repeat([]int{ect0}, packets)))
	p := switchPort(t)
	qt.Check(t, qt.Equals(p.Counts["not_ecn"], packets-2))
	qt.Check(t, qt.Equals(p.Counts["dropped"], 0))
	qt.Check(t, qt.Equals(p.Counts["superpackets"], 0))
	qt.Check(t, qt.IsTrue(p.OK()), qt.Commentf("%+v", p))
	qt.Check(t, qt.DeepEquals(p.Where, []string{"veth0"}))

	// What the buffer does not hold is dropped. The first packet leaves it at once.
	small := npecnAt("veth0", rate)
	small.NPECN.Buffer = 10e3
	qt.Check(t, qt.DeepEquals(switchUp(t, small), is(host.Changed)))
	qt.Check(t, qt.DeepEquals(pairs(t, here), pairOf("b")))
	sendUDP(t, peer, 20, ect0)
	const held = 1 + 10_000/frame
	s.receive(t, held)
	qt.Check(t, qt.Equals(switchPort(t).Counts["dropped"], 20-held))

	// A change that fails leaves all as it was.
	_, err := host.New().SwitchUp(context.Background(),
		[]host.SwitchPort{slow, wredAt("eth9", host.WRED{KMax: 1, PMax: 1})})
	qt.Check(t, qt.ErrorMatches(err, "interface eth9: .*"))
	qt.Check(t, qt.DeepEquals(pairs(t, here), pairOf("b")))
	qt.Check(t, qt.DeepEquals(switchUp(t, small), is(host.Kept)))

	// A change that was killed is finished by the next.
	pinsOf, err := host.PinsOf("switch_veth0")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(pinsOf, "state"))))
	broken := switchPort(t)
	qt.Check(t, qt.IsFalse(broken.OK()))
	qt.Check(t, qt.StringContains(broken.Problems[0], "run pcn host switch up or down"))
	qt.Check(t, qt.DeepEquals(switchUp(t, slow), is(host.Changed)))
	qt.Check(t, qt.DeepEquals(pairs(t, here), pairOf("a")))
	burst()

	// A pair that somebody removed is made anew.
	nl := nstest.Netlink(t, here.NS)
	l, err := nl.LinkByName(pairOf("a")[0])
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(nl.LinkDel(l)))
	gone := switchPort(t)
	qt.Check(t, qt.IsFalse(gone.OK()))
	qt.Check(t, qt.DeepEquals(switchUp(t, slow), is(host.Changed)))
	burst()

	// To WRED.
	slowHTB(t, here)
	wred := wredAt("veth0", host.WRED{KMin: 1, KMax: 1, PMax: 1})
	qt.Check(t, qt.DeepEquals(switchUp(t, wred), is(host.Changed)))
	qt.Check(t, qt.HasLen(pairs(t, here), 0))
}

// Down takes the pairs of its own ports away, and leaves those of others.
func TestSwitchDownTakesPairs(t *testing.T) {
	here, _ := wire(t)
	nl := nstest.Netlink(t, here.NS)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "other"
	other := &netlink.Veth{LinkAttrs: attrs, PeerName: "far"}
	qt.Assert(t, qt.IsNil(nl.LinkAdd(other)))
	t.Cleanup(func() { nl.LinkDel(other) })
	switchUp(t, npecnAt("veth0", 1e9), npecnAt("other", 1e9))
	qt.Check(t, qt.HasLen(pairs(t, here), 4))
	switchDown(t, "other")
	name := fmt.Sprintf("pcnsw%da", here.Index())
	qt.Check(t, qt.DeepEquals(pairs(t, here), []string{name, name + "r"}))
	switchDown(t)
	qt.Check(t, qt.HasLen(pairs(t, here), 0))
}

// Interfaces of VLANs have a dot in their name, which names of pins may not have.
func TestSwitchAtVLAN(t *testing.T) {
	here, _ := wire(t)
	nl := nstest.Netlink(t, here.NS)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "veth0.7"
	like := &netlink.Veth{LinkAttrs: attrs, PeerName: "veth1.7"}
	qt.Assert(t, qt.IsNil(nl.LinkAdd(like)))
	t.Cleanup(func() { nl.LinkDel(like) })
	qt.Check(t, qt.DeepEquals(switchUp(t, npecnAt("veth0.7", 1e9)),
		[]host.Change{{Component: "switch_veth0:7", What: host.Added}}))
	p := switchPort(t)
	qt.Check(t, qt.Equals(p.Interface, "veth0.7"))
	qt.Check(t, qt.IsTrue(p.OK()), qt.Commentf("%+v", p))
	_, err := host.New().Down(context.Background())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(pairs(t, here), 0))
}

// Ports of two namespaces are apart, though their interfaces have one name. Down --all takes both
// away, and a namespace that is gone leaves none.
func TestSwitchInTwoNamespaces(t *testing.T) {
	here, _ := wire(t)
	blue, far := named(t, "blue"), nstest.New(t)
	blueEnd, farEnd := nstest.Veth(t, blue, far, netip.MustParsePrefix("10.8.0.1/24"),
		netip.MustParsePrefix("10.8.0.2/24"))
	slowHTB(t, here)
	slowHTB(t, blueEnd)
	port := wredAt("veth0", host.WRED{KMin: 100, KMax: 100, PMax: 1})
	upBoth := func() {
		t.Helper()
		switchUp(t, port)
		changes := changesIn(t, "blue", func(h *host.Host) ([]host.Change, error) {
			return h.SwitchUp(context.Background(), []host.SwitchPort{port})
		})
		qt.Check(t, qt.DeepEquals(whats(changes),
			map[string]string{"switch_veth0": host.Added}))
	}
	upBoth()
	qt.Check(t, qt.ContentEquals(componentNames(t),
		[]string{"switch_veth0 veth0", "switch_veth0@blue veth0"}))
	p := switchPort(t) // of this namespace only
	qt.Check(t, qt.IsTrue(p.OK()), qt.Commentf("%+v", p))
	switchDown(t)
	qt.Check(t, qt.DeepEquals(componentNames(t), []string{"switch_veth0@blue veth0"}))

	switchUp(t, port)
	changes := changesIn(t, "", func(h *host.Host) ([]host.Change, error) {
		return h.DownAll(context.Background())
	})
	qt.Check(t, qt.DeepEquals(whats(changes), map[string]string{
		"switch_veth0": host.Removed, "switch_veth0 in blue": host.Removed,
	}))
	leavesNothing(t)

	upBoth()
	blue.Close()
	qt.Assert(t, qt.IsNil(netns.DeleteNamed("blue")))
	// A netlink connection of this test still holds the namespace, so its interface goes by hand.
	qt.Assert(t, qt.IsNil(nstest.Netlink(t, far).LinkDel(farEnd.Link)))
	changes = upIn(t, "", "stamp: {interfaces: [veth0]}\n")
	qt.Check(t, qt.Equals(changes["switch_veth0 in blue"].What, host.Removed))
	qt.Check(t, qt.ContentEquals(componentNames(t), []string{"stamp veth0", "switch_veth0 veth0"}))
}

func TestSwitchAtRenamedInterface(t *testing.T) {
	here, _ := wire(t)
	slowHTB(t, here)
	switchUp(t, wredAt("veth0", host.WRED{KMin: 100, KMax: 100, PMax: 1}))
	nl := nstest.Netlink(t, here.NS)
	qt.Assert(t, qt.IsNil(nl.LinkSetDown(here.Link)))
	qt.Assert(t, qt.IsNil(nl.LinkSetName(here.Link, "eth5")))
	qt.Assert(t, qt.IsNil(nl.LinkSetUp(here.Link)))
	p := switchPort(t)
	qt.Check(t, qt.SliceContains(p.Problems, "interface veth0 is now called eth5: "+
		"run pcn host switch down veth0, and up eth5"))
	switchDown(t, "veth0")
	leavesNothing(t)
}
