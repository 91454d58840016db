// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

const (
	// FrameLen is the length of a CNP over IPv4 in bytes, with Ethernet header, without
	// FCS and VLAN tags.
	FrameLen = 74

	// FrameLenIPv6 is the length of a CNP over IPv6 in bytes, counted likewise.
	FrameLenIPv6 = FrameLen - ipHeaderLen + ipv6HeaderLen

	// UDPPort is the destination port of RoCEv2.
	UDPPort = 4791

	// Opcode is the BTH opcode of a CNP.
	Opcode = 0x81

	// DSCP is the class of a CNP, NVIDIA's default for its NICs.
	DSCP = 48
)

// Offsets in a CNP over IPv4, in bytes.
const (
	offIP       = 14
	offUDP      = offIP + ipHeaderLen
	offBTH      = offUDP + udpHeaderLen
	offReserved = offBTH + bthLen
	offICRC     = FrameLen - icrcLen
)

// layout holds the offsets of a CNP's parts after the IP header, in bytes.
type layout struct{ udp, bth, reserved, icrc, end int }

func layoutOf(ipv6 bool) layout {
	l := layout{offUDP, offBTH, offReserved, offICRC, FrameLen}
	if ipv6 {
		const more = ipv6HeaderLen - ipHeaderLen
		l = layout{l.udp + more, l.bth + more, l.reserved + more, l.icrc + more, l.end + more}
	}
	return l
}

const (
	etherTypeIPv4 = 0x0800
	etherTypeIPv6 = 0x86dd
	ecnCE         = 0b11
	dontFragment  = 0x4000
	ttl           = 64
	defaultPKey   = 0xffff
	becn          = 0x40
	ue            = 0x20 // reserved in RoCE
)

var (
	// ErrNotCNP says that a frame is something other than a CNP over IPv4 or IPv6.
	ErrNotCNP = errors.New("not a CNP")

	// ErrBadChecksum says that the IPv4 header checksum of a CNP is wrong.
	ErrBadChecksum = errors.New("bad IPv4 header checksum")

	// ErrBadICRC says that the ICRC of a CNP is wrong: a byte it covers, such as
	// the RecRate, has changed on the way or was never covered.
	ErrBadICRC = errors.New("bad ICRC")
)

// CNP is PCN's congestion notification packet, from the receiver of a flow
// to its sender. The package comment has the bytes.
type CNP struct {
	// DstMAC and SrcMAC are the Ethernet addresses: the flow's sender and receiver,
	// or the routers before them.
	DstMAC, SrcMAC [6]byte

	// Src and Dst are the addresses of the CNP itself, IPv4 or IPv6: Src is the
	// receiver of the flow, Dst its sender.
	Src, Dst netip.Addr

	// Decrease tells the sender to slow down, in PCN to RecRateMbps. Otherwise the sender may speed
	// up, or holds its rate if Undetermined is set.
	Decrease bool

	// Undetermined tells the sender to hold its rate: the receiver got packets that TCD marked UE.
	// Decrease overrides it, and then it is not written.
	Undetermined bool

	// RecRateMbps is the rate at which the receiver got the flow, in Mbit/s. NP
	// writes 0 unless Decrease is set (PCN, figure 8).
	RecRateMbps uint32

	// FlowSrcPort and FlowDstPort are the ports of the flow in the direction
	// of its data, from the CNP's Dst to its Src.
	FlowSrcPort, FlowDstPort uint16

	// UDP is set for a flow of UDP, unset for TCP.
	UDP bool

	// Tag is the signature, see Sign, or what its sender saw, see Saw.
	Tag [8]byte
}

var (
	_ encoding.BinaryAppender  = CNP{}
	_ encoding.BinaryMarshaler = CNP{}
)

// AppendBinary appends the frame, FrameLen or FrameLenIPv6 bytes, to b. It is an
// error if Src and Dst are not both IPv4 or both IPv6 addresses.
func (c CNP) AppendBinary(b []byte) ([]byte, error) {
	for i, addr := range []netip.Addr{c.Src, c.Dst} {
		if !addr.IsValid() || addr.Is4In6() {
			return b,
				fmt.Errorf("encode CNP: %s address %q is neither IPv4 nor IPv6: set it, or unmap "+
					"it",
					[]string{"source", "destination"}[i], addr)
		}
	}
	if c.Src.Is4() != c.Dst.Is4() {
		return b,
			fmt.Errorf("encode CNP: source address %q and destination address %q are not of one "+
				"family", c.Src, c.Dst)
	}
	return append(b, c.encode()...), nil
}

