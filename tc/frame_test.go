// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/loader"
)

// ECN field of the TOS byte.
const (
	notECT = 0
	ect1   = 1
	ect0   = 2
	ce     = 3
)

// flow is a flow that tests send packets of.
type flow struct {
	srcMAC, dstMAC [6]byte
	src, dst       netip.AddrPort
}

func someFlow() flow {
	return flow{
		srcMAC: [6]byte{2, 0, 0, 0, 0, 1},
		dstMAC: [6]byte{2, 0, 0, 0, 0, 2},
		src:    netip.MustParseAddrPort("10.0.0.1:5001"),
		dst:    netip.MustParseAddrPort("10.0.0.2:443"),
	}
}

// randomFlow is between any two addresses and ports, but port 0, which CNPs of other makers have.
func randomFlow(rnd *rand.Rand) flow {
	f := flow{src: randomAddrPort(rnd), dst: randomAddrPort(rnd)}
	for i := range 6 {
		f.srcMAC[i], f.dstMAC[i] = byte(rnd.Uint32()), byte(rnd.Uint32())
	}
	return f
}

func randomAddrPort(rnd *rand.Rand) netip.AddrPort {
	v := rnd.Uint32()
	addr := netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
	return netip.AddrPortFrom(addr, uint16(1+rnd.IntN(65535)))
}

func (f flow) key(protocol uint8) loader.FlowKey {
	return loader.FlowKey{Src: f.src, Dst: f.dst, Protocol: protocol}
}

// cnp is the CNP that answers the flow.
func (f flow) cnp(decrease bool, rateMbps uint32) cnp.CNP {
	return cnp.CNP{
		DstMAC: f.srcMAC, SrcMAC: f.dstMAC,
		Src: f.dst.Addr(), Dst: f.src.Addr(),
		Decrease: decrease, RecRateMbps: rateMbps,
		FlowSrcPort: f.src.Port(), FlowDstPort: f.dst.Port(),
	}
}

// Of the segments that tests send.
const tcpSeq, tcpAck = 0x01020304, 0xa1a2a3a4

// answer is the CNP of a host without keys that answers a segment.
func (f flow) answer(decrease bool, rateMbps uint32) cnp.CNP {
	c := f.cnp(decrease, rateMbps)
	c.Saw(tcpSeq, tcpAck)
	return c
}

// hold is the CNP that answers the flow's packets marked UE.
func (f flow) hold() cnp.CNP {
	c := f.cnp(false, 0)
	c.Undetermined = true
	return c
}

func encode(t *testing.T, c cnp.CNP) []byte {
	t.Helper()
	b, err := c.MarshalBinary()
	qt.Assert(t, qt.IsNil(err))
	return b
}

// eth is the flow's Ethernet header.
func (f flow) eth(etherType layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{
		SrcMAC:       net.HardwareAddr(f.srcMAC[:]),
		DstMAC:       net.HardwareAddr(f.dstMAC[:]),
		EthernetType: etherType,
	}
}

func (f flow) ipv4(tos uint8, protocol layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{
		Version: 4, TOS: tos, Flags: layers.IPv4DontFragment, TTL: 64, Protocol: protocol,
		SrcIP: f.src.Addr().AsSlice(), DstIP: f.dst.Addr().AsSlice(),
	}
}

// tcp is a segment with so many bytes of data.
func (f flow) tcp(t *testing.T, tos uint8, payloadLen int,
	change ...func(*layers.IPv4, *layers.TCP)) []byte {
	t.Helper()
	ip := f.ipv4(tos, layers.IPProtocolTCP)
	tcp := &layers.TCP{
		SrcPort: layers.TCPPort(f.src.Port()), DstPort: layers.TCPPort(f.dst.Port()),
		Seq: tcpSeq, Ack: tcpAck, ACK: true, Window: 512,
	}
	for _, c := range change {
		c(ip, tcp)
	}
	qt.Assert(t, qt.IsNil(tcp.SetNetworkLayerForChecksum(ip)))
	return serialize(t, f.eth(layers.EthernetTypeIPv4), ip, tcp, payload(payloadLen))
}

// udp is a datagram with so many bytes of data.
func (f flow) udp(t *testing.T, tos uint8, payloadLen int) []byte {
	t.Helper()
	ip := f.ipv4(tos, layers.IPProtocolUDP)
	udp := &layers.UDP{SrcPort: layers.UDPPort(f.src.Port()), DstPort: layers.UDPPort(f.dst.Port())}
	qt.Assert(t, qt.IsNil(udp.SetNetworkLayerForChecksum(ip)))
	return serialize(t, f.eth(layers.EthernetTypeIPv4), ip, udp, payload(payloadLen))
}

// icmp is an echo request.
func (f flow) icmp(t *testing.T, sequence uint16) []byte {
	t.Helper()
	return serialize(t, f.eth(layers.EthernetTypeIPv4), f.ipv4(0, layers.IPProtocolICMPv4),
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, 0),
			Id: 1, Seq: sequence})
}

// tcpIPv6 is a segment with data over IPv6.
func (f flow) tcpIPv6(t *testing.T) []byte {
	t.Helper()
	ip := &layers.IPv6{
		Version: 6, NextHeader: layers.IPProtocolTCP, HopLimit: 64,
		SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("fd00::2"),
	}
	tcp := &layers.TCP{SrcPort: 5001, DstPort: 443, ACK: true}
	qt.Assert(t, qt.IsNil(tcp.SetNetworkLayerForChecksum(ip)))
	return serialize(t, f.eth(layers.EthernetTypeIPv6), ip, tcp, payload(1000))
}

func (f flow) arp(t *testing.T) []byte {
	t.Helper()
	return serialize(t, f.eth(layers.EthernetTypeARP), &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4,
		HwAddressSize: 6, ProtAddressSize: 4, Operation: layers.ARPRequest,
		SourceHwAddress: f.srcMAC[:], SourceProtAddress: f.src.Addr().AsSlice(),
		DstHwAddress: make([]byte, 6), DstProtAddress: f.dst.Addr().AsSlice(),
	})
}

// payload is data whose bytes differ.
func payload(n int) gopacket.Payload {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + 1)
	}
	return b
}

func serialize(t *testing.T, ls ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	qt.Assert(t, qt.IsNil(gopacket.SerializeLayers(buf, opts, ls...)))
	frame := buf.Bytes()
	if ip, ok := ls[1].(*layers.IPv4); ok {
		return frame[:14+int(ip.Length)] // without gopacket's padding
	}
	return frame
}

// vlan puts an 802.1Q tag into the frame.
func vlan(frame []byte, id uint16) []byte {
	tagged := append([]byte{}, frame[:12]...)
	tagged = append(tagged, 0x81, 0x00, byte(id>>8), byte(id))
	return append(tagged, frame[12:]...)
}
