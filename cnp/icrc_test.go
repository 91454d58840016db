// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// nicCNP was sent by a ConnectX-4 Lx NIC (scapy, test/contrib/roce.uts).
const nicCNP = `
	e41d2dab2bc2 7cfe90643b32 0800
	45c2003c 718c4000 40119161 0a001101 0a001201
	000012b7 00280000
	8100ffff 40000118 00000000
	00000000 00000000 00000000 00000000
	82fd002a`

// ucSend is a RoCEv2 UC SEND (scapy, test/contrib/roce.uts).
const ucSend = `
	248a07a8fa22 248a07a8fa22 0800
	45010040 04784000 4011b4d5 c0a80007 c0a80007
	c00012b7 002caca2
	2460ffff 000000d3 00cf1710
	4630818b e28935d9 0e9a9550 5401be88 5e500000
	78f353f3`

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	qt.Assert(tb, qt.IsNil(err))
	return b
}

// slowICRC is the ICRC bit by bit, from the specification: CRC-32 over a
// pseudo-header of ones and the packet with its variant fields set to ones.
func slowICRC(ipPacket []byte) uint32 {
	covered := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		ipPacket[:len(ipPacket)-4]...)
	for _, i := range []int{1, 8, 10, 11, 26, 27, 32} {
		covered[8+i] = 0xff
	}
	crc := ^uint32(0)
	for _, b := range covered {
		crc ^= uint32(b)
		for range 8 {
			low := crc & 1
			crc >>= 1
			if low == 1 {
				crc ^= 0xedb88320
			}
		}
	}
	return ^crc
}

func TestICRCOfPublishedPackets(t *testing.T) {
	for name, frame := range map[string]string{"ConnectX-4 Lx CNP": nicCNP, "UC SEND": ucSend} {
		t.Run(name, func(t *testing.T) {
			packet := unhex(t, frame)[offIP:]
			got, err := ICRC(packet)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, binary.LittleEndian.Uint32(packet[len(packet)-4:])))
			qt.Assert(t, qt.Equals(slowICRC(packet), got))
		})
	}
}

func TestICRCCoverage(t *testing.T) {
	variant := map[int]bool{1: true, 8: true, 10: true, 11: true, 26: true, 27: true, 32: true,
		56: true, 57: true, 58: true, 59: true}
	packet := unhex(t, nicCNP)[offIP:]
	want, err := ICRC(packet)
	qt.Assert(t, qt.IsNil(err))
	for i := range packet {
		changed := append([]byte(nil), packet...)
		changed[i] ^= 0x01
		got, err := ICRC(changed)
		if err != nil {
			qt.Assert(t, qt.IsFalse(variant[i]), qt.Commentf("offset %d: %v", i, err))
			continue
		}
		qt.Assert(t, qt.Equals(got == want, variant[i]), qt.Commentf("offset %d", i))
	}
}

func TestICRCKeepsThePacket(t *testing.T) {
	packet := unhex(t, nicCNP)[offIP:]
	_, err := ICRC(packet)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(packet, unhex(t, nicCNP)[offIP:]))
}

func TestICRCErrors(t *testing.T) {
	packet := unhex(t, nicCNP)[offIP:]
	tcp := append([]byte(nil), packet...)
	tcp[9] = 6
	for _, tc := range []struct {
		name   string
		packet []byte
		want   string
	}{
		{"nil", nil, "ICRC: packet of 0 bytes is too short for RoCEv2 over IPv4, want at least 44"},
		{"short", packet[:43], "ICRC: packet of 43 bytes is too short .*"},
		{"with Ethernet header", unhex(t, nicCNP), "ICRC: packet starts with 0xe4, want 0x45: .*"},
		{"TCP", tcp, `ICRC: IP protocol is 6, want 17 \(UDP\)`},
		{"without ICRC", packet[:56],
			"ICRC: IPv4 total length is 60, but the packet has 56 bytes: .*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ICRC(tc.packet)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}
