// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"encoding/binary"
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

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

// seen checks what an operator sees of a component: these counters and no others count anything, in
// the status and in the metrics. never are those that no host can provoke.
func seen(t *testing.T, component string, want map[string]uint64, never ...string) {
	t.Helper()
	server := httptest.NewServer(host.New().Handler(0))
	defer server.Close()
	r, err := http.Get(server.URL + "/metrics")
	qt.Assert(t, qt.IsNil(err))
	defer r.Body.Close()
	metrics, err := io.ReadAll(r.Body)
	qt.Assert(t, qt.IsNil(err))
	s := statusOf(t)
	i := slices.IndexFunc(s.Components, func(c host.ComponentStatus) bool {
		return c.Name == component
	})
	qt.Assert(t, qt.IsTrue(i >= 0), qt.Commentf("no %s in %+v", component, s))
	for name, n := range s.Components[i].Counts {
		_, provoked := want[name]
		qt.Check(t, qt.IsTrue(provoked || slices.Contains(never, name)),
			qt.Commentf("%s is not tested", name))
		qt.Check(t, qt.Equals(n, want[name]), qt.Commentf("%s of %s", name, component))
		line := fmt.Sprintf("pcn_events_total{component=%q,event=%q} %d\n",
			component, name, want[name])
		qt.Check(t, qt.StringContains(string(metrics), line))
	}
	for name := range want {
		_, shown := s.Components[i].Counts[name]
		qt.Check(t, qt.IsTrue(shown), qt.Commentf("%s of %s is not shown", name, component))
	}
}

// pinnedProgram runs a program of a component on packets, as if they came in at the device.
type pinnedProgram struct{ component, program string }

func (p pinnedProgram) run(t *testing.T, ifindex int, frame []byte) {
	t.Helper()
	pins, err := host.PinsOf(p.component)
	qt.Assert(t, qt.IsNil(err))
	program, err := ebpf.LoadPinnedProgram(filepath.Join(pins, "prog_"+p.program), nil)
	qt.Assert(t, qt.IsNil(err))
	defer program.Close()
	var skb [192]byte // struct __sk_buff of linux/bpf.h
	const ifindexOffset = 40
	binary.NativeEndian.PutUint32(skb[ifindexOffset:], uint32(ifindex))
	_, err = program.Run(&ebpf.RunOptions{Data: frame, Context: skb[:]})
	qt.Assert(t, qt.IsNil(err))
}

// rpConfig has a reaction point with these settings.
func rpConfig(settings string) string {
	return "line_rate: 1Gbps\ncontrols: {pcn: {}}\nrp: {interfaces: [veth0]" + settings + "}\n"
}

