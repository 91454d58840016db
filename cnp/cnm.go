// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	// EtherTypeCNM is the EtherType of a CNM.
	EtherTypeCNM = 0x22e7

	// MinCNMLen and MaxCNMLen bound the length of a CNM in bytes, with Ethernet
	// header and padding, without FCS. It is MaxCNMLen if MSDU is full.
	MinCNMLen, MaxCNMLen = 60, offMSDU + MaxMSDULen

	// MaxMSDULen is how many bytes of the sampled frame a CNM has room for.
	MaxMSDULen = 64

	// MaxQntzFb says that the queue is as congested as QntzFb can tell.
	MaxQntzFb = 63

	// CNMQueueUnit is the unit of CnmQOffset and CnmQDelta in bytes. The value is from memory of
	// IEEE 802.1Q, not from a source.
	CNMQueueUnit = 1 << queueUnitShift
)

// Offsets in a CNM, in bytes.
const (
	offQntzFb        = ethernetHeaderLen
	offCPID          = offQntzFb + 2
	offQOffset       = offCPID + 8
	offQDelta        = offQOffset + 2
	offEncapPriority = offQDelta + 2
	offEncapDest     = offEncapPriority + 2
	offMSDULen       = offEncapDest + 6
	offMSDU          = offMSDULen + 2
)

const (
	ethernetHeaderLen = 14
	etherTypeVLAN     = 0x8100
	priorities        = 8
	priorityShift     = 13
	queueUnitShift    = 6
)

// ErrNotCNM says that a frame is something other than a CNM.
var ErrNotCNM = errors.New("not a CNM")

// CNM is QCN's congestion notification message (IEEE 802.1Qau, now in 802.1Q):
// a congestion point tells the sender of a frame that it sampled how congested
// its queue is. The package comment has the bytes.
type CNM struct {
	// DstMAC is the sender of the sampled frame, SrcMAC the congestion point.
	DstMAC, SrcMAC [6]byte

	// QntzFb is how congested the queue is, 0 to MaxQntzFb: -Fb, quantised.
	QntzFb uint8

	// CPID identifies the congestion point.
	CPID uint64

	// CnmQOffset is how much longer the queue is than it should be, CnmQDelta by
	// how much it grew since the last sample, both in CNMQueueUnit.
	CnmQOffset, CnmQDelta int16

	// EncapsulatedPriority is the priority of the sampled frame, 0 to 7. That it is
	// in the upper three of its 16 bits is from memory of the standard.
	EncapsulatedPriority uint8

	// EncapsulatedDestination is the destination of the sampled frame.
	EncapsulatedDestination [6]byte

	// MSDU is the start of what follows the Ethernet header in the sampled frame, at
	// most MaxMSDULen bytes.
	MSDU []byte
}

var (
	_ encoding.BinaryAppender  = CNM{}
	_ encoding.BinaryMarshaler = CNM{}
)

// NewCNM returns the CNM that answers a sampled Ethernet frame; the caller fills in the state of
// the queue. The CNM's source is the frame's destination, because congestion points have no MAC
// address (HP's FlexFabric 5700 does the same). It fails if the frame has a VLAN tag or no whole
// Ethernet header.
func NewCNM(sampled []byte) (CNM, error) {
	if len(sampled) < ethernetHeaderLen {
		return CNM{},
			fmt.Errorf("make CNM: the sampled frame has %d bytes, want an Ethernet header of %d",
				len(sampled), ethernetHeaderLen)
	}
	if binary.BigEndian.Uint16(sampled[12:]) == etherTypeVLAN {
		return CNM{}, errors.New("make CNM: the sampled frame has a VLAN tag: take it out")
	}
	msdu := sampled[ethernetHeaderLen:]
	return CNM{
		DstMAC:                  [6]byte(sampled[6:]),
		SrcMAC:                  [6]byte(sampled),
		EncapsulatedDestination: [6]byte(sampled),
		MSDU:                    clone(msdu[:min(len(msdu), MaxMSDULen)]),
	}, nil
}

// CNMQueueUnits converts bytes of a queue to the unit of CnmQOffset and CnmQDelta, rounded down and
// limited to 16 bits.
func CNMQueueUnits(bytes int64) int16 {
	return int16(min(max(bytes>>queueUnitShift, math.MinInt16), math.MaxInt16))
}

// AppendBinary appends the frame, MinCNMLen to MaxCNMLen bytes, to b. It is an
// error if QntzFb, EncapsulatedPriority or MSDU is too large.
func (c CNM) AppendBinary(b []byte) ([]byte, error) {
	if c.QntzFb > MaxQntzFb {
		return b, fmt.Errorf("encode CNM: QntzFb %d is not in 0 to %d", c.QntzFb, MaxQntzFb)
	}
	if c.EncapsulatedPriority >= priorities {
		return b, fmt.Errorf("encode CNM: encapsulated priority %d is not in 0 to %d",
			c.EncapsulatedPriority, priorities-1)
	}
	if len(c.MSDU) > MaxMSDULen {
		return b, fmt.Errorf("encode CNM: encapsulated MSDU has %d bytes, want at most %d: cut it",
			len(c.MSDU), MaxMSDULen)
	}
	return append(b, c.encode()...), nil
}

