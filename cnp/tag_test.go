// SPDX-License-Identifier: Apache-2.0

package cnp

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"net/netip"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// decreaseIPv6 is decrease over IPv6.
func decreaseIPv6() CNP {
	c := decrease()
	c.Src, c.Dst = netip.MustParseAddr("2001:db8::1:2"), netip.MustParseAddr("2001:db8::1")
	return c
}

// The frame is the IPv4 one but for the header; the ICRC is checked bit by bit.
func TestCNPIPv6(t *testing.T) {
	for _, c := range []CNP{decreaseIPv6(), {
		Src: netip.IPv6Loopback(), Dst: netip.IPv6Unspecified(), FlowSrcPort: 1, FlowDstPort: 2,
		UDP: true, Tag: [8]byte{1, 2},
	}} {
		frame := marshal(t, c)
		qt.Assert(t, qt.HasLen(frame, 94))
		qt.Check(t, qt.DeepEquals(frame[12:14], []byte{0x86, 0xdd}))
		ip := frame[14:]
		want := []byte{0x6c, 0x00, 0, 0, 0, 40, 17, 64}
		if c.Decrease {
			want[1] = 0x30
		}
		qt.Check(t, qt.DeepEquals(ip[:8], want))
		src, dst := c.Src.As16(), c.Dst.As16()
		qt.Check(t, qt.DeepEquals(ip[8:40], append(src[:], dst[:]...)))
		v4 := c
		v4.Src, v4.Dst = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
		qt.Check(t, qt.DeepEquals(ip[40:76], marshal(t, v4)[34:70]))

		masked := append(bytes.Repeat([]byte{0xff}, 8), ip[:76]...)
		for _, off := range []int{1, 2, 3, 7, 46, 47, 52} {
			masked[8+off] = 0xff
		}
		masked[8] |= 0x0f
		qt.Check(t, qt.Equals(binary.LittleEndian.Uint32(ip[76:]), bitwiseCRC(masked)))

		got, err := Parse(frame)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got, c))
		// no bit behind the MAC addresses may change unnoticed
		for bit := 12 * 8; bit < 8*len(frame); bit++ {
			frame[bit/8] ^= 1 << (bit % 8)
			_, err := Parse(frame)
			hold := bit == 66*8+5 && !c.Decrease // as ECN not in the ICRC
			qt.Check(t, qt.Equals(err == nil, hold),
				qt.Commentf("bit %d of offset %d", bit%8, bit/8))
			frame[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// bitwiseCRC is CRC-32 from its definition.
func bitwiseCRC(b []byte) uint32 {
	crc := ^uint32(0)
	for _, v := range b {
		crc ^= uint32(v)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320*(crc&1)
		}
	}
	return ^crc
}

func TestParseRefusesMapped(t *testing.T) {
	c := decreaseIPv6()
	frame := marshal(t, c)
	copy(frame[offIP+8:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1})
	binary.LittleEndian.PutUint32(frame[FrameLenIPv6-icrcLen:], icrcOf(frame[offIP:], true))
	_, err := Parse(frame)
	qt.Assert(t, qt.ErrorIs(err, ErrMalformed))
	qt.Assert(t, qt.ErrorMatches(err, ".*the IPv6 address at offset 22 or 38 is a mapped IPv4 address"))
}

func testKey() (k Key) {
	for i := range k {
		k[i] = byte(i)
	}
	return k
}

// sip is SipHash-2-4 from the paper's description; the test vector is its appendix A's.
func sip(key Key, m []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
		k1 ^ 0x7465646279746573}
	rounds := func(n int) {
		for range n {
			v[0] += v[1]
			v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
			v[0] = bits.RotateLeft64(v[0], 32)
			v[2] += v[3]
			v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
			v[0] += v[3]
			v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
			v[2] += v[1]
			v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
			v[2] = bits.RotateLeft64(v[2], 32)
		}
	}
	padded := append(bytes.Clone(m), make([]byte, 8-len(m)%8)...)
	padded[len(padded)-1] = byte(len(m))
	for i := 0; i < len(padded); i += 8 {
		w := binary.LittleEndian.Uint64(padded[i:])
		v[3] ^= w
		rounds(2)
		v[0] ^= w
	}
	v[2] ^= 0xff
	rounds(4)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func TestSign(t *testing.T) {
	key := testKey()
	qt.Assert(t, qt.Equals(sip(key, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}),
		0xa129ca6149be45e5))
	at := time.Unix(1_700_000_000, 123_456_789)
	stamp := uint32(at.UnixNano() >> 13 & 0x7fffffff)
	for slot := range Keys {
		for _, c := range []CNP{decrease(), increase(), decreaseIPv6()} {
			c.Sign(key, slot, at)
			gotSlot, gotStamp, ok := c.Signed()
			qt.Check(t, qt.IsTrue(ok && gotSlot == slot && gotStamp == stamp))
			frame := marshal(t, c)
			l := layoutOf(c.Src.Is6())
			m := bytes.Clone(frame[l.udp-2*len(c.Src.AsSlice()) : l.udp])
			m = append(m, frame[l.reserved:l.reserved+8]...)
			m = binary.BigEndian.AppendUint32(m, uint32(slot)<<31|stamp)
			m = append(m, map[bool]byte{true: 1}[c.Decrease], 6, 0, 0)
			qt.Check(t, qt.DeepEquals(c.Tag[4:],
				binary.BigEndian.AppendUint32(nil, uint32(sip(key, m)>>32))))

			got, err := Parse(frame)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.IsTrue(got.Verify(key)))
			other := key
			other[15] ^= 1
			qt.Check(t, qt.IsFalse(got.Verify(other)))
			for name, change := range map[string]func(*CNP){
				"verdict":     func(c *CNP) { c.Decrease = !c.Decrease },
				"hold":        func(c *CNP) { c.Decrease, c.Undetermined = false, !c.Undetermined },
				"rate":        func(c *CNP) { c.RecRateMbps++ },
				"source":      func(c *CNP) { c.Src = c.Src.Next() },
				"destination": func(c *CNP) { c.Dst = c.Dst.Next() },
				"source port": func(c *CNP) { c.FlowSrcPort++ },
				"port":        func(c *CNP) { c.FlowDstPort++ },
				"protocol":    func(c *CNP) { c.UDP = true },
				"slot":        func(c *CNP) { c.Tag[0] ^= 0x80 },
				"time":        func(c *CNP) { c.Tag[3]++ },
				"mac":         func(c *CNP) { c.Tag[7]++ },
			} {
				forged := got
				change(&forged)
				qt.Check(t, qt.IsFalse(forged.Verify(key)), qt.Commentf("%s", name))
			}
		}
	}
	qt.Check(t, qt.IsFalse(decrease().Verify(key)))
}
