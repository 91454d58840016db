// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// decrease tells 10.0.0.1:40000 to go down to 9500 Mbit/s towards 10.0.1.2:5001.
func decrease() CNP {
	return CNP{
		DstMAC:      [6]byte{0x02, 0, 0, 0, 0, 0x01},
		SrcMAC:      [6]byte{0x02, 0, 0, 0, 0, 0x02},
		Src:         netip.MustParseAddr("10.0.1.2"),
		Dst:         netip.MustParseAddr("10.0.0.1"),
		Decrease:    true,
		RecRateMbps: 9500,
		FlowSrcPort: 40000,
		FlowDstPort: 5001,
	}
}

func increase() CNP {
	c := decrease()
	c.Decrease = false
	c.RecRateMbps = 0
	c.Tag = [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	return c
}

// hold is an increase with the bit that makes it a hold.
func hold() CNP {
	c := increase()
	c.Undetermined = true
	return c
}

func marshal(tb testing.TB, c CNP) []byte {
	tb.Helper()
	frame, err := c.MarshalBinary()
	qt.Assert(tb, qt.IsNil(err))
	return frame
}

// The bytes are those of a Python script written from the specification.
func TestCNPGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		cnp  CNP
		want string
	}{
		{"decrease", decrease(), `
			020000000001 020000000002 0800
			45c3003c 00004000 401124ec 0a000102 0a000001
			cfc912b7 00280000
			8100ffff 40000000 00000000
			0000251c 9c401389 00000000 00000000
			a23872eb`},
		{"increase", increase(), `
			020000000001 020000000002 0800
			45c0003c 00004000 401124ef 0a000102 0a000001
			cfc912b7 00280000
			8100ffff 40000000 00000000
			00000000 9c401389 01020304 05060708
			9a66e0d6`},
		{"hold", hold(), `
			020000000001 020000000002 0800
			45c0003c 00004000 401124ef 0a000102 0a000001
			cfc912b7 00280000
			8100ffff 60000000 00000000
			00000000 9c401389 01020304 05060708
			9a66e0d6`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := unhex(t, tc.want)
			qt.Assert(t, qt.DeepEquals(marshal(t, tc.cnp), want))
			got, err := Parse(want)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, tc.cnp))
		})
	}
}

// A decrease overrides a hold: the bit is not written.
func TestCNPDecreaseOverridesHold(t *testing.T) {
	c := decrease()
	c.Undetermined = true
	qt.Assert(t, qt.DeepEquals(marshal(t, c), marshal(t, decrease())))
}

// A switch may set ECN bits, so the ICRC must not cover the verdict.
func TestCNPVerdictIsOutsideICRC(t *testing.T) {
	c := decrease()
	down := marshal(t, c)
	c.Decrease = false
	up := marshal(t, c)
	qt.Assert(t, qt.DeepEquals(down[offICRC:], up[offICRC:]))
}

func TestCNPAppendBinary(t *testing.T) {
	frame := marshal(t, decrease())
	got, err := decrease().AppendBinary([]byte("before"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(got), "before"+string(frame)))
}

func TestCNPMarshalErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*CNP)
		want   string
	}{
		{"no source", func(c *CNP) { c.Src = netip.Addr{} },
			`encode CNP: source address "invalid IP" is neither IPv4 nor IPv6: .*`},
		{"IPv6 source", func(c *CNP) { c.Src = netip.IPv6Loopback() },
			`encode CNP: source address "::1" and destination address "10.0.0.1" are not of one family`},
		{"mapped destination", func(c *CNP) { c.Dst = netip.MustParseAddr("::ffff:10.0.0.1") },
			`encode CNP: destination address "::ffff:10.0.0.1" is neither IPv4 nor IPv6: .* unmap it`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := decrease()
			tc.change(&c)
			frame, err := c.MarshalBinary()
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
			qt.Assert(t, qt.IsNil(frame))
			before := []byte("before")
			after, err := c.AppendBinary(before)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
			qt.Assert(t, qt.DeepEquals(after, before))
		})
	}
}

// repair makes the checksums of a CNP-sized frame right again.
func repair(frame []byte) {
	ip := frame[offIP:]
	binary.BigEndian.PutUint16(ip[10:], 0)
	var sum uint32
	for i := 0; i < ipHeaderLen; i += 2 {
		sum += uint32(ip[i])<<8 + uint32(ip[i+1])
	}
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	binary.LittleEndian.PutUint32(frame[offICRC:], slowICRC(ip))
}

