// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// newHostNP attaches a host's notification point to a device of its own.
func newHostNP(t *testing.T, o HostNPOptions) (*NP, *tap) {
	t.Helper()
	h := nstest.New(t)
	dev := newTap(t, h, "tap0", 1)
	o.EnterFirst = true // frames count from the first on
	n, err := LoadHostNP(o)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { n.Close() })
	qt.Assert(t, qt.IsNil(n.Attach(h, dev.ifindex)))
	return n, dev
}

// everyPacket is the shortest T: a packet closes the window of the one before if it comes 16 µs
// later.
func everyPacket() HostNPOptions {
	return HostNPOptions{TNs: 2 * cnp.StampUnitNs, CongestedShare: 0.95}
}

// aWindow waits until T of everyPacket is over.
func aWindow() {
	for start := time.Now(); time.Since(start) < 3*cnp.StampUnitNs; {
	}
}

func someFlowIPv6() flow {
	f := someFlow()
	f.src, f.dst = netip.MustParseAddrPort("[2001:db8::1]:5001"),
		netip.MustParseAddrPort("[2001:db8::2]:443")
	return f
}

// ip is the flow's IP header, and what its Ethernet header says of it.
func (f flow) ip(
	tos uint8, protocol layers.IPProtocol,
) (layers.EthernetType, gopacket.NetworkLayer) {
	if f.src.Addr().Is4() {
		return layers.EthernetTypeIPv4, f.ipv4(tos, protocol)
	}
	return layers.EthernetTypeIPv6, &layers.IPv6{
		Version: 6, TrafficClass: tos, FlowLabel: 0xabcde, NextHeader: protocol, HopLimit: 64,
		SrcIP: f.src.Addr().AsSlice(), DstIP: f.dst.Addr().AsSlice(),
	}
}

// tcpData is a TCP segment of either family.
func (f flow) tcpData(t *testing.T, tos uint8, payloadLen int, change ...func(*layers.TCP)) []byte {
	t.Helper()
	etherType, ip := f.ip(tos, layers.IPProtocolTCP)
	tcp := &layers.TCP{
		SrcPort: layers.TCPPort(f.src.Port()), DstPort: layers.TCPPort(f.dst.Port()), Seq: tcpSeq,
		Ack: tcpAck, ACK: true, Window: 512,
	}
	for _, c := range change {
		c(tcp)
	}
	qt.Assert(t, qt.IsNil(tcp.SetNetworkLayerForChecksum(ip)))
	return serialize(t, f.eth(etherType), ip.(gopacket.SerializableLayer), tcp, payload(payloadLen))
}

// datagram is one of UDP, of either family.
func (f flow) datagram(t *testing.T, tos uint8, payload gopacket.Payload) []byte {
	t.Helper()
	etherType, ip := f.ip(tos, layers.IPProtocolUDP)
	udp := &layers.UDP{SrcPort: layers.UDPPort(f.src.Port()), DstPort: layers.UDPPort(f.dst.Port())}
	qt.Assert(t, qt.IsNil(udp.SetNetworkLayerForChecksum(ip)))
	return serialize(t, f.eth(etherType), ip.(gopacket.SerializableLayer), udp, payload)
}

// tagged puts VLAN tags into the frame, outermost first.
func tagged(frame []byte, tags ...[4]byte) []byte {
	b := append([]byte{}, frame[:12]...)
	for _, tag := range tags {
		b = append(b, tag[:]...)
	}
	return append(b, frame[12:]...)
}

// Tags as they are in frames.
var (
	vlan10    = [4]byte{0x81, 0x00, 0x60, 10}   // 802.1Q, priority 3
	vlan4095  = [4]byte{0x81, 0x00, 0x0f, 0xff} // its largest number
	provider7 = [4]byte{0x88, 0xa8, 0, 7}       // 802.1ad
	priority  = [4]byte{0x81, 0x00, 0xa0, 0}    // no VLAN, priority 5
)

func TestHostNPOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*HostNPOptions)
		want   string
	}{
		{func(o *HostNPOptions) { o.TNs = 0 }, "np: T 0 ns, .*: want T above 0 .*"},
		{func(o *HostNPOptions) { o.CongestedShare = 1 }, "np: .* want T above 0 and a share of 0 to below 1"},
		{func(o *HostNPOptions) { o.CongestedShare = math.NaN() },
			"np: .* want T above 0 and a share of 0 to below 1"},
		{func(o *HostNPOptions) { o.TNs = 16383 }, "np: T 16383 ns: want at least 16384 ns, .*"},
		{func(o *HostNPOptions) { o.Idle = -1 }, "np: idle time -1ns: want 0 or more"},
		{func(o *HostNPOptions) { o.UDPPorts = make([]uint16, 9) },
			"np: 9 ports of UDP: want at most 8"},
		{func(o *HostNPOptions) { o.UDPPorts = []uint16{0} }, "np: port 0 of UDP: .*"},
	} {
		o := everyPacket()
		c.change(&o)
		_, err := LoadHostNP(o)
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
}

// What a host's NP answers to packets that its device received, of every family, VLAN, size and
// offload, is a CNP as package cnp writes it, in the flow's VLAN.
func TestHostNPAnswersReceivedPackets(t *testing.T) {
	n, dev := newHostNP(t, everyPacket())
	port := uint16(0)
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		for _, tags := range [][][4]byte{
			{}, {vlan10}, {vlan4095}, {priority}, {provider7, vlan10}, {vlan10, vlan4095},
			{provider7, vlan10, vlan4095},
		} {
			for _, c := range received {
				if !f.src.Addr().Is4() {
					c.offload = overIPv6(c.offload)
				}
				c.offload = behind(c.offload, 4*len(tags))
				for _, tos := range []uint8{ect0, ce} {
					name := fmt.Sprintf("%s, %d tags, %d bytes, offload %d, ECN %d",
						f.src.Addr(), len(tags), c.payloadLen, c.offload.GSOType<<1|c.offload.Flags,
						tos)
					port++
					f.src = netip.AddrPortFrom(f.src.Addr(), 5000+port) // a new flow
					payloadLen := c.payloadLen
					if limit := math.MaxUint16 - 100; payloadLen > limit {
						payloadLen = limit
					}
					frame := tagged(f.tcpData(t, tos, payloadLen), tags...)
					dev.receive(t, c.offload, frame)
					qt.Assert(t, qt.HasLen(dev.sent(t), 0),
						qt.Commentf("%s: the first packet opens the window", name))
					aWindow()
					dev.receive(t, c.offload, frame)
					sent := dev.sent(t)
					qt.Assert(t, qt.HasLen(sent, 1), qt.Commentf("%s", name))
					got, err := cnp.Parse(untagged(sent[0], len(tags)))
					qt.Assert(t, qt.IsNil(err), qt.Commentf("%s: %x", name, sent[0]))
					qt.Assert(t, qt.DeepEquals(sent[0], tagged(encode(t,
						f.answer(tos == ce, got.RecRateMbps)), tags...)), qt.Commentf("%s", name))
					qt.Assert(t, qt.Equals(got.RecRateMbps > 0, tos == ce))
				}
			}
		}
	}
	got, err := n.Counts()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(nonZero(t, got, err),
		Counts{"cnp_decrease": uint64(port) / 2, "cnp_increase": uint64(port) / 2}))
}

// untagged takes n VLAN tags off.
func untagged(frame []byte, n int) []byte {
	return append(append([]byte{}, frame[:12]...), frame[12+4*n:]...)
}

// overIPv6 is the offload of the same segment over IPv6.
func overIPv6(h vnetHeader) vnetHeader {
	if h.Flags != 0 {
		h.CsumStart += 20
	}
	if h.GSOType != 0 {
		h.GSOType, h.HeaderLen = 4, h.HeaderLen+20 // VIRTIO_NET_HDR_GSO_TCPV6
	}
	return h
}

// behind is the offload of the same segment, with so many bytes more before it.
func behind(h vnetHeader, n int) vnetHeader {
	if h.Flags != 0 {
		h.CsumStart += uint16(n)
	}
	if h.GSOType != 0 {
		h.HeaderLen += uint16(n)
	}
	return h
}

// arriveNow hands NP a packet at the device.
func (n *NP) arriveNow(t *testing.T, dev *tap, frame []byte) result {
	t.Helper()
	return n.run(t, dev.ns, "np_ingress", frame, skBuff{Ifindex: uint32(dev.ifindex)})
}