// Each cause for which a reaction point drops a CNP is seen under its name, and each kind that it
// obeys.
func TestEveryCounterOfRPIsSeen(t *testing.T) {
	here, peer := wire(t)
	rp := pinnedProgram{"rp", "rp_ingress"}
	hear := func(frame []byte) { rp.run(t, here.Index(), frame) }
	up(t, rpConfig(""))
	c := connect(t, peer, "pcn")
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	remote := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	sound := cnp.CNP{
		Src: remote.Addr(), Dst: local.Addr(), FlowSrcPort: local.Port(), FlowDstPort: remote.Port(),
		Decrease: true, RecRateMbps: 100,
	}
	seq, ack := sequence(t, c.Conn.(*net.TCPConn))
	sound.Saw(seq, ack)
	frame := func(change func(*cnp.CNP)) []byte {
		one := sound
		if change != nil {
			change(&one)
		}
		b, err := one.MarshalBinary()
		qt.Assert(t, qt.IsNil(err))
		return b
	}
	times := func(n int, frame []byte) {
		for range n {
			hear(frame)
		}
	}

	// Each cause another number of times, so that none is shown under another's name.
	times(1, frame(nil))
	increases := func(n int) {
		for range n {
			seq++ // another packet
			hear(frame(func(c *cnp.CNP) {
				c.Decrease, c.RecRateMbps = false, 0
				c.Saw(seq, ack)
			}))
		}
	}
	increases(2)
	times(15, frame(func(c *cnp.CNP) { c.Decrease = false }))
	times(3, frame(func(c *cnp.CNP) { c.UDP = true }))
	times(17, frame(func(c *cnp.CNP) { c.Saw(seq+1<<30, ack) }))
	const addresses = 12
	elsewhere := slices.Insert(frame(nil), addresses, 0x81, 0, 0, 20) // VLAN 20
	times(18, elsewhere)
	malformed := frame(nil)
	malformed[len(malformed)-cnp.FrameLen+43] = 1 // flags of the BTH
	times(4, malformed)
	times(5, frame(func(c *cnp.CNP) { c.FlowSrcPort++ }))
	damaged := frame(nil)
	damaged[len(damaged)-1] ^= 1
	times(6, damaged)
	const loopback = 1
	for range 7 {
		rp.run(t, loopback, frame(nil))
	}
	up(t, rpConfig(", prefixes: [192.0.2.0/24]"))
	times(8, frame(nil))

	up(t, rpConfig(", require_tag: true, tag_window: 60s"))
	key := cnp.Key{1, 2, 3}
	_, err := host.New().SetKey(0, key, tc.KeyAccepted)
	qt.Assert(t, qt.IsNil(err))
	signed := func(key cnp.Key, slot int, at time.Time) []byte {
		return frame(func(c *cnp.CNP) { c.Sign(key, slot, at) })
	}
	times(9, frame(nil))
	times(10, signed(key, 1, time.Now()))
	times(11, signed(cnp.Key{9}, 0, time.Now()))
	times(12, signed(key, 0, time.Now().Add(-time.Hour)))
	times(1+13, signed(key, 0, time.Now()))

	up(t, rpConfig(", cnp_interval: 1s, cnp_burst: 1"))
	times(1+14, frame(nil))
	increases(16)

	seen(t, "rp", map[string]uint64{
		"cnp_decrease": 1 + 1 + 1, "cnp_increase": 2, "cnp_udp": 3, "malformed": 4, "no_flow": 5,
		"bad_icrc": 6, "interface": 7, "prefix": 8, "unsigned": 9, "no_key": 10, "bad_tag": 11,
		"stale": 12, "replayed": 13, "rate_limited": 14, "cnp_ce_lost": 15,
		"rise_limited": 16, "unseen": 17, "elsewhere": 18,
	}, "cnp_hold" /* the lab's TCD */)
}

// sequence returns the next sequence number that a connection sends, and that it expects.
func sequence(t *testing.T, c *net.TCPConn) (seq, ack uint32) {
	t.Helper()
	const receiveQueue, sendQueue = 1, 2 // of linux/tcp.h
	raw, err := c.SyscallConn()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(raw.Control(func(fd uintptr) {
		repair := func(on int) error {
			return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_REPAIR, on)
		}
		of := func(queue int) uint32 {
			qt.Assert(t, qt.IsNil(unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP,
				unix.TCP_REPAIR_QUEUE, queue)))
			n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUEUE_SEQ)
			qt.Assert(t, qt.IsNil(err))
			return uint32(n)
		}
		qt.Assert(t, qt.IsNil(repair(1)))
		seq, ack = of(sendQueue), of(receiveQueue)
		qt.Assert(t, qt.IsNil(repair(-1))) // no window probe
	})))
	return seq, ack
}

// dataFrame is a TCP segment with data from the peer.
func dataFrame(
	t *testing.T, here, peer nstest.End, port uint16, change func(*layers.IPv4, *layers.TCP),
) []byte {
	t.Helper()
	const ect0 = 2
	ip := &layers.IPv4{
		Version: 4, TTL: 64, TOS: ect0, Protocol: layers.IPProtocolTCP,
		SrcIP: peer.Addr.AsSlice(), DstIP: here.Addr.AsSlice(),
	}
	segment := &layers.TCP{SrcPort: layers.TCPPort(port), DstPort: 9, ACK: true}
	if change != nil {
		change(ip, segment)
	}
	qt.Assert(t, qt.IsNil(segment.SetNetworkLayerForChecksum(ip)))
	return serialize(t, here, peer, layers.EthernetTypeIPv4,
		ip, segment, gopacket.Payload(make([]byte, 1000)))
}

