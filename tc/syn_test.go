// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/layers"

	"github.com/pcn-linux/pcn/internal/nstest"
)

// Only SYNs that ask for a connection lose ECT, and nothing else of them changes but the checksum.
func TestPlainSYN(t *testing.T) {
	nstest.RequireRoot(t)
	s, err := LoadPlainSYN()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { s.Close() })
	f := someFlow()
	const dscp = 26 << 2
	flags := func(syn, ack bool) func(*layers.IPv4, *layers.TCP) {
		return func(_ *layers.IPv4, tcp *layers.TCP) {
			tcp.SYN, tcp.ACK, tcp.ECE, tcp.CWR = syn,
				ack, true, true
		}
	}
	options := func(ip *layers.IPv4, _ *layers.TCP) {
		ip.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1},
			{OptionType: 0}}
	}
	// of offsets, the ECN bits there go
	plain := func(frame []byte, ipv6 bool, at int) []byte {
		frame = bytes.Clone(frame)
		if ipv6 {
			frame[at+1] &^= 0x30
			return frame
		}
		frame[at+1] &^= 3
		fixChecksum(frame)
		return frame
	}
	syn6 := f.tcpIPv6(t)
	syn6[offIP+1] |= 2 << 4    // ECT(0)
	syn6[offIP+40+13] = 2 | 64 // SYN, ECE
	data6 := bytes.Clone(syn6)
	data6[offIP+40+13] = 16
	syn := f.tcp(t, dscp|ect0, 0, flags(true, false))
	for _, c := range []struct {
		name        string
		frame, want []byte
	}{
		{"SYN", syn, plain(syn, false, offIP)},
		{"SYN, CE", f.tcp(t, dscp|3, 0, flags(true, false)),
			plain(f.tcp(t, dscp|3, 0, flags(true, false)), false, offIP)},
		{"plain SYN", f.tcp(t, dscp, 0, flags(true, false)), nil},
		{"SYN-ACK", f.tcp(t, dscp|ect0, 0, flags(true, true)), nil},
		{"data", f.tcp(t, dscp|ect0, 1000, flags(false, true)), nil},
		{"UDP", f.udp(t, dscp|ect0, 1000), nil},
		{"IPv6 SYN", syn6, plain(syn6, true, offIP)},
		{"IPv6 data", data6, nil},
		{"SYN in a VLAN", vlan(syn, 5), vlan(plain(syn, false, offIP), 5)},
		{"IPv6 SYN in a VLAN", vlan(syn6, 5), vlan(plain(syn6, true, offIP), 5)},
		{"ARP", f.arp(t), nil},
		{"cut short", syn[:offIP+20+12], nil},
		{"IPv6, cut short", syn6[:offIP+40+12], nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == nil {
				c.want = c.frame
			}
			passes(t, s.run(t, here, "syn", c.frame, skBuff{}), c.want)
		})
	}
	t.Run("SYN behind options of IPv4", func(t *testing.T) {
		frame := f.tcp(t, dscp|ect0, 0, flags(true, false), options)
		r := s.run(t, here, "syn", frame, skBuff{})
		qt.Check(t, qt.Equals(r.frame[offIP+1], dscp))
		qt.Check(t, qt.Equals(onesSum(r.frame[offIP:offIP+24]), 0xffff))
	})
}

// onesSum is the ones' complement sum of a header, all ones if its checksum is right.
func onesSum(header []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(header[i])<<8 | uint32(header[i+1])
	}
	return uint16(sum + sum>>16)
}