// entries is how many flows a table has. One that changes meanwhile may have to be counted again.
func entries(t *testing.T, m *ebpf.Map) (entries int) {
	t.Helper()
	nstest.Eventually(t, "the table is counted", func() bool {
		var k, v []byte
		entries = 0
		it := m.Iterate()
		for it.Next(&k, &v) {
			entries++
		}
		return !errors.Is(it.Err(), ebpf.ErrIterationAborted)
	})
	return entries
}

func (n *NP) flows(t *testing.T) int { return entries(t, n.coll.Maps[npMapNpFlows]) }

// UDP is answered where its port is watched, and only there; CNPs never are.
func TestHostNPWatchesUDP(t *testing.T) {
	o := everyPacket()
	o.UDPPorts = []uint16{cnp.UDPPort, 7777}
	n, dev := newHostNP(t, o)
	roce := gopacket.Payload(append([]byte{0x0a}, make([]byte, 100)...)) // RDMA write only
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		for _, c := range []struct {
			src, dst uint16
			payload  gopacket.Payload
			answered bool
		}{
			{50000, cnp.UDPPort, roce, true},
			{50001, 7777, payload(1), true},
			{7777, 50001, payload(1400), true},
			{50000, 7778, payload(100), false},
			{50000, 7777, nil, false},
			{0, 7777, payload(100), false},
			{50002, cnp.UDPPort, gopacket.Payload(append([]byte{cnp.Opcode}, make([]byte, 31)...)),
				false},
			{50003, cnp.UDPPort, nil, false},
		} {
			f.src, f.dst = netip.AddrPortFrom(f.src.Addr(), c.src),
				netip.AddrPortFrom(f.dst.Addr(), c.dst)
			frame := f.datagram(t, ce, c.payload)
			passes(t, n.arriveNow(t, dev, frame), frame)
			aWindow()
			passes(t, n.arriveNow(t, dev, frame), frame)
			sent := dev.sent(t)
			comment := qt.Commentf("%s -> %s", f.src, f.dst)
			if !c.answered {
				qt.Check(t, qt.HasLen(sent, 0), comment)
				continue
			}
			qt.Assert(t, qt.HasLen(sent, 1), comment)
			got, err := cnp.Parse(sent[0])
			qt.Assert(t, qt.IsNil(err), comment)
			want := f.cnp(true, got.RecRateMbps)
			want.UDP = true
			qt.Check(t, qt.Equals(got, want), comment)
		}
	}
}

// extension is an IPv6 extension header of so many bytes, a multiple of 8, before the one named.
func extension(next byte, length int) []byte {
	b := make([]byte, length)
	b[0], b[1] = next, byte(length/8-1)
	return b
}

// withExtensions puts headers between an IPv6 header and what it carries, the first of this type.
func withExtensions(frame []byte, first byte, headers ...[]byte) []byte {
	b := append([]byte{}, frame[:54]...)
	for _, h := range headers {
		b = append(b, h...)
	}
	b = append(b, frame[54:]...)
	b[20] = first
	n := len(b) - 54
	b[18], b[19] = byte(n>>8), byte(n)
	return b
}