func serialize(
	t *testing.T, here, peer nstest.End, etherType layers.EthernetType,
	ls ...gopacket.SerializableLayer,
) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	eth := &layers.Ethernet{SrcMAC: peer.MAC, DstMAC: here.MAC, EthernetType: etherType}
	qt.Assert(t, qt.IsNil(gopacket.SerializeLayers(buf,
		gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		append([]gopacket.SerializableLayer{eth}, ls...)...)))
	return buf.Bytes()
}

// unreadable is IPv6 whose extension headers are not looked into: one of hop-by-hop options, then
// one of mobility.
func unreadable(t *testing.T, here, peer nstest.End) []byte {
	const mobility = 135
	ip := &layers.IPv6{
		Version: 6, NextHeader: layers.IPProtocolIPv6HopByHop, HopLimit: 64,
		SrcIP: net.ParseIP("2001:db8::2"), DstIP: net.ParseIP("2001:db8::1"),
	}
	hopByHop := []byte{mobility, 0, 1, 4, 0, 0, 0, 0} // padding
	return serialize(t, here, peer, layers.EthernetTypeIPv6,
		ip, gopacket.Payload(append(hopByHop, make([]byte, 100)...)))
}

// Each counter of a notification point is seen under its name. The kernel makes timers of BPF
// programs with cmpxchg16b only, which the microVM lacks: so here no flow falls silent, and each
// that is to be watched for it is counted as no_timer, when it begins and with each of its CNPs.
func TestEveryCounterOfNPIsSeen(t *testing.T) {
	here, peer := wire(t)
	np := pinnedProgram{"np", "np_ingress"}
	const window = time.Millisecond
	up(t, fmt.Sprintf("np: {interfaces: [veth0], T: %v}\n", window))
	receive := func(frame []byte) { np.run(t, here.Index(), frame) }
	data := func(port uint16) []byte { return dataFrame(t, here, peer, port, nil) }
	// the first packet makes no entry, the second opens the window
	answers := func(n int, frame []byte) {
		receive(frame)
		receive(frame)
		for range n {
			time.Sleep(2 * window)
			receive(frame)
		}
	}
	marked := dataFrame(t, here, peer, 2, func(ip *layers.IPv4, _ *layers.TCP) { ip.TOS = 3 })
	answers(2, marked)
	answers(3, data(3))
	nl := nstest.Netlink(t, here.NS)
	l, err := nl.LinkByIndex(here.Index())
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(nl.LinkSetDown(l)))
	answers(4, data(4))
	qt.Assert(t, qt.IsNil(nl.LinkSetUp(l)))
	for range 5 {
		receive(unreadable(t, here, peer))
	}
	fin := func(_ *layers.IPv4, tcp *layers.TCP) { tcp.FIN = true }
	for port := range uint16(6) {
		receive(data(10 + port))
		receive(data(10 + port))
		receive(dataFrame(t, here, peer, 10+port, fin))
	}
	const flows, cnps = 3 + 6, 2 + 3 + 4
	seen(t, "np", map[string]uint64{
		"cnp_decrease": 2, "cnp_increase": 3, "no_clone": 4, "extensions": 5, "ended": 6,
		"no_timer": flows + cnps,
	},
		"busy",     // package tc tests it
		"forged",   // the same
		"idle",     // see above; package tc tests it
		"cnp_hold", // the lab's TCD
		"no_flow",  // the kernel lacks memory for another entry
	)
}

// Without a timer, packets of other flows remove the silent ones.
func TestSilentFlowsGoWithoutATimer(t *testing.T) {
	here, peer := wire(t)
	np := pinnedProgram{"np", "np_ingress"}
	const idle = 100 * time.Millisecond
	up(t, fmt.Sprintf("np: {interfaces: [veth0], T: 1ms, idle: %v}\n", idle))
	begin := func(port uint16) {
		for range 2 { // the first packet makes no entry
			np.run(t, here.Index(), dataFrame(t, here, peer, port, nil))
		}
	}
	for port := range uint16(3) {
		begin(2 + port)
	}
	qt.Assert(t, qt.Equals(entries(t, "map_np_flows"), 3))
	time.Sleep(2 * idle)
	begin(9)
	qt.Check(t, qt.Equals(entries(t, "map_np_flows"), 1))
}

