// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// PFCFrameLen is the length of a PFC frame in bytes, with Ethernet header and
	// padding, without FCS.
	PFCFrameLen = 60

	// PFCClasses is the number of classes that PFC can pause.
	PFCClasses = 8

	// MaxQuanta is the longest pause a PFC frame can ask for.
	MaxQuanta = 0xffff
)

// Offsets in a PFC frame, in bytes.
const (
	offPFCOpcode  = 14
	offPFCClasses = 16
	offPFCQuanta  = 18
	offPFCPad     = offPFCQuanta + 2*PFCClasses
)

const (
	etherTypeMACControl = 0x8808
	opcodePFC           = 0x0101
)

// ErrNotPFC says that a frame is something other than a PFC frame.
var ErrNotPFC = errors.New("not a PFC frame")

// PFC is a priority flow control frame (IEEE 802.1Qbb, now in 802.1Q): a port
// tells the one at the other end of its link to pause classes or to resume them.
type PFC struct {
	// SrcMAC is the address of the port that sends the frame.
	SrcMAC [6]byte

	// Classes has bit i set if Quanta[i] counts.
	Classes uint8

	// Quanta is how long to pause each class, in units of 512 bit times of the
	// link. Zero resumes the class.
	Quanta [PFCClasses]uint16
}

var (
	_ encoding.BinaryAppender  = PFC{}
	_ encoding.BinaryMarshaler = PFC{}
)

// Pause returns the frame by which the port with address srcMAC pauses a class
// for MaxQuanta. It is an error if class is not 0 to 7.
func Pause(srcMAC [6]byte, class int) (PFC, error) {
	return single(srcMAC, class, MaxQuanta)
}

// Resume returns the frame by which the port with address srcMAC ends the pause
// of a class. It is an error if class is not 0 to 7.
func Resume(srcMAC [6]byte, class int) (PFC, error) {
	return single(srcMAC, class, 0)
}

func single(srcMAC [6]byte, class int, quanta uint16) (PFC, error) {
	if class < 0 || class >= PFCClasses {
		return PFC{}, fmt.Errorf("make PFC frame: class %d is not in 0 to %d", class, PFCClasses-1)
	}
	p := PFC{SrcMAC: srcMAC, Classes: 1 << class}
	p.Quanta[class] = quanta
	return p, nil
}

// AppendBinary appends the frame, PFCFrameLen bytes, to b. The error is always
// nil.
func (p PFC) AppendBinary(b []byte) ([]byte, error) {
	return append(b, p.encode()...), nil
}

// MarshalBinary returns the frame, PFCFrameLen bytes. The error is always nil.
func (p PFC) MarshalBinary() ([]byte, error) {
	return p.encode(), nil
}

func (p PFC) encode() []byte {
	frame := make([]byte, PFCFrameLen)
	copy(frame, []byte{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01})
	copy(frame[6:], p.SrcMAC[:])
	binary.BigEndian.PutUint16(frame[12:], etherTypeMACControl)
	binary.BigEndian.PutUint16(frame[offPFCOpcode:], opcodePFC)
	binary.BigEndian.PutUint16(frame[offPFCClasses:], uint16(p.Classes))
	for class, quanta := range p.Quanta {
		binary.BigEndian.PutUint16(frame[offPFCQuanta+2*class:], quanta)
	}
	return frame
}

// pfcKind holds the fields that tell a PFC frame from others, such as an 802.3x PAUSE.
var pfcKind = []field{
	{"EtherType", 12, 14, ErrNotPFC},
	{"MAC control opcode", offPFCOpcode, offPFCOpcode + 2, ErrNotPFC},
}

// pfcFixed holds the other fields that are the same in all PFC frames.
var pfcFixed = []field{
	{"destination address", 0, 6, ErrMalformed},
	{"high byte of the class-enable vector", offPFCClasses, offPFCClasses + 1, ErrMalformed},
	{"padding", offPFCPad, PFCFrameLen, ErrMalformed},
}

// ParsePFC decodes an untagged PFC frame without FCS. An error wraps ErrNotPFC
// for any other kind of frame and ErrMalformed for a PFC frame with a wrong
// length, destination, class-enable vector or padding. It names the field, its
// offset in bytes, its value and the right one.
func ParsePFC(frame []byte) (PFC, error) {
	p, err := parsePFC(frame)
	if err != nil {
		return PFC{}, fmt.Errorf("parse PFC frame: %w", err)
	}
	return p, nil
}

func parsePFC(frame []byte) (PFC, error) {
	p := decodePFC(frame)
	want := p.encode()
	if err := checkFields(frame, want, pfcKind); err != nil {
		return PFC{}, err
	}
	if err := checkLen(frame, PFCFrameLen); err != nil {
		return PFC{}, err
	}
	if err := checkFields(frame, want, pfcFixed); err != nil {
		return PFC{}, err
	}
	return p, nil
}

// decodePFC reads the variable fields. Bytes that a short frame lacks count as zero.
func decodePFC(frame []byte) PFC {
	var b [PFCFrameLen]byte
	copy(b[:], frame)
	p := PFC{SrcMAC: [6]byte(b[6:]), Classes: b[offPFCClasses+1]}
	for class := range p.Quanta {
		p.Quanta[class] = binary.BigEndian.Uint16(b[offPFCQuanta+2*class:])
	}
	return p
}
