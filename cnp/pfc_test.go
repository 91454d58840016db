// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"testing"

	"github.com/go-quicktest/qt"
)

var portMAC = [6]byte{0x02, 0, 0, 0, 0, 0x10}

func pause(tb testing.TB, class int) PFC {
	tb.Helper()
	p, err := Pause(portMAC, class)
	qt.Assert(tb, qt.IsNil(err))
	return p
}

func resume(tb testing.TB, class int) PFC {
	tb.Helper()
	p, err := Resume(portMAC, class)
	qt.Assert(tb, qt.IsNil(err))
	return p
}

func marshalPFC(tb testing.TB, p PFC) []byte {
	tb.Helper()
	frame, err := p.MarshalBinary()
	qt.Assert(tb, qt.IsNil(err))
	return frame
}

func TestPFCGolden(t *testing.T) {
	for _, tc := range []struct {
		name string
		pfc  PFC
		want string
	}{
		{"pause class 3", pause(t, 3), `
			0180c2000001 020000000010 8808 0101 0008
			0000 0000 0000 ffff 0000 0000 0000 0000
			0000000000000000000000000000000000000000000000000000`},
		{"resume class 3", resume(t, 3), `
			0180c2000001 020000000010 8808 0101 0008
			0000 0000 0000 0000 0000 0000 0000 0000
			0000000000000000000000000000000000000000000000000000`},
		{"pause class 7", pause(t, 7), `
			0180c2000001 020000000010 8808 0101 0080
			0000 0000 0000 0000 0000 0000 0000 ffff
			0000000000000000000000000000000000000000000000000000`},
		{"all classes", PFC{SrcMAC: portMAC, Classes: 0xfe, Quanta: [8]uint16{1, 2, 3, 4, 5, 6, 7, 0x0809}}, `
			0180c2000001 020000000010 8808 0101 00fe
			0001 0002 0003 0004 0005 0006 0007 0809
			0000000000000000000000000000000000000000000000000000`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := unhex(t, tc.want)
			qt.Assert(t, qt.HasLen(want, PFCFrameLen))
			qt.Assert(t, qt.DeepEquals(marshalPFC(t, tc.pfc), want))
			got, err := ParsePFC(want)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, tc.pfc))
		})
	}
}

func TestPFCAppendBinary(t *testing.T) {
	got, err := pause(t, 3).AppendBinary([]byte("before"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(got), "before"+string(marshalPFC(t, pause(t, 3)))))
}

func TestPFCClassOutOfRange(t *testing.T) {
	for _, class := range []int{-1, 8, 256} {
		_, err := Pause(portMAC, class)
		qt.Assert(t, qt.ErrorMatches(err, "make PFC frame: class -?[0-9]+ is not in 0 to 7"))
		_, err = Resume(portMAC, class)
		qt.Assert(t, qt.ErrorMatches(err, "make PFC frame: class -?[0-9]+ is not in 0 to 7"))
	}
}

func TestParsePFCErrors(t *testing.T) {
	set := func(off int, values ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[off:], values); return b }
	}
	for _, tc := range []struct {
		name   string
		change func([]byte) []byte
		is     error
		want   string
	}{
		{"empty", func(b []byte) []byte { return nil }, ErrNotPFC,
			"parse PFC frame: not a PFC frame: the frame ends after 0 bytes, .*"},
		{"IPv4", set(12, 0x08, 0x00), ErrNotPFC,
			"parse PFC frame: not a PFC frame: EtherType at offset 12 is 0x0800, want 0x8808"},
		{"802.3x PAUSE", set(14, 0x00, 0x01), ErrNotPFC,
			".*MAC control opcode at offset 14 is 0x0001, want 0x0101"},
		{"cut", func(b []byte) []byte { return b[:34] }, ErrMalformed,
			"parse PFC frame: malformed frame: it has 34 bytes, want 60: .*"},
		{"with FCS", func(b []byte) []byte { return append(b, 0, 0, 0, 0) }, ErrMalformed,
			".*it has 64 bytes, want 60: .* without FCS"},
		{"unicast", set(0, 2), ErrMalformed,
			".*destination address at offset 0 is 0x0280c2000001, want 0x0180c2000001"},
		{"vector", set(16, 1), ErrMalformed,
			".*high byte of the class-enable vector at offset 16 is 0x01, want 0x00"},
		{"padding", set(59, 1), ErrMalformed, ".*padding at offset 34 is 0x0*1, want 0x0*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParsePFC(tc.change(marshalPFC(t, pause(t, 3))))
			qt.Assert(t, qt.ErrorIs(err, tc.is))
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
			qt.Assert(t, qt.Equals(got, PFC{}))
		})
	}
}

func TestParsePFCSeesEveryBit(t *testing.T) {
	for bit := range 8 * PFCFrameLen {
		frame := marshalPFC(t, pause(t, 3))
		off := bit / 8
		frame[off] ^= 1 << (bit % 8)
		p, err := ParsePFC(frame)
		variable := off >= 6 && off < 12 || off >= 17 && off < 34
		qt.Assert(t, qt.Equals(err == nil, variable),
			qt.Commentf("bit %d of offset %d: %v", bit%8, off, err))
		if err == nil {
			qt.Assert(t, qt.Not(qt.Equals(p, pause(t, 3))),
				qt.Commentf("bit %d of offset %d", bit%8, off))
		}
	}
}

func FuzzParsePFC(f *testing.F) {
	f.Add(marshalPFC(f, pause(f, 0)))
	f.Add(marshalPFC(f, resume(f, 7)))
	f.Add(marshalPFC(f, PFC{Classes: 0xff, Quanta: [8]uint16{1, 2, 3, 4, 5, 6, 7, 8}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		p, err := ParsePFC(frame)
		if err != nil {
			return
		}
		qt.Assert(t, qt.DeepEquals(marshalPFC(t, p), frame))
	})
}