// entries counts those of the pinned maps of a name.
func entries(t *testing.T, name string) int {
	t.Helper()
	n := 0
	for _, path := range pinnedFiles(t) {
		if filepath.Base(path) != name {
			continue
		}
		m, err := ebpf.LoadPinnedMap(path, nil)
		qt.Assert(t, qt.IsNil(err))
		var key, value []byte
		it := m.Iterate()
		for it.Next(&key, &value) {
			n++
		}
		qt.Check(t, qt.IsNil(it.Err()))
		m.Close()
	}
	return n
}

// The counters that no host can provoke, and all others, are shown by the names that the map has in
// C: here each has its own number.
func TestCountersAreShownByTheirNames(t *testing.T) {
	wire(t)
	up(t, small)
	for component, names := range map[string][]string{
		"np": {
			"cnp_decrease", "cnp_increase", "cnp_hold", "no_flow", "no_clone", "extensions", "ended",
			"idle", "no_timer", "busy", "forged",
		},
		"rp": {
			"cnp_decrease", "cnp_increase", "cnp_hold", "cnp_ce_lost", "cnp_udp", "malformed",
			"no_flow", "interface", "prefix", "bad_icrc", "unsigned", "no_key", "bad_tag", "stale", "replayed", "rate_limited",
			"rise_limited", "unseen", "elsewhere",
		},
	} {
		pins, err := host.PinsOf(component)
		qt.Assert(t, qt.IsNil(err))
		m, err := ebpf.LoadPinnedMap(filepath.Join(pins, "map_"+component+"_counts"), nil)
		qt.Assert(t, qt.IsNil(err))
		defer m.Close()
		values := make([][]byte, ebpf.MustPossibleCPU())
		for cpu := range values {
			values[cpu] = make([]byte, m.ValueSize())
		}
		want := map[string]uint64{}
		for i, name := range names {
			want[name] = uint64(100 + i)
			binary.NativeEndian.PutUint64(values[i%len(values)][8*i:], want[name])
		}
		qt.Assert(t, qt.IsNil(m.Put(uint32(0), values)))
		seen(t, component, want)
	}
}

// Connections that get a cgroup's control are counted, and those whose control is gone.
func TestEveryCounterOfCgroupIsSeen(t *testing.T) {
	_, peer := wire(t)
	const path = "/sys/fs/cgroup/pcn_test_counts"
	qt.Assert(t, qt.IsNil(os.Mkdir(path, 0o755)))
	t.Cleanup(func() {
		os.WriteFile("/sys/fs/cgroup/cgroup.procs", []byte("0"), 0)
		nstest.Eventually(t, "the cgroup goes", func() bool { return os.Remove(path) == nil })
	})
	line, err := scheme.Builtin().Lookup("pfc")
	qt.Assert(t, qt.IsNil(err))
	control, err := loader.Register(loader.Registration{
		Scheme: line, Network: scheme.Network{LineRateBps: 1e9},
	})
	qt.Assert(t, qt.IsNil(err))
	defer control.Close()
	up(t, "cgroups: [{path: "+path+", control: pcn_line}]\n")
	l := echo(t, peer) // in no cgroup of ours
	qt.Assert(t, qt.IsNil(os.WriteFile(path+"/cgroup.procs", []byte("0"), 0)))
	dial := func() {
		c, err := net.Dial("tcp", l.Addr().String())
		qt.Assert(t, qt.IsNil(err))
		c.Close()
	}
	counts := func() map[string]uint64 { return statusOf(t).Components[0].Counts }
	before := counts()
	dial()
	chosen := counts()["chosen"]
	qt.Check(t, qt.IsTrue(chosen > before["chosen"]))
	qt.Check(t, qt.Equals(counts()["refused"], 0))
	qt.Assert(t, qt.IsNil(control.Close()))
	nstest.Eventually(t, "the control is gone", func() bool { return !available(t, "pcn_line") })
	dial()
	refused := counts()["refused"]
	qt.Check(t, qt.IsTrue(refused > 0))
	qt.Assert(t, qt.IsNil(os.WriteFile("/sys/fs/cgroup/cgroup.procs", []byte("0"), 0)))
	seen(t, statusOf(t).Components[0].Name, map[string]uint64{"chosen": chosen, "refused": refused})
}

