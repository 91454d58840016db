// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/pcn-linux/pcn/internal/nstest"
)

const (
	dataDSCP    = 26 // class 3
	controlDSCP = 48 // class 6
)

func newStamp(t *testing.T) *Stamp {
	t.Helper()
	return newStampOf(t, StampOptions{})
}

func newStampOf(t *testing.T, o StampOptions) *Stamp {
	t.Helper()
	nstest.RequireRoot(t)
	o.DataDSCP, o.ControlDSCP = dataDSCP, controlDSCP
	s, err := LoadStamp(o)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStampOptionsAreChecked(t *testing.T) {
	for _, dscps := range [][2]uint8{{64, 48}, {26, 64}} {
		_, err := LoadStamp(StampOptions{DataDSCP: dscps[0], ControlDSCP: dscps[1]})
		qt.Check(t, qt.ErrorMatches(err, "stamp: DSCP .* want 0 to 63"))
	}
	_, err := LoadStamp(StampOptions{DataClasses: []uint8{3, 8}})
	qt.Check(t, qt.ErrorMatches(err, "stamp: data class 8: want 0 to 7"))
}

// stamped is the frame with this DSCP and a right checksum.
func stamped(frame []byte, dscp uint8) []byte {
	frame = bytes.Clone(frame)
	frame[offIP+1] = dscp<<2 | frame[offIP+1]&3
	fixChecksum(frame)
	return frame
}

func TestStampClasses(t *testing.T) {
	s := newStamp(t)
	f := someFlow()
	flags := func(set func(*layers.TCP)) func(*layers.IPv4, *layers.TCP) {
		return func(_ *layers.IPv4, tcp *layers.TCP) { set(tcp) }
	}
	timestamps := flags(func(tcp *layers.TCP) {
		tcp.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps,
			OptionLength: 10, OptionData: make([]byte, 8)}}
	})
	for _, c := range []struct {
		name  string
		frame []byte
		dscp  uint8
	}{
		{"TCP data", f.tcp(t, ect0, 1000), dataDSCP},
		{"TCP data, one byte", f.tcp(t, ect0, 1), dataDSCP},
		{"TCP data with options", f.tcp(t, ect0, 1, timestamps), dataDSCP},
		{"last data", f.tcp(t, ect0, 10, flags(func(tcp *layers.TCP) { tcp.FIN = true })),
			dataDSCP},
		{"pure ACK", f.tcp(t, 0, 0), controlDSCP},
		{"pure ACK with options", f.tcp(t, 0, 0, timestamps), controlDSCP},
		{"pure ACK, padded", append(f.tcp(t, 0, 0), make([]byte, 6)...), controlDSCP},
		{"SYN", f.tcp(t, 0, 0, flags(func(tcp *layers.TCP) { tcp.SYN, tcp.ACK = true, false })),
			controlDSCP},
		{"FIN", f.tcp(t, 0, 0, flags(func(tcp *layers.TCP) { tcp.FIN = true })), dataDSCP},
		{"RST", f.tcp(t, 0, 0, flags(func(tcp *layers.TCP) { tcp.RST = true })), controlDSCP},
		{"UDP", f.udp(t, 0, 1000), dataDSCP},
		{"UDP without data", f.udp(t, 0, 0), dataDSCP},
		{"CNP", encode(t, f.cnp(true, 1000)), controlDSCP},
		{"ICMP", f.icmp(t, 1), controlDSCP},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.run(t, here, "stamp", c.frame, skBuff{})
			passes(t, r, stamped(c.frame, c.dscp))
			qt.Check(t, qt.Equals(r.skb.Priority, uint32(c.dscp>>3)))
		})
	}
}

// Data keeps the class that its socket gave it, if it is one of data; else, and whatever control
// packets have, it is as above.
func TestStampKeepsDataClasses(t *testing.T) {
	nstest.RequireRoot(t)
	s, err := LoadStamp(StampOptions{DataDSCP: dataDSCP, ControlDSCP: controlDSCP,
		DataClasses: []uint8{1, 3, 7}})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { s.Close() })
	for dscp := range uint8(64) {
		class := dscp >> 3
		want := uint8(dataDSCP)
		if class == 1 || class == 3 || class == 7 {
			want = dscp
		}
		for _, c := range []struct {
			frame []byte
			dscp  uint8
		}{
			{someFlow().tcp(t, dscp<<2|ect0, 100), want},
			{someFlow().tcp(t, dscp<<2, 0), controlDSCP},
		} {
			r := s.run(t, here, "stamp", c.frame, skBuff{})
			passes(t, r, stamped(c.frame, c.dscp))
			qt.Check(t, qt.Equals(r.skb.Priority, uint32(c.dscp>>3)))
		}
	}
}

