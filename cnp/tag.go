// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding/binary"
	"time"

	"github.com/dchest/siphash"
)

// Key signs CNPs: the key of SipHash-2-4. Every host that sends or obeys signed CNPs has it.
type Key [16]byte

// Keys is how many keys a host has at a time, so that a new one comes before the old one goes.
const Keys = 2

const (
	// StampUnitNs is the unit of a tag's time.
	StampUnitNs = 1 << 13

	stampBits = 31
	stampMask = 1<<stampBits - 1
)

// Stamp is a time as a tag has it: of the wall clock, in units of StampUnitNs, beginning anew every
// 4.9 hours.
func Stamp(at time.Time) uint32 { return uint32(at.UnixNano()/StampUnitNs) & stampMask }

// Sign makes the tag, with the key that hosts have in this slot, 0 or 1. What changes afterwards is
// not signed.
func (c *CNP) Sign(key Key, slot int, at time.Time) {
	word := uint32(slot)<<stampBits | Stamp(at)
	binary.BigEndian.PutUint32(c.Tag[:], word)
	binary.BigEndian.PutUint32(c.Tag[4:], c.mac(key, word))
}

// Signed says whether there is a tag, and by the key in which slot and at which Stamp it says that
// it was made.
func (c CNP) Signed() (slot int, stamp uint32, ok bool) {
	word := binary.BigEndian.Uint32(c.Tag[:])
	return int(word >> stampBits), word & stampMask, c.Tag != [8]byte{}
}

// Verify says whether the tag was made with this key, and for this CNP. Age and repetition are not
// looked at.
func (c CNP) Verify(key Key) bool {
	return c.Tag != [8]byte{} && c.mac(key, binary.BigEndian.Uint32(c.Tag[:])) == binary.BigEndian.Uint32(c.Tag[4:])
}

// mac is the upper half of SipHash-2-4 over what docs/security.md says.
func (c CNP) mac(key Key, word uint32) uint32 {
	m := append(c.Src.AsSlice(), c.Dst.AsSlice()...)
	m = binary.BigEndian.AppendUint32(m, c.RecRateMbps)
	m = binary.BigEndian.AppendUint16(m, c.FlowSrcPort)
	m = binary.BigEndian.AppendUint16(m, c.FlowDstPort)
	m = binary.BigEndian.AppendUint32(m, word)
	verdict, protocol := byte(0), byte(protocolTCP)
	switch {
	case c.Decrease:
		verdict = 1
	case c.Undetermined:
		verdict = 2
	}
	if c.UDP {
		protocol = protocolUDP
	}
	m = append(m, verdict, protocol, 0, 0)
	k0, k1 := binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])
	return uint32(siphash.Hash(k0, k1, m) >> 32)
}