// NP looks behind six extension headers of IPv6, and no further; and behind IPv4's options.
func TestHostNPReadsLongHeaders(t *testing.T) {
	const hopByHop, routing, fragment, ah, destination, tcp, mobility = 0, 43, 44, 51, 60, 6, 135
	n, dev := newHostNP(t, everyPacket())
	f := someFlowIPv6()
	plain := f.tcpData(t, ce, 1000)
	authentication := extension(tcp, 24)
	authentication[1] = 4 // in words, less two
	six := [][]byte{
		extension(routing, 8), extension(destination, 1024), extension(destination, 8),
		extension(destination, 8),
		extension(destination, 16), extension(tcp, 8),
	}
	v4 := someFlow()
	for _, c := range []struct {
		name     string
		frame    []byte
		answer   *flow
		extended uint64
	}{
		{"hop by hop", withExtensions(plain, hopByHop, extension(tcp, 8)), &f, 0},
		{"authentication", withExtensions(plain, ah, authentication), &f, 0},
		{"six", withExtensions(plain, hopByHop, six...), &f, 0},
		{"seven", withExtensions(plain, destination,
			append([][]byte{extension(hopByHop, 8)}, six...)...), nil, 1},
		{"too long", withExtensions(plain, hopByHop, extension(destination, 2040),
			extension(tcp, 8)), nil, 1},
		{"unknown behind one", withExtensions(plain, hopByHop, extension(mobility, 8),
			extension(tcp, 8)), nil, 1},
		{"fragment", withExtensions(plain, fragment, extension(tcp, 8)), nil, 0},
		{"unknown", withExtensions(plain, mobility, extension(tcp, 8)), nil, 0},
		{"beyond the end", withExtensions(plain, hopByHop, []byte{tcp, 200, 0, 0, 0, 0, 0, 0}), nil,
			0},
		{"IPv4 with options", v4.tcp(t, ce, 1000, func(ip *layers.IPv4, _ *layers.TCP) {
			ip.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1},
				{OptionType: 0}}
		}), &v4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := n.counts(t)["extensions"]
			dev.receive(t, vnetHeader{}, c.frame)
			aWindow()
			dev.receive(t, vnetHeader{}, c.frame)
			sent := dev.sent(t)
			qt.Check(t, qt.Equals(n.counts(t)["extensions"]-before, 2*c.extended))
			if c.answer == nil {
				qt.Assert(t, qt.HasLen(sent, 0))
				return
			}
			qt.Assert(t, qt.HasLen(sent, 1))
			got, err := cnp.Parse(sent[0])
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(got, c.answer.answer(true, got.RecRateMbps)))
			fin := c.answer.tcpData(t, 0, 0, func(tcp *layers.TCP) { tcp.FIN = true })
			dev.receive(t, vnetHeader{}, fin) // the next case begins anew
		})
	}
}

// What is not data of TCP or of watched UDP passes, leaves no entry, and is not answered, whole or
// truncated.
func TestHostNPIgnores(t *testing.T) {
	n, dev := newHostNP(t, everyPacket())
	frames := ignored(t)
	for _, answered := range []string{"TCP over IPv6", "VLAN", "IPv4 with options"} {
		delete(frames, answered)
	}
	frames["three tags"] = tagged(someFlow().tcpData(t, ce, 100), vlan10, vlan10, vlan10)
	frames["ACK over IPv6"] = someFlowIPv6().tcpData(t, ce, 0)
	for name, frame := range frames {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				passes(t, n.arriveNow(t, dev, frame), frame)
				aWindow()
			}
			qt.Assert(t, qt.HasLen(dev.sent(t), 0))
			qt.Assert(t, qt.Equals(n.flows(t), 0))
		})
	}
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		data := f.tcpData(t, ce, 100)
		for l := 14; l < len(data); l++ {
			dev.receive(t, vnetHeader{}, data[:l])
			qt.Assert(t, qt.Equals(n.flows(t), 0), qt.Commentf("truncated to %d bytes", l))
		}
	}
	qt.Assert(t, qt.HasLen(dev.sent(t), 0))
}

// A mark of the host's own is no CNP: only the clone is, while it is sent.
func TestHostNPEgressPasses(t *testing.T) {
	n, dev := newHostNP(t, everyPacket())
	frame := someFlow().tcpData(t, ce, 100)
	dev.receive(t, vnetHeader{}, frame)
	aWindow()
	dev.receive(t, vnetHeader{}, frame)
	qt.Assert(t, qt.HasLen(dev.sent(t), 1))
	const markCNP = 0x504e0000
	r := n.run(t, here, "np_egress", frame, skBuff{Mark: markCNP})
	passes(t, r, frame)
	qt.Check(t, qt.Equals(r.skb.Mark, markCNP))
}