// WRED marks and drops by the queue of the interface's qdisc, and its counters are seen.
func TestWRED(t *testing.T) {
	here, peer := wire(t)
	const config = "wred: {interfaces: [veth0], kmin: 100B, k: 100B}\n"
	c := parse(t, config)
	qt.Check(t, qt.DeepEquals(c.WRED, &host.WRED{Interfaces: []string{"veth0"}, KMin: 100, KMax: 100, PMax: 1, K: 100}))
	qt.Assert(t, qt.DeepEquals(up(t, config), map[string]string{"wred": host.Added}))
	s, err := host.New().Status(context.Background(), c)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))

	nl := nstest.Netlink(t, here.NS)
	qt.Assert(t, qt.IsNil(nl.NeighSet(&netlink.Neigh{ // ARP would be counted too
		LinkIndex: here.Index(), State: netlink.NUD_PERMANENT, IP: peer.Addr.AsSlice(), HardwareAddr: peer.MAC,
	})))
	root := netlink.NewHtb(netlink.QdiscAttrs{
		LinkIndex: here.Index(), Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0),
	})
	root.Defcls = 1
	qt.Assert(t, qt.IsNil(nl.QdiscReplace(root)))
	qt.Assert(t, qt.IsNil(nl.ClassReplace(netlink.NewHtbClass( // one packet, and then 100 bytes/s
		netlink.ClassAttrs{
			LinkIndex: here.Index(), Parent: netlink.MakeHandle(1, 0), Handle: netlink.MakeHandle(1, 1),
		},
		netlink.HtbClassAttrs{Rate: 800, Buffer: 1500, Cbuffer: 1500},
	))))
	send := func(n int, tos int) {
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
		for range n {
			_, err := udp.WriteToUDPAddrPort(make([]byte, 1000), netip.AddrPortFrom(peer.Addr, 9))
			qt.Assert(t, qt.IsNil(err))
		}
	}
	const notECT, ect0 = 0, 2
	send(3, notECT) // two spend the burst, one queues
	before := statusOf(t).Components[0].Counts
	qt.Assert(t, qt.IsTrue(before["passed"] >= 3), qt.Commentf("%+v", before))
	send(3, ect0)
	send(4, notECT)
	after := statusOf(t).Components[0].Counts
	qt.Check(t, qt.Equals(after["marked"]-before["marked"], 3))
	qt.Check(t, qt.Equals(after["dropped"]-before["dropped"], 4))
	seen(t, "wred", after)

	for text, want := range map[string]string{
		"wred: {interfaces: [e]}\n":                       `f.yaml:1:7: "kmin" is missing.*`,
		"wred: {kmin: 1KB}\n":                             `f.yaml:1:7: "interfaces" is missing.*`,
		"wred: {interfaces: [e], kmin: 2KB, kmax: 1KB}\n": `f.yaml:1:31: 2KB is out of range.*`,
		"wred: {interfaces: [e], kmin: 2KB, pmax: 2}\n":   `f.yaml:1:42: 2 is out of range.*`,
		"wred: {interfaces: [e], kmin: 2KB, k: 2GB}\n":    `f.yaml:1:39: 2GB is out of range.*`,
		"wred: {interfaces: [e, e], kmin: 2KB}\n":         `f.yaml:1:24: duplicate interface "e".*`,
	} {
		_, err := host.Parse("f.yaml", []byte(text))
		qt.Check(t, qt.ErrorMatches(err, want), qt.Commentf("%s", text))
	}
	c = parse(t, "wred: {interfaces: [e], kmin: 1KB, kmax: 2KB, pmax: 0.1, k: 0}\n")
	qt.Check(t, qt.DeepEquals(c.WRED, &host.WRED{Interfaces: []string{"e"}, KMin: 1000, KMax: 2000, PMax: 0.1}))
}