// In a lab ACKs or CNPs may have the class of data in switches: that of their socket's DSCP. The
// host's own port, which goes by the packet's priority, sends them first all the same.
func TestStampRepliesAsData(t *testing.T) {
	const controlClass = controlDSCP >> 3
	roce := someFlow()
	roce.dst = netip.AddrPortFrom(roce.dst.Addr(), 4791)
	ack := someFlow().tcp(t, 10<<2, 0) // of a flow of class 1
	plainACK := someFlow().tcp(t, controlDSCP<<2, 0)
	cnp := roce.datagram(t, controlDSCP<<2, payload(32))
	for _, c := range []struct {
		acks, cnps bool
		frame      []byte
		dscp       uint8
	}{
		{true, false, ack, 10}, {true, false, plainACK, dataDSCP}, {true, false, cnp, controlDSCP},
		{false, true, ack, controlDSCP}, {false, true, cnp, dataDSCP}, {true, true, cnp, dataDSCP},
	} {
		s := newStampOf(t, StampOptions{AcksAsData: c.acks, CNPsAsData: c.cnps, OnlyPlain: true,
			DataClasses: []uint8{1, 3}})
		r := s.run(t, here, "stamp", c.frame, skBuff{})
		passes(t, r, stamped(c.frame, c.dscp))
		qt.Check(t, qt.Equals(r.skb.Priority, uint32(controlClass)))
	}
	_, err := LoadStamp(StampOptions{AcksAsData: true})
	qt.Check(t, qt.ErrorMatches(err, "stamp: ACKs and CNPs as data are for plain IPv4: .*"))
}

// tagStacks are the VLAN tags that programs for hosts look behind.
var tagStacks = map[string][][4]byte{"untagged": nil, "VLAN": {vlan10}, "priority": {priority},
	"two tags": {provider7, vlan10}}

// Packets have their class, and keep their ECN bits, over IPv6 as over IPv4, and behind VLAN tags.
func TestStampIPv6AndVLANs(t *testing.T) {
	s := newStampOf(t, StampOptions{DataClasses: []uint8{1}})
	fin := func(tcp *layers.TCP) { tcp.FIN = true }
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		roce := f
		roce.dst = netip.AddrPortFrom(f.dst.Addr(), 4791)
		for name, c := range map[string]struct {
			frame func(tos uint8) []byte
			dscp  uint8
		}{
			"data":     {func(tos uint8) []byte { return f.tcpData(t, tos, 1) }, dataDSCP},
			"pure ACK": {func(tos uint8) []byte { return f.tcpData(t, tos, 0) }, controlDSCP},
			"FIN":      {func(tos uint8) []byte { return f.tcpData(t, tos, 0, fin) }, dataDSCP},
			"UDP": {func(tos uint8) []byte { return f.datagram(t, tos, payload(100)) },
				dataDSCP},
			"CNP": {func(tos uint8) []byte { return roce.datagram(t, tos, payload(32)) },
				controlDSCP},
			"other": {func(tos uint8) []byte { return f.other(t, tos) }, controlDSCP},
		} {
			for tags, stack := range tagStacks {
				t.Run(fmt.Sprintf("%s of %s, %s", name, f.src.Addr(), tags), func(t *testing.T) {
					for tos := 0; tos < 256; tos += 5 {
						dscp := c.dscp
						if dscp == dataDSCP && tos>>5 == 1 { // of a class of data
							dscp = uint8(tos >> 2)
						}
						r := s.run(t, here, "stamp", tagged(c.frame(uint8(tos)), stack...),
							skBuff{})
						passes(t, r, tagged(c.frame(dscp<<2|uint8(tos)&3), stack...))
						qt.Assert(t, qt.Equals(r.skb.Priority, uint32(dscp>>3)))
					}
				})
			}
		}
	}
}

// other is a packet of neither TCP nor UDP.
func (f flow) other(t *testing.T, tos uint8) []byte {
	t.Helper()
	etherType, ip := f.ip(tos, layers.IPProtocolGRE)
	return serialize(t, f.eth(etherType), ip.(gopacket.SerializableLayer), payload(64))
}