func TestParseErrors(t *testing.T) {
	set := func(off int, values ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[off:], values); return b }
	}
	cut := func(n int) func([]byte) []byte {
		return func(b []byte) []byte { return b[:n] }
	}
	// forged changes a CNP and makes the checksums right for it.
	forged := func(off int, values ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[off:], values); repair(b); return b }
	}
	for _, tc := range []struct {
		name   string
		change func([]byte) []byte
		is     error
		want   string
	}{
		{"empty", cut(0), ErrNotCNP,
			"parse CNP: not a CNP: the frame ends after 0 bytes, before the end of EtherType at offset 12"},
		{"cut before the opcode", cut(42), ErrNotCNP,
			".*the frame ends after 42 bytes, before the end of BTH opcode at offset 42"},
		{"cut in the ICRC", cut(73), ErrMalformed,
			"parse CNP: malformed frame: it has 73 bytes, want 74: .*"},
		{"with FCS", func(b []byte) []byte { return append(b, 0, 0, 0, 0) }, ErrMalformed,
			".*it has 78 bytes, want 74: .* without FCS"},
		{"ARP", set(12, 0x08, 0x06), ErrNotCNP,
			"parse CNP: not a CNP: EtherType at offset 12 is 0x0806, want 0x0800"},
		{"VLAN tag", set(12, 0x81, 0x00), ErrNotCNP,
			".*EtherType at offset 12 is 0x8100, want 0x0800"},
		{"IPv4 options", set(14, 0x46), ErrNotCNP,
			".*IPv4 version and header length at offset 14 is 0x46, want 0x45"},
		{"TCP", set(23, 6), ErrNotCNP, ".*IPv4 protocol at offset 23 is 0x06, want 0x11"},
		{"DNS", set(36, 0, 53), ErrNotCNP,
			".*UDP destination port at offset 36 is 0x0035, want 0x12b7"},
		{"RoCE ACK", set(42, 0x11), ErrNotCNP, ".*BTH opcode at offset 42 is 0x11, want 0x81"},

		{"damaged TTL", set(22, 63), ErrBadChecksum,
			"parse CNP: bad IPv4 header checksum: at offset 24 it is 0x24ec, want 0x25ec"},
		{"damaged address", set(33, 9), ErrBadChecksum, ".*checksum: at offset 24 .*"},
		{"negative zero checksum", func(b []byte) []byte {
			// The header sums up to 0xffff, so its checksum is 0; 0xffff is the same to a sum.
			b = forged(26, 0, 0)(b)
			b = forged(26, b[24], b[25])(b)
			return set(24, 0xff, 0xff)(b)
		}, ErrBadChecksum, ".*at offset 24 it is 0xffff, want 0x0000"},
		{"damaged RecRate", set(57, 0x1d), ErrBadICRC,
			"parse CNP: bad ICRC: at offset 70 it is 0x[0-9a-f]{8}, want 0x[0-9a-f]{8} .*"},
		{"damaged tag", set(69, 1), ErrBadICRC, ".*bad ICRC: at offset 70 .*"},
		{"damaged flow port", set(58, 0), ErrBadICRC, ".*bad ICRC: at offset 70 .*"},
		{"ICRC in the wrong byte order", func(b []byte) []byte {
			b[70], b[71], b[72], b[73] = b[73], b[72], b[71], b[70]
			return b
		}, ErrBadICRC, ".*bad ICRC: at offset 70 .*"},

		{"other DSCP", forged(15, 0x03), ErrMalformed,
			"parse CNP: malformed frame: IPv4 TOS at offset 15 is 0x03, want 0xc3"},
		{"ECT(0)", forged(15, 0xc2), ErrMalformed, ".*IPv4 TOS at offset 15 is 0xc2, want 0xc0"},
		{"ECT(1)", forged(15, 0xc1), ErrMalformed, ".*IPv4 TOS at offset 15 is 0xc1, want 0xc0"},
		{"total length", forged(16, 0, 61), ErrMalformed,
			".*IPv4 total length at offset 16 is 0x003d, want 0x003c"},
		{"identification", forged(18, 0, 1), ErrMalformed,
			".*IPv4 identification at offset 18 is 0x0001, want 0x0000"},
		{"may fragment", forged(20, 0, 0), ErrMalformed,
			".*IPv4 flags and fragment offset at offset 20 is 0x0000, want 0x4000"},
		{"routed", forged(22, 63), ErrMalformed, ".*IPv4 TTL at offset 22 is 0x3f, want 0x40"},
		{"entropy", forged(34, 0xc0, 0), ErrMalformed,
			".*UDP source port at offset 34 is 0xc000, want 0xcfc9"},
		{"UDP length", forged(38, 0, 41), ErrMalformed,
			".*UDP length at offset 38 is 0x0029, want 0x0028"},
		{"UDP checksum", forged(40, 1, 2), ErrMalformed,
			".*UDP checksum at offset 40 is 0x0102, want 0x0000"},
		{"solicited", forged(43, 0x80), ErrMalformed,
			".*BTH flags at offset 43 is 0x80, want 0x00"},
		{"P_Key", forged(44, 0x7f), ErrMalformed,
			".*BTH P_Key at offset 44 is 0x7fff, want 0xffff"},
		{"no BECN", forged(46, 0), ErrMalformed,
			".*BTH FECN, BECN and reserved bits at offset 46 is 0x00, want 0x40"},
		{"FECN", forged(46, 0xc0), ErrMalformed,
			".*BTH FECN, BECN and reserved bits at offset 46 is 0xc0, want 0x40"},
		{"hold in a decrease", forged(46, 0x60), ErrMalformed,
			".*BTH FECN, BECN and reserved bits at offset 46 is 0x60, want 0x40"},
		{"queue pair", forged(49, 0xd2), ErrMalformed,
			".*BTH destination queue pair at offset 47 is 0x0000d2, want 0x000000"},
		{"acknowledge request", forged(50, 0x80), ErrMalformed,
			".*BTH acknowledge request and PSN at offset 50 is 0x80000000, want 0x00000000"},
		{"PSN", forged(53, 1), ErrMalformed,
			".*BTH acknowledge request and PSN at offset 50 is 0x00000001, want 0x00000000"},
		{"CNP of a NIC", func([]byte) []byte { return unhex(t, nicCNP) }, ErrMalformed,
			".*IPv4 TOS at offset 15 is 0xc2, want 0xc0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Parse(tc.change(marshal(t, decrease())))
			qt.Assert(t, qt.ErrorIs(err, tc.is))
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
			qt.Assert(t, qt.Equals(got, CNP{}))
		})
	}
}