// What a socket of this host sends as a CNP does not leave it. All else does, also a CNP that is
// forwarded, such as a virtual machine's.
func TestHostNPDropsForgedCNPs(t *testing.T) {
	f, v6 := someFlow(), someFlowIPv6()
	forged, forged6 := encode(t, f.cnp(true, 1)), encode(t, v6.cnp(false, 0))
	roce := bytes.Clone(forged)
	clear(roce[offIP+20+8+12 : len(roce)-4]) // the reserved bytes of other implementations
	data := bytes.Clone(forged)
	data[offIP+20+8] = 4 // a send, not a CNP
	const count = "forged"
	for _, c := range []struct {
		name  string
		frame []byte
		skb   skBuff
		drops bool
	}{
		{"IPv4", forged, skBuff{}, true},
		{"IPv6", forged6, skBuff{}, true},
		{"VLAN", tagged(forged, vlan10), skBuff{}, true},
		{"several in one", data, skBuff{GSOSize: 40, GSOSegs: 2}, true},
		{"forwarded", forged, skBuff{IngressIfindex: 1}, false},
		{"of RoCE", roce, skBuff{}, false},
		{"data of RoCE", data, skBuff{}, false},
		{"TCP", f.tcpData(t, ect0, 100), skBuff{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, _ := newHostNP(t, everyPacket())
			r := n.run(t, here, "np_egress", c.frame, c.skb)
			if !c.drops {
				passes(t, r, c.frame)
				qt.Check(t, qt.Equals(n.counts(t)[count], 0))
				return
			}
			qt.Check(t, qt.Equals(r.verdict, tcxDrop))
			qt.Check(t, qt.Equals(n.counts(t)[count], 1))
		})
	}
}

// A user's socket can't send a CNP, with the TOS, the checksum and the payload of one.
func TestHostNPStopsUsers(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	here, peer := nstest.Veth(t, a, b, netip.MustParsePrefix("10.7.0.1/24"),
		netip.MustParsePrefix("10.7.0.2/24"))
	n, err := LoadHostNP(everyPacket())
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { n.Close() })
	qt.Assert(t, qt.IsNil(n.Attach(a, here.Index())))
	const rocePort = 4791
	var in, out *net.UDPConn
	nstest.Do(t, b, func() (err error) {
		in, err = net.ListenUDP("udp4", &net.UDPAddr{IP: peer.Addr.AsSlice(), Port: rocePort})
		return err
	})
	t.Cleanup(func() { in.Close() })
	nstest.Do(t, a, func() (err error) {
		out, err = net.DialUDP("udp4", nil, in.LocalAddr().(*net.UDPAddr))
		return err
	})
	t.Cleanup(func() { out.Close() })
	raw, err := out.SyscallConn()
	qt.Assert(t, qt.IsNil(err))
	controlErr := raw.Control(func(fd uintptr) {
		err = errors.Join(
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, 48<<2|ce),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_NO_CHECK, 1),
			unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER,
				unix.IP_PMTUDISC_DO))
	})
	qt.Assert(t, qt.IsNil(errors.Join(controlErr, err)))
	frame := encode(t, someFlow().cnp(false, 0))
	_, err = out.Write(frame[offIP+20+8:])
	qt.Assert(t, qt.IsNil(err))
	_, err = out.Write([]byte("no CNP"))
	qt.Assert(t, qt.IsNil(err))
	got := make([]byte, 100)
	qt.Assert(t, qt.IsNil(in.SetReadDeadline(time.Now().Add(nstest.Patience))))
	size, err := in.Read(got)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(got[:size]), "no CNP"))
	qt.Check(t, qt.Equals(n.counts(t)["forged"], 1))
}

// Signed CNPs are dated, and of the key that signs.
func TestHostNPSigns(t *testing.T) {
	n, dev := newHostNP(t, everyPacket())
	keys := []cnp.Key{{1, 2, 3}, {4, 5, 6}}
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		for slot, key := range keys {
			qt.Assert(t, qt.IsNil(n.Keys().Set(slot, key, KeySigns)))
			qt.Assert(t, qt.IsNil(n.Keys().Set(1-slot, keys[1-slot], KeyAccepted)))
			for _, tos := range []uint8{ect0, ce} {
				frame := f.tcpData(t, tos, 100)
				dev.receive(t, vnetHeader{}, frame)
				aWindow()
				before := cnp.Stamp(time.Now())
				dev.receive(t, vnetHeader{}, frame)
				after := cnp.Stamp(time.Now())
				sent := dev.sent(t)
				got, err := cnp.Parse(sent[len(sent)-1])
				qt.Assert(t, qt.IsNil(err))
				gotSlot, stamp, ok := got.Signed()
				qt.Check(t, qt.IsTrue(ok))
				qt.Check(t, qt.Equals(gotSlot, slot))
				qt.Check(t, qt.IsTrue(got.Verify(key)))
				qt.Check(t, qt.IsTrue(before-1 <= stamp && stamp <= after+1),
					qt.Commentf("%d, want %d to %d", stamp, before, after))
			}
		}
	}
	for slot := range keys {
		qt.Assert(t, qt.IsNil(n.Keys().Set(slot, cnp.Key{}, KeyNone)))
	}
	aWindow()
	dev.receive(t, vnetHeader{}, someFlow().tcpData(t, ce, 100))
	got, err := cnp.Parse(dev.sent(t)[0])
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(got, someFlow().answer(true, got.RecRateMbps)))
}

