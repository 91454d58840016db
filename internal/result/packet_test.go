// SPDX-License-Identifier: Apache-2.0

package result

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/cnp"
)

// Flags of TCP.
const (
	syn, ackFlag, ece = 0x02, 0x10, 0x40
)

// segment is a frame of TCP between 10.0.0.1:10000 and 10.0.0.2:20000.
func segment(back bool, seq, ack uint32, flags byte, data int) []byte {
	b := make([]byte, 14+20+20+data)
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	ip := b[14:]
	ip[0], ip[9] = 0x45, 6
	binary.BigEndian.PutUint16(ip[2:], uint16(40+data))
	copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	ports := []uint16{10000, 20000}
	if back {
		copy(ip[12:], []byte{10, 0, 0, 2, 10, 0, 0, 1})
		ports = []uint16{20000, 10000}
	}
	t := ip[20:]
	binary.BigEndian.PutUint16(t, ports[0])
	binary.BigEndian.PutUint16(t[2:], ports[1])
	binary.BigEndian.PutUint32(t[4:], seq)
	binary.BigEndian.PutUint32(t[8:], ack)
	t[12], t[13] = 5<<4, flags
	return b
}

// recorded is a run whose host H0 recorded frames, one each us. Sequence numbers begin at isn.
func recorded(t *testing.T, isn uint32, frames ...[]byte) *Run {
	t.Helper()
	var text bytes.Buffer
	c, err := cnp.NewCapture(&text, "H0")
	qt.Assert(t, qt.IsNil(err))
	for i, f := range frames {
		f = bytes.Clone(f)
		if f[12] == 8 {
			field := f[14+20+4:] // seq of the sender, or ack of the receiver
			if f[14+15] == 2 {
				field = field[4:]
			}
			binary.BigEndian.PutUint32(field, binary.BigEndian.Uint32(field)+isn)
		}
		qt.Assert(t, qt.IsNil(c.WriteFrame(0, int64(i)*1000, f)))
	}
	qt.Assert(t, qt.IsNil(c.Flush()))
	f := Flow{Name: "F", Proto: TCP, SrcAddr: "10.0.0.1", SrcPort: 10000, DstAddr: "10.0.0.2",
		DstPort: 20000}
	return &Run{Captures: map[string][]byte{"H0": text.Bytes()}, Flows: []Flow{f}}
}

// The first packet that differs is named with its flow and what the flow had done: 3000 bytes sent,
// one of 1000 of them twice, 1000 acknowledged. Numbers that begin elsewhere are no difference.
func TestFirstPacket(t *testing.T) {
	data := func(from uint32) []byte { return segment(false, from, 78, ackFlag, 1000) }
	back := func(flags byte, to uint32) []byte {
		return segment(true, 78-uint32(flags&syn)/syn, to, flags, 0)
	}
	begin := [][]byte{
		segment(false, 0, 0, syn, 0), back(syn|ackFlag, 1), data(1), data(1001), data(2001),
		back(ackFlag|ece, 1001), make([]byte, 60), data(1001),
	}
	with := func(more ...[]byte) [][]byte { return append(begin[:len(begin):len(begin)], more...) }
	a := recorded(t, 5, with(data(3001), data(4001))...)
	qt.Check(t, qt.HasLen(firstPacket(a, recorded(t, 900, with(data(3001), data(4001))...)), 0))

	const state = "at 8us: packet 8 at host H0, data of flow F, which had 3000 bytes sent, " +
		"1000 acknowledged, 2000 in flight, 1 packets sent again, 1 marks echoed: " +
		"seq 3000 len 1000 ack 0 [ACK] win 0 at 8us / "
	for name, tc := range map[string]struct {
		b    *Run
		want string
	}{
		"another packet": {recorded(t, 5, with(data(2001))...),
			state + "seq 2000 len 1000 ack 0 [ACK] win 0 at 8us"},
		"none": {recorded(t, 5, begin...), state + "none"},
		"a later one": {recorded(t, 5, with(make([]byte, 60), data(3001))...),
			state + "seq 3000 len 1000 ack 0 [ACK] win 0 at 9us"},
	} {
		found := firstPacket(a, tc.b)
		qt.Assert(t, qt.HasLen(found, 1), qt.Commentf("%s", name))
		qt.Check(t, qt.Equals(found[0].String(), tc.want), qt.Commentf("%s", name))
	}
	found := firstPacket(a, recorded(t, 5, with(back(ackFlag, 2001))...))
	qt.Assert(t, qt.HasLen(found, 1))
	qt.Check(t, qt.StringContains(found[0].String(), "/ seq 0 len 0 ack 2000 [ACK]"))
	qt.Check(t, qt.HasLen(firstPacket(a, &Run{}), 0))
}
