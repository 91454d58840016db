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
	// FrameLen is the length of a CNP in bytes, with Ethernet header, without FCS.
	FrameLen = 74

	// UDPPort is the destination port of RoCEv2.
	UDPPort = 4791

	// Opcode is the BTH opcode of a CNP.
	Opcode = 0x81

	// DSCP is the class of a CNP, NVIDIA's default for its NICs.
	DSCP = 48
)

// Where the parts of a CNP start.
const (
	offIP       = 14
	offUDP      = offIP + ipHeaderLen
	offBTH      = offUDP + udpHeaderLen
	offReserved = offBTH + bthLen
	offICRC     = FrameLen - icrcLen
)

const (
	etherTypeIPv4 = 0x0800
	ecnCE         = 0b11
	dontFragment  = 0x4000
	ttl           = 64
	defaultPKey   = 0xffff
	becn          = 0x40
	ue            = 0x20 // reserved in RoCE
)

var (
	// ErrNotCNP says that a frame is something other than a CNP over IPv4.
	ErrNotCNP = errors.New("not a CNP")

	// ErrBadChecksum says that the IPv4 header checksum of a CNP is wrong.
	ErrBadChecksum = errors.New("bad IPv4 header checksum")

	// ErrBadICRC says that the ICRC of a CNP is wrong: a byte it covers, such as
	// the RecRate, has changed on the way or was never covered.
	ErrBadICRC = errors.New("bad ICRC")
)

// CNP is PCN's congestion notification packet, from the receiver of a TCP flow
// to its sender. The package comment has the bytes.
type CNP struct {
	// DstMAC and SrcMAC are the Ethernet addresses: the flow's sender and receiver,
	// or the routers before them.
	DstMAC, SrcMAC [6]byte

	// Src and Dst are the IPv4 addresses of the CNP itself: Src is the receiver
	// of the flow, Dst its sender.
	Src, Dst netip.Addr

	// Decrease tells the sender to slow down: PCN's to RecRateMbps. Otherwise it is
	// to speed up, or to hold its rate.
	Decrease bool

	// Undetermined tells the sender to hold its rate, as TCD's receivers do that got
	// packets marked UE. It is not written beside Decrease, which overrides it.
	Undetermined bool

	// RecRateMbps is the rate at which the receiver got the flow, in Mbit/s. NP
	// writes 0 unless Decrease is set (PCN, figure 8).
	RecRateMbps uint32

	// FlowSrcPort and FlowDstPort are the TCP ports of the flow in the direction
	// of its data, from the CNP's Dst to its Src.
	FlowSrcPort, FlowDstPort uint16

	// Tag is zero for now.
	Tag [8]byte
}

var (
	_ encoding.BinaryAppender  = CNP{}
	_ encoding.BinaryMarshaler = CNP{}
)

// AppendBinary appends the frame, FrameLen bytes, to b. It is an error if Src
// or Dst is not an IPv4 address.
func (c CNP) AppendBinary(b []byte) ([]byte, error) {
	if !c.Src.Is4() {
		return b, fmt.Errorf("encode CNP: source address %q is not IPv4: unmap it, or use an IPv4 flow", c.Src)
	}
	if !c.Dst.Is4() {
		return b, fmt.Errorf("encode CNP: destination address %q is not IPv4: unmap it, or use an IPv4 flow", c.Dst)
	}
	return append(b, c.encode()...), nil
}