// Flows that end leave no entry: those of TCP with FIN or RST, all others when they have been
// silent.
func TestHostNPForgetsFlows(t *testing.T) {
	idle := 500 * time.Millisecond
	for ; forgetsFlows(t, idle); idle *= 2 {
		t.Logf("the machine is busy: a flow that was to be lively was silent for %v", idle)
	}
}

// forgetsFlows reports whether this process waited for so long that it is to be tried again.
func forgetsFlows(t *testing.T, idle time.Duration) (again bool) {
	o := everyPacket()
	o.TNs, o.Idle, o.UDPPorts = uint64(time.Hour), idle, []uint16{7777}
	n, dev := newHostNP(t, o)
	f := someFlow()
	for name, end := range map[string]func(*layers.TCP){
		"FIN": func(tcp *layers.TCP) { tcp.FIN = true },
		"RST": func(tcp *layers.TCP) { tcp.RST = true },
	} {
		start := time.Now()
		n.arriveNow(t, dev, f.tcpData(t, 0, 100))
		before := n.flows(t)
		n.arriveNow(t, dev, f.tcpData(t, 0, 0, end))
		after := n.flows(t)
		if time.Since(start) >= idle {
			return true
		}
		qt.Assert(t, qt.Equals(before, 1))
		qt.Assert(t, qt.Equals(after, 0), qt.Commentf("%s", name))
	}
	qt.Assert(t, qt.DeepEquals(n.counts(t), Counts{"ended": 2}))

	f.dst = netip.AddrPortFrom(f.dst.Addr(), 7777)
	lively := someFlowIPv6()
	n.arriveNow(t, dev, f.datagram(t, 0, payload(100)))
	var counts Counts
	var flows int
	start := time.Now()
	for last := start; last.Sub(start) < 3*idle; time.Sleep(idle / 10) {
		now := time.Now()
		n.arriveNow(t, dev, lively.tcpData(t, 0, 100))
		counts, flows = n.counts(t), n.flows(t)
		if time.Since(last) >= idle {
			return true
		}
		last = now
	}
	qt.Check(t, qt.DeepEquals(counts, Counts{"ended": 2, "idle": 1}))
	qt.Check(t, qt.Equals(flows, 1))
	nstest.Eventually(t, "the lively flow is forgotten too", func() bool { return n.flows(t) == 0 })
	qt.Check(t, qt.DeepEquals(n.counts(t), Counts{"ended": 2, "idle": 2}))
	return false
}