// What is a fragment, has options or too many headers, or is no IP has no DSCP, but a class.
func TestStampOthers(t *testing.T) {
	s := newStamp(t)
	f := someFlow()
	for name, frame := range map[string][]byte{
		"ARP":           f.arp(t),
		"ARP in a VLAN": tagged(f.arp(t), vlan10),
		"three tags":    tagged(f.tcp(t, 0, 100), provider7, vlan10, vlan10),
		"IPv6 fragment": withExtensions(someFlowIPv6().tcpData(t, 0, 100), 44,
			extension(6, 8)),
		"seven headers": withExtensions(someFlowIPv6().tcpData(t, 0, 100), 60,
			sevenExtensions()...),
		"first fragment": f.tcp(t, 0, 100,
			func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags = layers.IPv4MoreFragments }),
		"fragment in a VLAN": vlan(f.tcp(t, 0, 100,
			func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags = layers.IPv4MoreFragments }), 10),
		"later fragment": f.tcp(t, 0, 100,
			func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags, ip.FragOffset = 0, 100 }),
		"empty": make([]byte, 14),
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run(t, here, "stamp", frame, skBuff{Priority: 1})
			passes(t, r, frame)
			qt.Check(t, qt.Equals(r.skb.Priority, uint32(controlDSCP>>3)))
		})
	}
}

// fragmentAt makes an IPv4 packet a fragment, at so many bytes / 8 of a datagram.
func fragmentAt(offset uint16) func(*layers.IPv4, *layers.TCP) {
	return func(ip *layers.IPv4, _ *layers.TCP) {
		ip.Flags, ip.FragOffset = layers.IPv4MoreFragments, offset
	}
}

// In a lab all fragments of a datagram have the class of its protocol.
func TestStampFragments(t *testing.T) {
	f, v6 := someFlow(), someFlowIPv6()
	for _, plain := range []bool{true, false} {
		s := newStampOf(t, StampOptions{Fragments: true, OnlyPlain: plain})
		for _, offset := range []uint16{0, 100} {
			for tos := range 256 {
				frame := f.tcp(t, uint8(tos), 100, fragmentAt(offset))
				r := s.run(t, here, "stamp", frame, skBuff{Priority: 1})
				qt.Assert(t, qt.DeepEquals(r.frame, stamped(frame, dataDSCP)))
				qt.Assert(t, qt.Equals(r.skb.Priority, uint32(dataDSCP>>3)))
				frame[offIP+9] = 1 // ICMP: ping's
				fixChecksum(frame)
				r = s.run(t, here, "stamp", frame, skBuff{Priority: 1})
				qt.Assert(t, qt.DeepEquals(r.frame, stamped(frame, controlDSCP)))
				qt.Assert(t, qt.Equals(r.skb.Priority, uint32(controlDSCP>>3)))
			}
		}
		for protocol, dscp := range map[byte]uint8{6: dataDSCP, 17: dataDSCP, 58: controlDSCP} {
			frame := withExtensions(v6.tcpData(t, ect0, 100), 44, extension(protocol, 8))
			r := s.run(t, here, "stamp", frame, skBuff{Priority: 1})
			class := dscp<<2 | ect0
			label := frame[offIP+1] & 15 // which stays
			frame[offIP], frame[offIP+1] = 6<<4|class>>4, class<<4|label
			qt.Assert(t, qt.DeepEquals(r.frame, frame))
			qt.Assert(t, qt.Equals(r.skb.Priority, uint32(dscp>>3)))
		}
	}
}

// sevenExtensions is one more than programs look behind.
func sevenExtensions() [][]byte {
	var headers [][]byte
	for range 6 {
		headers = append(headers, extension(60, 8))
	}
	return append(headers, extension(6, 8))
}

// Whatever TOS a packet has, its ECN bits stay and its checksum is right after: as another TOS
// changes the sum, for packets whose sums lie anywhere.
func TestStampKeepsECNAndChecksum(t *testing.T) {
	s := newStamp(t)
	for tos := range 256 {
		for _, size := range []int{0, 1, tos * 5, 1460} {
			frame := someFlow().tcp(t, uint8(tos), size, func(ip *layers.IPv4, _ *layers.TCP) {
				ip.Id, ip.TTL = uint16(tos*257+size*31), uint8(1+tos%255)
			})
			dscp := uint8(dataDSCP)
			if size == 0 {
				dscp = controlDSCP
			}
			r := s.run(t, here, "stamp", frame, skBuff{})
			qt.Assert(t, qt.DeepEquals(r.frame, stamped(frame, dscp)),
				qt.Commentf("TOS %#x, %d bytes of data", tos, size))
		}
	}
}