// MarshalBinary returns the frame, FrameLen bytes. Errors are those of
// AppendBinary.
func (c CNP) MarshalBinary() ([]byte, error) {
	b, err := c.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// encode returns the frame of a CNP that has IPv4 addresses.
func (c CNP) encode() []byte {
	frame := make([]byte, FrameLen)
	copy(frame, c.DstMAC[:])
	copy(frame[6:], c.SrcMAC[:])
	binary.BigEndian.PutUint16(frame[12:], etherTypeIPv4)
	c.putIP(frame[offIP:offUDP])
	c.putUDP(frame[offUDP:offBTH])
	c.putBTH(frame[offBTH:offReserved])
	c.putReserved(frame[offReserved:offICRC])
	binary.LittleEndian.PutUint32(frame[offICRC:], icrc(frame[offIP:]))
	return frame
}

func (c CNP) putIP(b []byte) {
	b[0] = 0x45
	b[1] = DSCP << 2
	if c.Decrease {
		b[1] |= ecnCE
	}
	binary.BigEndian.PutUint16(b[2:], FrameLen-offIP)
	binary.BigEndian.PutUint16(b[6:], dontFragment)
	b[8] = ttl
	b[9] = protocolUDP
	src, dst := c.Src.As4(), c.Dst.As4()
	copy(b[12:], src[:])
	copy(b[16:], dst[:])
	binary.BigEndian.PutUint16(b[10:], ipChecksum(b))
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

// cnpKind tells a CNP over IPv4 from other frames.
var cnpKind = []field{
	{"EtherType", 12, 14, ErrNotCNP},
	{"IPv4 version and header length", offIP, offIP + 1, ErrNotCNP},
	{"IPv4 protocol", offIP + 9, offIP + 10, ErrNotCNP},
	{"UDP destination port", offUDP + 2, offUDP + 4, ErrNotCNP},
	{"BTH opcode", offBTH, offBTH + 1, ErrNotCNP},
}

// cnpFixed is every other byte but the checksums that follows from the fields of
// a CNP.
var cnpFixed = []field{
	{"IPv4 TOS", offIP + 1, offIP + 2, ErrMalformed},
	{"IPv4 total length", offIP + 2, offIP + 4, ErrMalformed},
	{"IPv4 identification", offIP + 4, offIP + 6, ErrMalformed},
	{"IPv4 flags and fragment offset", offIP + 6, offIP + 8, ErrMalformed},
	{"IPv4 TTL", offIP + 8, offIP + 9, ErrMalformed},
	{"UDP source port", offUDP, offUDP + 2, ErrMalformed},
	{"UDP length", offUDP + 4, offUDP + 6, ErrMalformed},
	{"UDP checksum", offUDP + 6, offUDP + 8, ErrMalformed},
	{"BTH flags", offBTH + 1, offBTH + 2, ErrMalformed},
	{"BTH P_Key", offBTH + 2, offBTH + 4, ErrMalformed},
	{"BTH FECN, BECN and reserved bits", offBTH + 4, offBTH + 5, ErrMalformed},
	{"BTH destination queue pair", offBTH + 5, offBTH + 8, ErrMalformed},
	{"BTH acknowledge request and PSN", offBTH + 8, offBTH + 12, ErrMalformed},
}

// Parse decodes a CNP as its sender wrote it: an Ethernet frame without FCS or
// VLAN tag, which no router has changed (TTL 64, DSCP 48).
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
	c := decode(frame)
	want := c.encode()
	if err := checkFields(frame, want, cnpKind); err != nil {
		return CNP{}, err
	}
	if err := checkLen(frame, FrameLen); err != nil {
		return CNP{}, err
	}
	if err := checkSums(frame); err != nil {
		return CNP{}, err
	}
	if err := checkFields(frame, want, cnpFixed); err != nil {
		return CNP{}, err
	}
	return c, nil
}

// checkSums checks what protects a CNP, over the bytes that came.
func checkSums(frame []byte) error {
	ip := frame[offIP:]
	if got, want := binary.BigEndian.Uint16(ip[10:]), ipChecksum(ip); got != want {
		return fmt.Errorf("%w: at offset %d it is 0x%04x, want 0x%04x", ErrBadChecksum, offIP+10, got, want)
	}
	if got, want := binary.LittleEndian.Uint32(frame[offICRC:]), icrc(ip); got != want {
		return fmt.Errorf("%w: at offset %d it is 0x%08x, want 0x%08x (little endian)", ErrBadICRC, offICRC, got, want)
	}
	return nil
}

// decode reads the variable fields. What a short frame lacks counts as zero.
func decode(frame []byte) CNP {
	var b [FrameLen]byte
	copy(b[:], frame)
	ip, reserved := b[offIP:], b[offReserved:]
	decrease := ip[1]&ecnCE == ecnCE
	return CNP{
		DstMAC:       [6]byte(b[:]),
		SrcMAC:       [6]byte(b[6:]),
		Src:          netip.AddrFrom4([4]byte(ip[12:])),
		Dst:          netip.AddrFrom4([4]byte(ip[16:])),
		Decrease:     decrease,
		Undetermined: !decrease && b[offBTH+4]&ue != 0,
		RecRateMbps:  binary.BigEndian.Uint32(reserved),
		FlowSrcPort:  binary.BigEndian.Uint16(reserved[4:]),
		FlowDstPort:  binary.BigEndian.Uint16(reserved[6:]),
		Tag:          [8]byte(reserved[8:]),
	}
}