// MarshalBinary returns the frame. Errors are those of
// AppendBinary.
func (c CNP) MarshalBinary() ([]byte, error) {
	b, err := c.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// encode returns the frame of a CNP that has addresses of one family.
func (c CNP) encode() []byte {
	ipv6 := !c.Src.Is4()
	l := layoutOf(ipv6)
	frame := make([]byte, l.end)
	copy(frame, c.DstMAC[:])
	copy(frame[6:], c.SrcMAC[:])
	ip := frame[offIP:]
	if ipv6 {
		binary.BigEndian.PutUint16(frame[12:], etherTypeIPv6)
		c.putIPv6(ip)
	} else {
		binary.BigEndian.PutUint16(frame[12:], etherTypeIPv4)
		c.putIP(frame[offIP:offUDP])
	}
	c.putUDP(frame[l.udp:l.bth])
	c.putBTH(frame[l.bth:l.reserved])
	c.putReserved(frame[l.reserved:l.icrc])
	binary.LittleEndian.PutUint32(frame[l.icrc:], icrcOf(ip, ipv6))
	return frame
}

// tos returns the TOS or traffic class: the class of CNPs and, in the ECN bits, the verdict.
func (c CNP) tos() byte {
	if c.Decrease {
		return DSCP<<2 | ecnCE
	}
	return DSCP << 2
}

func (c CNP) putIP(b []byte) {
	b[0] = 0x45
	b[1] = c.tos()
	binary.BigEndian.PutUint16(b[2:], FrameLen-offIP)
	binary.BigEndian.PutUint16(b[6:], dontFragment)
	b[8] = ttl
	b[9] = protocolUDP
	src, dst := c.Src.As4(), c.Dst.As4()
	copy(b[12:], src[:])
	copy(b[16:], dst[:])
	binary.BigEndian.PutUint16(b[10:], ipChecksum(b))
}

func (c CNP) putIPv6(b []byte) {
	binary.BigEndian.PutUint32(b, 6<<28|uint32(c.tos())<<20)
	binary.BigEndian.PutUint16(b[4:], FrameLen-offUDP)
	b[6] = protocolUDP
	b[7] = ttl
	src, dst := c.Src.As16(), c.Dst.As16()
	copy(b[8:], src[:])
	copy(b[24:], dst[:])
}

func (c CNP) putUDP(b []byte) {
	binary.BigEndian.PutUint16(b, 0xc000|((c.FlowSrcPort^c.FlowDstPort)&0x3fff))
	binary.BigEndian.PutUint16(b[2:], UDPPort)
	binary.BigEndian.PutUint16(b[4:], FrameLen-offUDP)
}

func (c CNP) putBTH(b []byte) {
	b[0] = Opcode
	binary.BigEndian.PutUint16(b[2:], defaultPKey)
	b[4] = becn
	if c.Undetermined && !c.Decrease {
		b[4] |= ue
	}
	if c.UDP {
		b[11] = protocolUDP // the PSN's last byte
	}
}

func (c CNP) putReserved(b []byte) {
	binary.BigEndian.PutUint32(b, c.RecRateMbps)
	binary.BigEndian.PutUint16(b[4:], c.FlowSrcPort)
	binary.BigEndian.PutUint16(b[6:], c.FlowDstPort)
	copy(b[8:], c.Tag[:])
}

// ipChecksum returns the checksum of an IPv4 header without options, whatever
// checksum is in it (RFC 1071).
func ipChecksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < ipHeaderLen; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	sum -= uint32(binary.BigEndian.Uint16(header[10:]))
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// kind returns the fields that tell a CNP from other frames.
func (l layout) kind() []field {
	fields := []field{
		{"EtherType", 12, 14, ErrNotCNP},
		{"IPv4 version and header length", offIP, offIP + 1, ErrNotCNP},
		{"IPv4 protocol", offIP + 9, offIP + 10, ErrNotCNP},
	}
	if l.end == FrameLenIPv6 {
		fields = []field{
			{"EtherType", 12, 14, ErrNotCNP},
			{"IPv6 next header", offIP + 6, offIP + 7, ErrNotCNP},
		}
	}
	return append(fields,
		field{"UDP destination port", l.udp + 2, l.udp + 4, ErrNotCNP},
		field{"BTH opcode", l.bth, l.bth + 1, ErrNotCNP})
}

// fixed returns the other fields that follow from those of a CNP, without the checksums.
func (l layout) fixed() []field {
	fields := []field{
		{"IPv4 TOS", offIP + 1, offIP + 2, ErrMalformed},
		{"IPv4 total length", offIP + 2, offIP + 4, ErrMalformed},
		{"IPv4 identification", offIP + 4, offIP + 6, ErrMalformed},
		{"IPv4 flags and fragment offset", offIP + 6, offIP + 8, ErrMalformed},
		{"IPv4 TTL", offIP + 8, offIP + 9, ErrMalformed},
	}
	if l.end == FrameLenIPv6 {
		fields = []field{
			{"IPv6 version, traffic class and flow label", offIP, offIP + 4, ErrMalformed},
			{"IPv6 payload length", offIP + 4, offIP + 6, ErrMalformed},
			{"IPv6 hop limit", offIP + 7, offIP + 8, ErrMalformed},
		}
	}
	return append(fields,
		field{"UDP source port", l.udp, l.udp + 2, ErrMalformed},
		field{"UDP length", l.udp + 4, l.udp + 6, ErrMalformed},
		field{"UDP checksum", l.udp + 6, l.udp + 8, ErrMalformed},
		field{"BTH flags", l.bth + 1, l.bth + 2, ErrMalformed},
		field{"BTH P_Key", l.bth + 2, l.bth + 4, ErrMalformed},
		field{"BTH FECN, BECN and reserved bits", l.bth + 4, l.bth + 5, ErrMalformed},
		field{"BTH destination queue pair", l.bth + 5, l.bth + 8, ErrMalformed},
		field{"BTH acknowledge request and PSN", l.bth + 8, l.bth + 12, ErrMalformed})
}

// Parse decodes a CNP as its sender wrote it: an Ethernet frame without FCS or
// VLAN tags, which no router has changed (TTL 64, DSCP 48).
//
// An error wraps ErrNotCNP for any other kind of frame, ErrBadChecksum or
// ErrBadICRC for a CNP that was damaged, and ErrMalformed for one that has
// another length or is sound but not PCN's, such as that of a RoCE NIC. It
// names the first field that is wrong, its offset in bytes, its value and the
// right one.
func Parse(frame []byte) (CNP, error) {
	c, err := parse(frame)
	if err != nil {
		return CNP{}, fmt.Errorf("parse CNP: %w", err)
	}
	return c, nil
}

func parse(frame []byte) (CNP, error) {
	ipv6 := len(frame) >= offIP && binary.BigEndian.Uint16(frame[12:]) == etherTypeIPv6
	l := layoutOf(ipv6)
	c := decode(frame, ipv6)
	want := c.encode()
	if err := checkFields(frame, want, l.kind()); err != nil {
		return CNP{}, err
	}
	if err := checkLen(frame, l.end); err != nil {
		return CNP{}, err
	}
	if err := checkSums(frame, ipv6); err != nil {
		return CNP{}, err
	}
	if err := checkFields(frame, want, l.fixed()); err != nil {
		return CNP{}, err
	}
	if c.Src.Is4In6() || c.Dst.Is4In6() {
		return CNP{}, fmt.Errorf("%w: the IPv6 address at offset %d or %d is a mapped IPv4 address",
			ErrMalformed, offIP+8, offIP+24)
	}
	return c, nil
}

// checkSums checks the IPv4 header checksum and the ICRC of a received CNP.
func checkSums(frame []byte, ipv6 bool) error {
	ip, off := frame[offIP:], layoutOf(ipv6).icrc
	if !ipv6 {
		if got, want := binary.BigEndian.Uint16(ip[10:]), ipChecksum(ip); got != want {
			return fmt.Errorf("%w: at offset %d it is 0x%04x, want 0x%04x", ErrBadChecksum,
				offIP+10, got, want)
		}
	}
	if got, want := binary.LittleEndian.Uint32(frame[off:]), icrcOf(ip, ipv6); got != want {
		return fmt.Errorf("%w: at offset %d it is 0x%08x, want 0x%08x (little endian)", ErrBadICRC,
			off, got, want)
	}
	return nil
}

// decode reads the variable fields. Bytes that a short frame lacks count as zero.
func decode(frame []byte, ipv6 bool) CNP {
	var b [FrameLenIPv6]byte
	copy(b[:], frame)
	ip, l := b[offIP:], layoutOf(ipv6)
	tos := ip[1]
	if ipv6 {
		tos = ip[1] >> 4
	}
	reserved, decrease := b[l.reserved:], tos&ecnCE == ecnCE
	c := CNP{
		DstMAC:       [6]byte(b[:]),
		SrcMAC:       [6]byte(b[6:]),
		Src:          netip.AddrFrom4([4]byte(ip[12:])),
		Dst:          netip.AddrFrom4([4]byte(ip[16:])),
		Decrease:     decrease,
		Undetermined: !decrease && b[l.bth+4]&ue != 0,
		RecRateMbps:  binary.BigEndian.Uint32(reserved),
		FlowSrcPort:  binary.BigEndian.Uint16(reserved[4:]),
		FlowDstPort:  binary.BigEndian.Uint16(reserved[6:]),
		UDP:          b[l.reserved-1] == protocolUDP,
		Tag:          [8]byte(reserved[8:]),
	}
	if ipv6 {
		c.Src, c.Dst = netip.AddrFrom16([16]byte(ip[8:])), netip.AddrFrom16([16]byte(ip[24:]))
	}
	return c
}