// MarshalBinary returns the frame, MinCNMLen to MaxCNMLen bytes. Errors are those
// of AppendBinary.
func (c CNM) MarshalBinary() ([]byte, error) {
	b, err := c.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// encode returns the frame of a CNM whose fields fit.
func (c CNM) encode() []byte {
	frame := make([]byte, max(MinCNMLen, offMSDU+len(c.MSDU)))
	copy(frame, c.DstMAC[:])
	copy(frame[6:], c.SrcMAC[:])
	binary.BigEndian.PutUint16(frame[12:], EtherTypeCNM)
	binary.BigEndian.PutUint16(frame[offQntzFb:], uint16(c.QntzFb))
	binary.BigEndian.PutUint64(frame[offCPID:], c.CPID)
	binary.BigEndian.PutUint16(frame[offQOffset:], uint16(c.CnmQOffset))
	binary.BigEndian.PutUint16(frame[offQDelta:], uint16(c.CnmQDelta))
	binary.BigEndian.PutUint16(frame[offEncapPriority:],
		uint16(c.EncapsulatedPriority)<<priorityShift)
	copy(frame[offEncapDest:], c.EncapsulatedDestination[:])
	binary.BigEndian.PutUint16(frame[offMSDULen:], uint16(len(c.MSDU)))
	copy(frame[offMSDU:], c.MSDU)
	return frame
}

// cnmKind holds the fields that tell a CNM from other frames.
var cnmKind = []field{
	{"EtherType", 12, 14, ErrNotCNM},
}

// cnmPDU holds the fields with bits that are the same in all CNMs, or with bounds.
var cnmPDU = []field{
	{"version, reserved bits and QntzFb", offQntzFb, offQntzFb + 2, ErrMalformed},
	{"encapsulated priority and its reserved bits", offEncapPriority, offEncapPriority + 2,
		ErrMalformed},
	{"encapsulated MSDU length", offMSDULen, offMSDULen + 2, ErrMalformed},
}

// ParseCNM decodes a CNM without FCS, VLAN tag or CN-TAG. An error wraps
// ErrNotCNM for any other kind of frame and ErrMalformed for a CNM of another
// version, with reserved bits set, an MSDU of more than MaxMSDULen bytes (the
// right length is then given as MaxMSDULen), a wrong length or padding. It names
// the field, its offset in bytes, its value and the right one.
func ParseCNM(frame []byte) (CNM, error) {
	c, err := parseCNM(frame)
	if err != nil {
		return CNM{}, fmt.Errorf("parse CNM: %w", err)
	}
	return c, nil
}

func parseCNM(frame []byte) (CNM, error) {
	c := decodeCNM(frame)
	want := c.encode()
	if err := checkFields(frame, want, cnmKind); err != nil {
		return CNM{}, err
	}
	if err := checkFields(frame, want, cnmPDU); err != nil {
		return CNM{}, err
	}
	if err := checkLen(frame, len(want)); err != nil {
		return CNM{}, err
	}
	padding := field{"padding", offMSDU + len(c.MSDU), len(want), ErrMalformed}
	if err := padding.check(frame, want); err != nil {
		return CNM{}, err
	}
	return c, nil
}

// decodeCNM reads the variable fields. Bytes that a short frame lacks count as zero.
func decodeCNM(frame []byte) CNM {
	var b [MaxCNMLen]byte
	copy(b[:], frame)
	msduLen := min(binary.BigEndian.Uint16(b[offMSDULen:]), MaxMSDULen)
	return CNM{
		DstMAC:                  [6]byte(b[:]),
		SrcMAC:                  [6]byte(b[6:]),
		QntzFb:                  b[offQntzFb+1] & MaxQntzFb,
		CPID:                    binary.BigEndian.Uint64(b[offCPID:]),
		CnmQOffset:              int16(binary.BigEndian.Uint16(b[offQOffset:])),
		CnmQDelta:               int16(binary.BigEndian.Uint16(b[offQDelta:])),
		EncapsulatedPriority:    b[offEncapPriority] >> (priorityShift - 8),
		EncapsulatedDestination: [6]byte(b[offEncapDest:]),
		MSDU:                    clone(b[offMSDU : offMSDU+msduLen]),
	}
}

// clone returns a copy of an MSDU, nil for an empty one.
func clone(msdu []byte) []byte {
	return append([]byte(nil), msdu...)
}
