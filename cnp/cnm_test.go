// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/go-quicktest/qt"
)

// sampledFrame is a TCP segment of 10.0.0.1:40000 to 10.0.1.2:5001, the first 64
// bytes of 1000 and of 24 bytes of data.
const sampledFrame = `
	020000000002 020000000001 0800
	450003e8 00014000 4006220d 0a000001 0a000102
	9c401389 00000001 00000001 5010ffff 00000000
	0102030405060708 090a0b0c0d0e0f10 1112131415161718`

// congested answers sampledFrame: the queue is 26000 bytes too long, and has
// shrunk by 64.
func congested(tb testing.TB) CNM {
	tb.Helper()
	c, err := NewCNM(unhex(tb, sampledFrame))
	qt.Assert(tb, qt.IsNil(err))
	c.QntzFb = 63
	c.CPID = 0x0102030405060708
	c.CnmQOffset = CNMQueueUnits(26000)
	c.CnmQDelta = CNMQueueUnits(-64)
	c.EncapsulatedPriority = 3
	return c
}

func marshalCNM(tb testing.TB, c CNM) []byte {
	tb.Helper()
	frame, err := c.MarshalBinary()
	qt.Assert(tb, qt.IsNil(err))
	return frame
}

// The bytes are put together by hand from the layout.
func TestCNMGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		cnm  CNM
		want string
	}{
		{"whole MSDU", congested(t), `
			020000000001 020000000002 22e7
			003f 0102030405060708 0196 ffff 6000 020000000002 0040
			450003e8 00014000 4006220d 0a000001 0a000102
			9c401389 00000001 00000001 5010ffff 00000000
			0102030405060708 090a0b0c0d0e0f10 1112131415161718`},
		{"short MSDU", CNM{
			DstMAC: [6]byte{2}, SrcMAC: portMAC, QntzFb: 1, CnmQOffset: math.MinInt16,
			CnmQDelta:            math.MaxInt16,
			EncapsulatedPriority: 7, EncapsulatedDestination: [6]byte{4, 5, 6, 7, 8, 9},
			MSDU: []byte{0xaa, 0xbb, 0xcc},
		}, `
			020000000000 020000000010 22e7
			0001 0000000000000000 8000 7fff e000 040506070809 0003
			aabbcc
			00000000000000000000000000000000000000`},
		{"no MSDU", CNM{CPID: math.MaxUint64}, `
			000000000000 000000000000 22e7
			0000 ffffffffffffffff 0000 0000 0000 000000000000 0000
			00000000000000000000000000000000000000000000`},
		{"as long as the padding", CNM{MSDU: bytes.Repeat([]byte{1}, 22)}, `
			000000000000 000000000000 22e7
			0000 0000000000000000 0000 0000 0000 000000000000 0016
			01010101010101010101010101010101010101010101`},
		{"longer than the padding", CNM{MSDU: bytes.Repeat([]byte{1}, 23)}, `
			000000000000 000000000000 22e7
			0000 0000000000000000 0000 0000 0000 000000000000 0017
			0101010101010101010101010101010101010101010101`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := unhex(t, tc.want)
			qt.Assert(t, qt.IsTrue(len(want) >= MinCNMLen && len(want) <= MaxCNMLen))
			qt.Assert(t, qt.DeepEquals(marshalCNM(t, tc.cnm), want))
			got, err := ParseCNM(want)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.DeepEquals(got, tc.cnm))
		})
	}
}

func TestCNMLen(t *testing.T) {
	qt.Check(t, qt.Equals(MaxCNMLen, 102))
	qt.Check(t, qt.HasLen(marshalCNM(t, congested(t)), MaxCNMLen))
	qt.Check(t, qt.HasLen(marshalCNM(t, CNM{}), MinCNMLen))
}

