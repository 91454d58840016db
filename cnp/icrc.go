// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	ipHeaderLen   = 20
	ipv6HeaderLen = 40
	udpHeaderLen  = 8
	bthLen        = 12
	icrcLen       = 4

	protocolTCP = 6
	protocolUDP = 17

	// icrcSeed is the CRC-32 register after the eight bytes 0xFF that stand for
	// the InfiniBand local route header, which RoCEv2 does not have.
	icrcSeed = 0xdebb20e3
)

// ICRC returns the invariant CRC of a RoCEv2 packet. The packet starts with its IPv4 header, which
// has no options, and ends with the four bytes of the ICRC: their value is ignored. They hold the
// result in little endian.
//
// The ICRC leaves out what may change on the way: the TOS with its ECN, TTL,
// header checksum, UDP checksum and the BTH's byte of FECN, BECN and reserved
// bits (annex A17 of the InfiniBand specification; Linux's rxe_icrc.c).
//
// A packet that is too short, is not IPv4 with UDP or does not have the length
// its header says is an error.
func ICRC(ipPacket []byte) (uint32, error) {
	const minLen = ipHeaderLen + udpHeaderLen + bthLen + icrcLen
	if len(ipPacket) < minLen {
		return 0,
			fmt.Errorf("ICRC: packet of %d bytes is too short for RoCEv2 over IPv4, want at "+
				"least %d", len(ipPacket), minLen)
	}
	if ipPacket[0] != 0x45 {
		return 0,
			fmt.Errorf("ICRC: packet starts with 0x%02x, want 0x45: pass an IPv4 packet without "+
				"options or Ethernet header", ipPacket[0])
	}
	if ipPacket[9] != protocolUDP {
		return 0, fmt.Errorf("ICRC: IP protocol is %d, want %d (UDP)", ipPacket[9], protocolUDP)
	}
	if total := int(binary.BigEndian.Uint16(ipPacket[2:])); total != len(ipPacket) {
		return 0,
			fmt.Errorf("ICRC: IPv4 total length is %d, but the packet has %d bytes: pass it with "+
				"its ICRC and without padding", total, len(ipPacket))
	}
	return icrc(ipPacket), nil
}

// icrc computes ICRC without checking the packet.
func icrc(ipPacket []byte) uint32 {
	var hdr [ipHeaderLen + udpHeaderLen + bthLen]byte
	n := copy(hdr[:], ipPacket)
	udp, bth := hdr[ipHeaderLen:], hdr[ipHeaderLen+udpHeaderLen:]
	hdr[1], hdr[8], hdr[10], hdr[11] = 0xff, 0xff, 0xff, 0xff // TOS, TTL, checksum
	udp[6], udp[7] = 0xff, 0xff                               // checksum
	bth[4] = 0xff                                             // FECN, BECN, reserved

	// Update takes and returns the register inverted, as the ICRC is stored.
	crc := crc32.Update(^uint32(icrcSeed), crc32.IEEETable, hdr[:])
	return crc32.Update(crc, crc32.IEEETable, ipPacket[n:len(ipPacket)-icrcLen])
}

// icrcOf returns the ICRC of a CNP.
func icrcOf(ipPacket []byte, ipv6 bool) uint32 {
	if !ipv6 {
		return icrc(ipPacket)
	}
	m := append([]byte(nil), ipPacket[:len(ipPacket)-icrcLen]...)
	udp, bth := m[ipv6HeaderLen:], m[ipv6HeaderLen+udpHeaderLen:]
	m[0] |= 0x0f // traffic class and flow label, hop limit
	m[1], m[2], m[3], m[7] = 0xff, 0xff, 0xff, 0xff
	udp[6], udp[7] = 0xff, 0xff // checksum
	bth[4] = 0xff               // FECN, BECN, reserved
	return crc32.Update(^uint32(icrcSeed), crc32.IEEETable, m)
}
