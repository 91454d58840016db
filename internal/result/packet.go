// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// packet is what is compared of a packet of TCP: what two kernels that do the same send alike.
// Sequence numbers are from the first data of their direction, as they begin at random.
type packet struct {
	from, to    netip.AddrPort
	bytes       int // of data
	seq, ack    uint32
	flags, ecn  uint8
	windowBytes uint16
}

// String returns the packet in Wireshark's words.
func (p packet) String() string {
	var flags []string
	for i, name := range []string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"} {
		if p.flags>>i&1 != 0 {
			flags = append(flags, name)
		}
	}
	mark := ""
	if p.ecn == 3 {
		mark = " CE"
	}
	return fmt.Sprintf("seq %d len %d ack %d [%s] win %d%s", p.seq, p.bytes, p.ack,
		strings.Join(flags, " "), p.windowBytes, mark)
}

// timed is a packet, and when the host saw it.
type timed struct {
	packet
	atNs int64
}

// firstPacket returns the first packet in time that differs between what hosts recorded, with its
// flow and what that flow's sender had done before; nothing if none was recorded, or differs.
func firstPacket(a, b *Run) []Difference {
	var first *Difference
	for _, host := range slices.Sorted(maps.Keys(a.Captures)) {
		if _, found := b.Captures[host]; !found {
			continue
		}
		d := diffPackets(a, host, packetsIn(a.Captures[host]), packetsIn(b.Captures[host]))
		if d != nil && (first == nil || *d.AtNs < *first.AtNs) {
			first = d
		}
	}
	if first == nil {
		return nil
	}
	return []Difference{*first}
}

func diffPackets(r *Run, host string, a, b []timed) *Difference {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	one, other := None, None
	var at timed
	if i < len(b) {
		at, other = b[i], fmt.Sprintf("%s at %s", b[i], experiment.Duration(b[i].atNs))
	}
	if i < len(a) {
		one = fmt.Sprintf("%s at %s", a[i], experiment.Duration(a[i].atNs))
		if i >= len(b) || a[i].atNs <= b[i].atNs {
			at = a[i] // the earlier one: it is what the other kernel did not send
		}
	}
	if one == other {
		return nil
	}
	return &Difference{
		What: fmt.Sprintf("packet %d at host %s, %s", i+1, host, r.stateAt(at.packet, a[:i])),
		AtNs: &at.atNs, A: one, B: other,
	}
}

// stateAt names the flow of a packet, and says what the flow's sender had done before it.
func (r *Run) stateAt(p packet, before []timed) string {
	i := slices.IndexFunc(r.Flows, func(f Flow) bool { return f.sends(p) || f.acknowledges(p) })
	if i < 0 {
		return "of no flow"
	}
	f := r.Flows[i]
	var sent, acked uint32
	again, echoes := 0, 0
	for _, x := range before {
		switch {
		case f.sends(x.packet) && x.bytes > 0:
			end := x.seq + uint32(x.bytes)
			if int32(end-sent) <= 0 {
				again++
			} else {
				sent = end
			}
		case f.acknowledges(x.packet):
			if int32(x.ack-acked) > 0 {
				acked = x.ack
			}
			if x.flags&0x40 != 0 && x.flags&2 == 0 {
				echoes++
			}
		}
	}
	what := "data"
	if f.acknowledges(p) {
		what = "ACKs"
	}
	return fmt.Sprintf("%s of flow %s, which had %d bytes sent, %d acknowledged, %d in flight, "+
		"%d packets sent again, %d marks echoed", what, f.Name, sent, acked, int32(sent-acked),
		again, echoes)
}

func (f Flow) sends(p packet) bool {
	return f.is(p.from, p.to)
}

func (f Flow) acknowledges(p packet) bool {
	return f.is(p.to, p.from)
}

func (f Flow) is(src, dst netip.AddrPort) bool {
	return f.Proto == TCP && src.String() == fmt.Sprintf("%s:%d", f.SrcAddr, f.SrcPort) &&
		dst.String() == fmt.Sprintf("%s:%d", f.DstAddr, f.DstPort)
}

// packetsIn returns the packets of TCP in a capture of this program, in their order in time.
func packetsIn(capture []byte) (all []timed) {
	first := map[[2]netip.AddrPort]uint32{} // the first data of a direction
	from := func(direction [2]netip.AddrPort, number uint32) uint32 {
		if _, known := first[direction]; !known {
			first[direction] = number
		}
		return number - first[direction]
	}
	cnp.EachFrame(capture, func(atNs int64, frame []byte) {
		p, ok := parsePacket(frame)
		if !ok {
			return
		}
		if p.flags&2 != 0 {
			p.seq++ // a SYN takes a number
		}
		p.seq = from([2]netip.AddrPort{p.from, p.to}, p.seq)
		if p.flags&0x10 != 0 {
			p.ack = from([2]netip.AddrPort{p.to, p.from}, p.ack)
		}
		all = append(all, timed{p, atNs})
	})
	slices.SortStableFunc(all, func(x, y timed) int { return cmp.Compare(x.atNs, y.atNs) })
	return all
}

// parsePacket reads a frame of Ethernet, IPv4 and TCP; false if it is another.
func parsePacket(frame []byte) (p packet, ok bool) {
	const ethernet, ipv4, tcp = 14, 20, 20
	if len(frame) < ethernet+ipv4+tcp || binary.BigEndian.Uint16(frame[12:]) != 0x0800 {
		return p, false
	}
	ip := frame[ethernet:]
	header, total := int(ip[0]&15)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if ip[9] != 6 || header < ipv4 || total < header+tcp || len(ip) < header+tcp {
		return p, false
	}
	t := ip[header:]
	addr := func(at []byte, port []byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(at)), binary.BigEndian.Uint16(port))
	}
	return packet{
		from: addr(ip[12:16], t[0:]), to: addr(ip[16:20], t[2:]),
		bytes: total - header - int(t[12]>>4)*4, ecn: ip[1] & 3,
		seq: binary.BigEndian.Uint32(t[4:]), ack: binary.BigEndian.Uint32(t[8:]),
		flags: t[13], windowBytes: binary.BigEndian.Uint16(t[14:]),
	}, true
}
