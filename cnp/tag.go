// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding/binary"
	"time"

	"github.com/dchest/siphash"
)

// Key is the SipHash-2-4 key that signs CNPs. All hosts that send or obey signed CNPs share it.
type Key [16]byte

// Keys is the number of key slots of a host: two, so that a new key works before the old one goes.
const Keys = 2

const (
	// StampUnitNs is the unit of a tag's time.
	StampUnitNs = 1 << 13

	stampBits = 31
	stampMask = 1<<stampBits - 1
)

// Stamp returns the tag's form of a wall-clock time: in units of StampUnitNs, wrapping every 4.9
// hours.
func Stamp(at time.Time) uint32 { return uint32(at.UnixNano()/StampUnitNs) & stampMask }

// Sign sets the tag with the key of a slot, 0 or 1. Later changes of the CNP make the tag invalid.
func (c *CNP) Sign(key Key, slot int, at time.Time) {
	word := uint32(slot)<<stampBits | Stamp(at)
	binary.BigEndian.PutUint32(c.Tag[:], word)
	binary.BigEndian.PutUint32(c.Tag[4:], c.mac(key, word))
}

// Saw sets the tag to what a CNP without signature tells: the sequence and acknowledgment numbers
// of the data packet that it answers. A flow of UDP has none.
func (c *CNP) Saw(seq, ack uint32) {
	binary.BigEndian.PutUint32(c.Tag[:], seq)
	binary.BigEndian.PutUint32(c.Tag[4:], ack)
}

// Signed reports whether the CNP has a tag, with the key slot and the Stamp that the tag claims.
func (c CNP) Signed() (slot int, stamp uint32, ok bool) {
	word := binary.BigEndian.Uint32(c.Tag[:])
	return int(word >> stampBits), word & stampMask, c.Tag != [8]byte{}
}

// Verify reports whether the tag was made with this key for this CNP. It checks neither age nor
// replay.
func (c CNP) Verify(key Key) bool {
	return c.Tag != [8]byte{} &&
		c.mac(key, binary.BigEndian.Uint32(c.Tag[:])) == binary.BigEndian.Uint32(c.Tag[4:])
}

// mac returns the upper half of SipHash-2-4 over the fields that docs/security.md lists.
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