// No byte behind the MAC addresses may change unnoticed, nor may any fixed byte
// be forged with right checksums.
func TestParseSeesEveryBit(t *testing.T) {
	variable := func(off int) bool {
		return off >= 26 && off < 34 || off >= 54 && off < 58 ||
			off >= 62 && off < 70
	}
	for bit := range 8 * FrameLen {
		frame := marshal(t, decrease())
		off := bit / 8
		frame[off] ^= 1 << (bit % 8)
		_, err := Parse(frame)
		qt.Assert(t, qt.Equals(err == nil, off < 12),
			qt.Commentf("bit %d of offset %d: %v", bit%8, off, err))

		repair(frame)
		_, err = Parse(frame)
		checksum := off == 24 || off == 25 || off >= offICRC
		accepted := off < 12 || variable(off) || checksum
		if off == 58 || off == 60 {
			accepted = bit%8 >= 6 // the entropy leaves out the upper two bits of a port
		}
		qt.Assert(t, qt.Equals(err == nil, accepted),
			qt.Commentf("forged bit %d of offset %d: %v", bit%8, off, err))
	}
}

// checkWithGopacket compares a CNP's frame with an independent decoder of
// Ethernet, IPv4 and UDP, and with the bytes of its specification above that.
func checkWithGopacket(tb testing.TB, c CNP, frame []byte) {
	tb.Helper()
	p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	eth, ok := p.LinkLayer().(*layers.Ethernet)
	qt.Assert(tb, qt.IsTrue(ok))
	qt.Check(tb, qt.DeepEquals([]byte(eth.DstMAC), c.DstMAC[:]))
	qt.Check(tb, qt.DeepEquals([]byte(eth.SrcMAC), c.SrcMAC[:]))

	ip, ok := p.NetworkLayer().(*layers.IPv4)
	qt.Assert(tb, qt.IsTrue(ok))
	tos := uint8(48 << 2)
	if c.Decrease {
		tos |= 3
	}
	qt.Check(tb, qt.Equals(ip.TOS, tos))
	qt.Check(tb, qt.Equals(ip.Length, 60))
	qt.Check(tb, qt.Equals(ip.Id, 0))
	qt.Check(tb, qt.Equals(ip.Flags, layers.IPv4DontFragment))
	qt.Check(tb, qt.Equals(ip.FragOffset, 0))
	qt.Check(tb, qt.Equals(ip.TTL, 64))
	qt.Check(tb, qt.Equals(ip.SrcIP.String(), c.Src.String()))
	qt.Check(tb, qt.Equals(ip.DstIP.String(), c.Dst.String()))

	udp, ok := p.TransportLayer().(*layers.UDP)
	qt.Assert(tb, qt.IsTrue(ok))
	qt.Check(tb, qt.Equals(uint16(udp.SrcPort), 49152+(c.FlowSrcPort^c.FlowDstPort)%16384))
	qt.Check(tb, qt.Equals(udp.DstPort, 4791))
	qt.Check(tb, qt.Equals(udp.Length, 40))
	qt.Check(tb, qt.Equals(udp.Checksum, 0))

	becn, psn := byte(0x40), byte(0)
	if c.Undetermined {
		becn = 0x60
	}
	if c.UDP {
		psn = 17
	}
	want := append([]byte(nil), 0x81, 0, 0xff, 0xff, becn, 0, 0, 0, 0, 0, 0, psn)
	want = binary.BigEndian.AppendUint32(want, c.RecRateMbps)
	want = binary.BigEndian.AppendUint16(want, c.FlowSrcPort)
	want = binary.BigEndian.AppendUint16(want, c.FlowDstPort)
	want = append(want, c.Tag[:]...)
	want = binary.LittleEndian.AppendUint32(want, slowICRC(frame[14:]))
	qt.Check(tb, qt.DeepEquals(udp.Payload, want))

	// Serialising computes the checksum.
	buf := gopacket.NewSerializeBuffer()
	qt.Assert(tb, qt.IsNil(ip.SerializeTo(buf, gopacket.SerializeOptions{ComputeChecksums: true})))
	qt.Check(tb, qt.DeepEquals(buf.Bytes(), frame[14:34]))
}