func TestNewCNM(t *testing.T) {
	sampled := unhex(t, sampledFrame)
	want := CNM{
		DstMAC:                  [6]byte{2, 0, 0, 0, 0, 1},
		SrcMAC:                  [6]byte{2, 0, 0, 0, 0, 2},
		EncapsulatedDestination: [6]byte{2, 0, 0, 0, 0, 2},
	}
	for _, n := range []int{14, 15, 60, 77, 78, 79, 1500} {
		frame := append(bytes.Clone(sampled), make([]byte, 1500)...)[:n]
		want.MSDU = append([]byte(nil), frame[14:min(n, 78)]...)
		got, err := NewCNM(frame)
		qt.Assert(t, qt.IsNil(err))
		frame[0] ^= 1
		frame[n-1] ^= 1 // the CNM has its own copy
		qt.Check(t, qt.DeepEquals(got, want), qt.Commentf("%d bytes", n))
	}

	_, err := NewCNM(sampled[:13])
	qt.Check(t, qt.ErrorMatches(err,
		"make CNM: the sampled frame has 13 bytes, want an Ethernet header of 14"))
	copy(sampled[12:], []byte{0x81, 0})
	_, err = NewCNM(sampled)
	qt.Check(t, qt.ErrorMatches(err, "make CNM: the sampled frame has a VLAN tag: .*"))
}

func TestCNMQueueUnits(t *testing.T) {
	for _, tc := range []struct {
		bytes int64
		want  int16
	}{
		{0, 0}, {63, 0}, {64, 1}, {127, 1}, {26000, 406},
		{-1, -1}, {-64, -1}, {-65, -2},
		{64*32768 - 1, 32767}, {64 * 32768, 32767}, {math.MaxInt64, 32767},
		{-64 * 32768, -32768}, {-64*32768 - 1, -32768}, {math.MinInt64, -32768},
	} {
		qt.Check(t, qt.Equals(CNMQueueUnits(tc.bytes), tc.want), qt.Commentf("%d bytes", tc.bytes))
	}
}

func TestCNMAppendBinary(t *testing.T) {
	got, err := congested(t).AppendBinary([]byte("before"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(got), "before"+string(marshalCNM(t, congested(t)))))
}

func TestCNMMarshalErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*CNM)
		want   string
	}{
		{"QntzFb", func(c *CNM) { c.QntzFb = 64 }, "encode CNM: QntzFb 64 is not in 0 to 63"},
		{"priority", func(c *CNM) { c.EncapsulatedPriority = 8 },
			"encode CNM: encapsulated priority 8 is not in 0 to 7"},
		{"MSDU", func(c *CNM) { c.MSDU = make([]byte, 65) },
			"encode CNM: encapsulated MSDU has 65 bytes, want at most 64: cut it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := congested(t)
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

func TestParseCNMErrors(t *testing.T) {
	set := func(off int, values ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[off:], values); return b }
	}
	cut := func(n int) func([]byte) []byte {
		return func(b []byte) []byte { return b[:n] }
	}
	for _, tc := range []struct {
		name   string
		change func([]byte) []byte
		is     error
		want   string
	}{
		{"empty", cut(0), ErrNotCNM,
			"parse CNM: not a CNM: the frame ends after 0 bytes, before the end of EtherType at offset 12"},
		{"IPv4", set(12, 0x08, 0x00), ErrNotCNM,
			"parse CNM: not a CNM: EtherType at offset 12 is 0x0800, want 0x22e7"},
		{"CN-TAG", set(12, 0x22, 0xe9), ErrNotCNM,
			".*EtherType at offset 12 is 0x22e9, want 0x22e7"},
		{"cut in the PDU", cut(37), ErrMalformed,
			".*the frame ends after 37 bytes, before the end of encapsulated MSDU length at offset 36"},
		{"cut in the MSDU", cut(101), ErrMalformed,
			"parse CNM: malformed frame: it has 101 bytes, want 102: .*"},
		{"with FCS", func(b []byte) []byte { return append(b, 0, 0, 0, 0) }, ErrMalformed,
			".*it has 106 bytes, want 102: .* without FCS"},
		{"version", set(14, 0x10), ErrMalformed,
			".*malformed frame: version, reserved bits and QntzFb at offset 14 is 0x103f, want 0x003f"},
		{"reserved", set(15, 0x7f), ErrMalformed,
			".*version, reserved bits and QntzFb at offset 14 is 0x007f, want 0x003f"},
		{"priority", set(29, 1), ErrMalformed,
			".*encapsulated priority and its reserved bits at offset 28 is 0x6001, want 0x6000"},
		{"long MSDU", set(37, 65), ErrMalformed,
			".*encapsulated MSDU length at offset 36 is 0x0041, want 0x0040"},
		{"very long MSDU", set(36, 1), ErrMalformed,
			".*encapsulated MSDU length at offset 36 is 0x0140, want 0x0040"},
		{"shorter MSDU", set(37, 63), ErrMalformed, ".*it has 102 bytes, want 101: .*"},
		{"no padding", func(b []byte) []byte { b[37] = 4; return b[:42] }, ErrMalformed,
			".*it has 42 bytes, want 60: .*"},
		{"padding", func(b []byte) []byte { b[37] = 4; return b[:60] }, ErrMalformed,
			".*padding at offset 42 is 0x0001[0-9a-f]+, want 0x0*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseCNM(tc.change(marshalCNM(t, congested(t))))
			qt.Assert(t, qt.ErrorIs(err, tc.is))
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
			qt.Assert(t, qt.DeepEquals(got, CNM{}))
		})
	}
}