// A packet that has its class is not written to, not even its checksum, be it wrong.
func TestStampLeavesStamped(t *testing.T) {
	s := newStamp(t)
	for ecn := range uint8(4) {
		t.Run(fmt.Sprintf("ECN %d", ecn), func(t *testing.T) {
			frame := someFlow().tcp(t, dataDSCP<<2|ecn, 100)
			frame[offIP+10] ^= 0xff
			r := s.run(t, here, "stamp", frame, skBuff{})
			passes(t, r, frame)
			qt.Check(t, qt.Equals(r.skb.Priority, uint32(dataDSCP>>3)))
		})
	}
}

// With ECT1 what is ECN-capable is ECT(1), and CE stays CE.
func TestStampECT1(t *testing.T) {
	s := newStampOf(t, StampOptions{ECT1: true})
	for ecn, want := range map[uint8]uint8{notECT: notECT, ect1: ect1, ect0: ect1, ce: ce} {
		for _, tos := range []uint8{0, dataDSCP << 2} { // with another class, and with its own
			frame := someFlow().tcp(t, tos|ecn, 100)
			r := s.run(t, here, "stamp", frame, skBuff{})
			frame[offIP+1] = dataDSCP<<2 | want
			fixChecksum(frame)
			passes(t, r, frame)
		}
	}
}

// With address MACs every IPv4 packet's source is 02:00 and its IPv4 source, whether its class had
// to be written or not; everything else about it is as without.
func TestStampAddressMAC(t *testing.T) {
	plain, s := newStamp(t), newStampOf(t, StampOptions{AddressMAC: true})
	rnd := rand.New(rand.NewPCG(21, 22))
	for range 100 {
		f := randomFlow(rnd)
		src := f.src.Addr().As4()
		for name, frame := range map[string][]byte{
			"data":         f.tcp(t, ect0, 1000),
			"stamped data": f.tcp(t, dataDSCP<<2|ce, 1000),
			"pure ACK":     f.tcp(t, 0, 0),
			"UDP":          f.udp(t, 0, 1000),
			"CNP":          encode(t, f.cnp(true, 1000)),
			"ICMP":         f.icmp(t, 1),
		} {
			want := plain.run(t, here, "stamp", frame, skBuff{})
			r := s.run(t, here, "stamp", frame, skBuff{})
			from := src
			if name == "CNP" { // of the flow's receiver
				from = f.dst.Addr().As4()
			}
			copy(want.frame[6:12], []byte{2, 0, from[0], from[1], from[2], from[3]})
			qt.Check(t, qt.Equals(r.verdict, want.verdict), qt.Commentf(name))
			qt.Check(t, qt.Equals(r.skb, want.skb), qt.Commentf(name))
			qt.Assert(t, qt.DeepEquals(r.frame, want.frame), qt.Commentf(name))
		}
	}
}

// Behind a VLAN tag the source is as without; IPv6 has no address that fits.
func TestStampAddressMACOfIPv6AndVLANs(t *testing.T) {
	s := newStampOf(t, StampOptions{AddressMAC: true})
	f := someFlow()
	from := f.src.Addr().As4()
	want := tagged(f.tcpData(t, dataDSCP<<2, 100), vlan10)
	copy(want[6:12], []byte{2, 0, from[0], from[1], from[2], from[3]})
	passes(t, s.run(t, here, "stamp", tagged(f.tcpData(t, 0, 100), vlan10), skBuff{}), want)
	f = someFlowIPv6()
	passes(t, s.run(t, here, "stamp", f.tcpData(t, 0, 100), skBuff{}),
		f.tcpData(t, dataDSCP<<2, 100))
}

// What has no IPv4 source keeps its address.
func TestStampAddressMACOfOthers(t *testing.T) {
	s := newStampOf(t, StampOptions{AddressMAC: true})
	f := someFlow()
	for name, frame := range map[string][]byte{
		"ARP":   f.arp(t),
		"CNM":   f.cnm(t, 1),
		"empty": make([]byte, 14),
	} {
		t.Run(name, func(t *testing.T) {
			r := s.run(t, here, "stamp", frame, skBuff{})
			passes(t, r, frame)
			qt.Check(t, qt.Equals(r.skb.Priority, uint32(controlDSCP>>3)))
		})
	}
}