func FuzzCNP(f *testing.F) {
	f.Add([]byte("dstmacsrcmac"), uint32(0x0a000102), uint32(0x0a000001), true, uint32(9500),
		uint16(40000), uint16(5001), uint64(0), false)
	f.Add([]byte{}, uint32(0), uint32(0xffffffff), false, uint32(0xffffffff), uint16(0),
		uint16(0xffff), ^uint64(0), true)
	f.Fuzz(func(t *testing.T, macs []byte, src, dst uint32, decrease bool, rate uint32, sport,
		dport uint16, tag uint64, udp bool) {
		c := CNP{
			Src:         netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, src))),
			Dst:         netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, dst))),
			Decrease:    decrease,
			RecRateMbps: rate,
			FlowSrcPort: sport,
			FlowDstPort: dport,
			UDP:         udp,
		}
		c.Undetermined = !decrease && tag&1 != 0
		n := copy(c.DstMAC[:], macs)
		copy(c.SrcMAC[:], macs[n:])
		binary.BigEndian.PutUint64(c.Tag[:], tag)

		frame := marshal(t, c)
		checkWithGopacket(t, c, frame)
		got, err := Parse(frame)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(got, c))
	})
}

// FuzzParse also tries each input with its checksums made right, or next to
// nothing would get past them.
func FuzzParse(f *testing.F) {
	f.Add(marshal(f, decrease()))
	f.Add(marshal(f, increase()))
	f.Add(marshal(f, hold()))
	f.Add(unhex(f, nicCNP))
	f.Add(unhex(f, ucSend))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		roundTrip(t, frame)
		if len(frame) == FrameLen {
			repaired := append([]byte(nil), frame...)
			repair(repaired)
			roundTrip(t, repaired)
		}
	})
}

func roundTrip(t *testing.T, frame []byte) {
	c, err := Parse(frame)
	if err != nil {
		return
	}
	qt.Assert(t, qt.DeepEquals(marshal(t, c), frame))
	if c.Src.Is6() {
		return
	}
	checkWithGopacket(t, c, frame)
}