func TestParseCNMSeesEveryBit(t *testing.T) {
	short := congested(t)
	short.MSDU = short.MSDU[:20]
	for _, c := range []CNM{congested(t), short} {
		// The bits that carry something: all but EtherType, version, reserved bits, MSDU length and
		// padding.
		carries := bytes.Repeat([]byte{0xff}, offMSDU+len(c.MSDU))
		copy(carries[12:], []byte{0, 0, 0, 0x3f})
		copy(carries[28:], []byte{0xe0, 0})
		copy(carries[36:], []byte{0, 0})
		frame := marshalCNM(t, c)
		carries = append(carries, make([]byte, len(frame)-len(carries))...)
		for bit := range 8 * len(frame) {
			off, mask := bit/8, byte(1)<<(bit%8)
			flipped := bytes.Clone(frame)
			flipped[off] ^= mask
			got, err := ParseCNM(flipped)
			msduLen := int(flipped[37])
			intoPadding := off == 37 && msduLen > len(c.MSDU) && offMSDU+msduLen <= MinCNMLen
			qt.Assert(t, qt.Equals(err == nil, carries[off]&mask != 0 || intoPadding),
				qt.Commentf("bit %d of offset %d: %v", bit%8, off, err))
			if err == nil {
				qt.Assert(t, qt.DeepEquals(marshalCNM(t, got), flipped))
			}
		}
	}
}

func FuzzCNM(f *testing.F) {
	f.Add(unhex(f, sampledFrame), uint64(0x0102030405060708), int16(406), int16(-1), uint8(63),
		uint8(3))
	f.Add(make([]byte, 14), uint64(0), int16(math.MinInt16), int16(math.MaxInt16), uint8(0),
		uint8(7))
	f.Fuzz(func(t *testing.T, sampled []byte, cpid uint64, offset, delta int16, qntzFb,
		priority uint8) {
		c, err := NewCNM(sampled)
		if err != nil {
			return
		}
		c.CPID, c.CnmQOffset, c.CnmQDelta, c.QntzFb, c.EncapsulatedPriority = cpid, offset, delta,
			qntzFb%64, priority%8
		frame := marshalCNM(t, c)
		got, err := ParseCNM(frame)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(got, c))
		checkCNM(t, frame)
	})
}

func FuzzParseCNM(f *testing.F) {
	f.Add(marshalCNM(f, congested(f)))
	f.Add(marshalCNM(f, CNM{}))
	f.Add(marshalCNM(f, CNM{CnmQOffset: -1, MSDU: make([]byte, 30)}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		c, err := ParseCNM(frame)
		if err != nil {
			return
		}
		qt.Assert(t, qt.DeepEquals(marshalCNM(t, c), frame))
		checkCNM(t, frame)
	})
}

// checkCNM checks a CNM's frame against the layout, by its numbers.
func checkCNM(tb testing.TB, frame []byte) {
	tb.Helper()
	qt.Assert(tb, qt.IsTrue(len(frame) >= 60 && len(frame) <= 102))
	qt.Check(tb, qt.Equals(binary.BigEndian.Uint16(frame[12:]), 0x22e7))
	qt.Check(tb, qt.Equals(binary.BigEndian.Uint16(frame[14:])>>6, 0))
	qt.Check(tb, qt.Equals(binary.BigEndian.Uint16(frame[28:])<<3, 0))
	end := 38 + int(binary.BigEndian.Uint16(frame[36:]))
	qt.Check(tb, qt.Equals(len(frame), max(end, 60)))
	qt.Check(tb, qt.DeepEquals(frame[end:], make([]byte, len(frame)-end)))
}
