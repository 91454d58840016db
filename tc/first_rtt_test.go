// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/layers"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// Sequence numbers of a flow in its first round trip: they wrap.
const (
	startSeq = 0xffffff00
	firstEnd = 0x00001000 // the IW-th packet ends here
)

// newFirstRTT loads the program with a flow table of its own, that holds these flows.
func newFirstRTT(t *testing.T, firstRTT bool, flows ...flow) *FirstRTT {
	t.Helper()
	nstest.RequireRoot(t)
	spec, err := loadFirstrtt()
	qt.Assert(t, qt.IsNil(err))
	keepProgram(spec, "first_rtt")
	obj, err := load("first_rtt", spec, nil, nil)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { obj.Close() })
	for _, f := range flows {
		v := firstrttLdcpFlow{StartSeq: startSeq, FirstEnd: firstEnd}
		if firstRTT {
			v.FirstRtt = 1
		}
		qt.Assert(t, qt.IsNil(obj.coll.Maps[firstrttMapFlows].Put(f.key(6), &v)))
	}
	return &FirstRTT{obj}
}

// segment is data from this sequence number on.
func (f flow) segment(t *testing.T, tos uint8, seq uint32, payloadLen int,
	change ...func(*layers.IPv4, *layers.TCP)) []byte {
	t.Helper()
	at := func(_ *layers.IPv4, tcp *layers.TCP) { tcp.Seq = seq }
	return f.tcp(t, tos, payloadLen, append(change, at)...)
}

// notCapable is the frame without its ECN field, and with a right checksum.
func notCapable(frame []byte) []byte {
	frame = bytes.Clone(frame)
	frame[offIP+1] &^= 3
	fixChecksum(frame)
	return frame
}

func TestFirstRTT(t *testing.T) {
	f, other := someFlow(), someFlow()
	other.src = netip.AddrPortFrom(f.src.Addr(), f.src.Port()+1)
	back := flow{srcMAC: f.dstMAC, dstMAC: f.srcMAC, src: f.dst, dst: f.src}
	push := func(_ *layers.IPv4, tcp *layers.TCP) { tcp.PSH = true }
	fin := func(_ *layers.IPv4, tcp *layers.TCP) { tcp.FIN = true }
	fragment := func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags = layers.IPv4MoreFragments }
	timestamps := func(_ *layers.IPv4, tcp *layers.TCP) {
		tcp.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps,
			OptionLength: 10, OptionData: make([]byte, 8)}}
	}
	const tos = dataDSCP<<2 | ect0
	for _, c := range []struct {
		name    string
		frame   []byte
		cleared bool
	}{
		{"first", f.segment(t, tos, startSeq, 1000), true},
		{"ECT(1)", f.segment(t, dataDSCP<<2|ect1, startSeq, 1000), true},
		{"with options", f.segment(t, tos, startSeq, 1000, timestamps), true},
		{"last but one, to the byte", f.segment(t, tos, firstEnd-1001, 1000), true},
		{"IW-th", f.segment(t, tos, firstEnd-1000, 1000), false},
		{"IW-th with options", f.segment(t, tos, firstEnd-1000, 1000, timestamps), false},
		{"across the end", f.segment(t, tos, firstEnd-1, 1000), false},
		{"behind the end", f.segment(t, tos, firstEnd+5000, 1000), false},
		{"pushed", f.segment(t, tos, startSeq, 1000, push), false},
		{"last of the connection", f.segment(t, tos, startSeq, 1000, fin), false},
		{"not ECN-capable", f.segment(t, dataDSCP<<2, startSeq, 1000), false},
		{"pure ACK", f.segment(t, tos, startSeq, 0), false},
		{"pure ACK, padded", append(f.segment(t, tos, startSeq, 0), make([]byte, 6)...), false},
		{"other direction", back.segment(t, tos, startSeq, 1000), false},
		{"other flow", other.segment(t, tos, startSeq, 1000), false},
		{"UDP", f.udp(t, tos, 1000), false},
		{"fragment", f.segment(t, tos, startSeq, 1000, fragment), false},
		{"IPv6", f.tcpIPv6(t), false},
		{"ARP", f.arp(t), false},
		{"cut short", f.segment(t, tos, startSeq, 1000)[:offIP+20+19], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.frame
			if c.cleared {
				want = notCapable(c.frame)
			}
			passes(t, newFirstRTT(t, true, f).run(t, here, "first_rtt", c.frame, skBuff{}), want)
			passes(t, newFirstRTT(t, false, f).run(t, here, "first_rtt", c.frame, skBuff{}),
				c.frame)
		})
	}
}

// Over IPv6 and behind VLAN tags as over plain IPv4.
func TestFirstRTTIPv6AndVLANs(t *testing.T) {
	const tos = dataDSCP<<2 | ect0
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		r := newFirstRTT(t, true, f)
		for tags, stack := range tagStacks {
			for seq, cleared := range map[uint32]bool{startSeq: true, firstEnd - 1001: true,
				firstEnd - 1000: false} {
				at := func(tcp *layers.TCP) { tcp.Seq = seq }
				want := f.tcpData(t, tos, 1000, at)
				if cleared {
					want = f.tcpData(t, dataDSCP<<2, 1000, at)
				}
				got := r.run(t, here, "first_rtt", tagged(f.tcpData(t, tos, 1000, at), stack...),
					skBuff{})
				qt.Check(t, qt.DeepEquals(got.frame, tagged(want, stack...)),
					qt.Commentf("%s, %s, %#x", f.src, tags, seq))
			}
		}
	}
}

// As the field changes the sum, for packets whose sums lie anywhere.
func TestFirstRTTKeepsDSCPAndChecksum(t *testing.T) {
	r := newFirstRTT(t, true, someFlow())
	for tos := range 256 {
		frame := someFlow().segment(t, uint8(tos), startSeq, 100,
			func(ip *layers.IPv4, _ *layers.TCP) {
				ip.Id, ip.TTL = uint16(tos*257), uint8(1+tos%255)
			})
		qt.Assert(t, qt.DeepEquals(r.run(t, here, "first_rtt", frame, skBuff{}).frame,
			notCapable(frame)), qt.Commentf("TOS %#x", tos))
	}
}

func TestFirstRTTIsForLDCP(t *testing.T) {
	nstest.RequireRoot(t)
	control, err := loader.KernelControl("reno")
	qt.Assert(t, qt.IsNil(err))
	_, err = LoadFirstRTT(control)
	qt.Check(t, qt.ErrorMatches(err,
		"first_rtt: congestion control reno does not treat the first round trip specially: want one such as ldcp"))
}