// A hundred thousand flows come and go, some without a word: nothing of them stays, and the table
// never grows beyond its size.
func TestHostNPForgetsManyFlows(t *testing.T) {
	const (
		flows, maxFlows = 100_000, 4096
		idle            = 50 * time.Millisecond
	)
	o := everyPacket()
	o.TNs, o.MaxFlows, o.Idle = uint64(time.Hour), maxFlows, idle
	o.EnterFirst = true // frames count from the first on
	n, err := LoadHostNP(o)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { n.Close() })
	p, f := n.coll.Programs[npProgNpIngress], someFlowIPv6()
	data, fin := f.tcpData(t, 0, 100), f.tcpData(t, 0, 0, func(tcp *layers.TCP) { tcp.FIN = true })
	const offSource = 14 + 8 + 12 // the address's last word
	hear := func(frame []byte, i int) {
		binary.BigEndian.PutUint32(frame[offSource:], uint32(i))
		_, err := p.Run(&ebpf.RunOptions{Data: frame})
		qt.Assert(t, qt.IsNil(err))
	}
	most := 0
	for i := range flows {
		hear(data, i)
		if i%2 == 0 {
			hear(fin, i)
		}
		if i%20_000 == 0 {
			most = max(most, n.flows(t))
		}
	}
	qt.Check(t, qt.IsTrue(most <= maxFlows), qt.Commentf("%d flows", most))
	live := n.coll.Maps[npMapNpLive]
	nstest.Eventually(t, "all flows are forgotten", func() bool { return n.flows(t) == 0 })
	nstest.Eventually(t, "none is tracked", func() bool {
		return errors.Is(live.Lookup(nil, make([]byte, live.ValueSize())), ebpf.ErrKeyNotExist)
	})
	// A full table forgets flows uncounted, and on a busy machine some are silent before their FIN.
	counts := n.counts(t)
	ended := counts["ended"]
	qt.Check(t, qt.IsTrue(ended > flows/2*9/10 && ended <= flows/2),
		qt.Commentf("%v", counts))
	qt.Check(t, qt.IsTrue(ended+counts["idle"] <= flows), qt.Commentf("%v", counts))
	qt.Check(t, qt.IsTrue(counts["idle"] > 0))

	hear(data, 1) // and it goes on
	nstest.Eventually(t, "the last flow is forgotten", func() bool { return n.flows(t) == 0 })
	qt.Check(t, qt.Equals(n.counts(t)["idle"], counts["idle"]+1))
}

// state returns the key and the entry of the only flow in the table.
func (n *NP) state(t *testing.T) (key npFlowKey, flow npNpFlow) {
	t.Helper()
	it := n.coll.Maps[npMapNpFlows].Iterate()
	qt.Assert(t, qt.IsTrue(it.Next(&key, &flow)), qt.Commentf("%v", it.Err()))
	return key, flow
}

// Of packets of one flow that arrive on two CPUs at the same time, none is lost: the flow's state
// counts it, or busy does.
func TestHostNPCountsOnSeveralCPUs(t *testing.T) {
	const cpus, packets = 2, 200_000
	o := everyPacket()
	o.TNs = uint64(time.Hour)
	n, dev := newHostNP(t, o)
	frame := someFlow().tcpData(t, ce, 100)
	n.arriveNow(t, dev, frame)
	errs := make(chan error, cpus)
	for cpu := range cpus {
		go func() {
			runtime.LockOSThread() // for good: the thread ends with the goroutine
			set := unix.CPUSet{}
			set.Set(cpu)
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				errs <- fmt.Errorf("move to CPU %d: %w", cpu, err)
				return
			}
			_, err := n.coll.Programs["np_ingress"].Run(
				&ebpf.RunOptions{Data: frame, Repeat: packets})
			errs <- err
		}()
	}
	for range cpus {
		qt.Assert(t, qt.IsNil(<-errs))
	}
	_, flow := n.state(t)
	counted := uint64(flow.State.RecNum)
	t.Logf("%d packets counted, %d not", counted, n.counts(t)["busy"])
	qt.Check(t, qt.Equals(counted+n.counts(t)["busy"], 1+cpus*packets))
	qt.Check(t, qt.Equals(flow.State.EcnNum, flow.State.RecNum))
	qt.Check(t, qt.Equals(flow.State.RecDataBytes, counted*uint64(len(frame))))
	qt.Check(t, qt.Equals(flow.Locked, 0))
}

// A packet does not wait for ever for another CPU: it passes, and only busy counts it.
func TestHostNPDoesNotWait(t *testing.T) {
	o := everyPacket()
	o.TNs = uint64(time.Hour)
	n, dev := newHostNP(t, o)
	frame := someFlow().tcpData(t, ce, 100)
	n.arriveNow(t, dev, frame)
	key, flow := n.state(t)
	flow.Locked = 1
	qt.Assert(t, qt.IsNil(n.coll.Maps[npMapNpFlows].Put(key, flow)))
	passes(t, n.arriveNow(t, dev, frame), frame)
	_, flow = n.state(t)
	qt.Check(t, qt.Equals(flow.State.RecNum, 1))
	qt.Check(t, qt.DeepEquals(n.counts(t), Counts{"busy": 1}))
}
