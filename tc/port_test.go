// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/nstest"
)

const markPort = 0x50540000 // MARK_PORT of bpf/include/port.h

func newPort(t *testing.T) *Port {
	t.Helper()
	nstest.RequireRoot(t)
	p, err := LoadPort(PortOptions{Port: 1, Out: 1})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { p.Close() })
	return p
}

func TestPortOptionsAreChecked(t *testing.T) {
	for _, o := range []PortOptions{{}, {Port: 1}, {Out: 1}, {Port: -1, Out: 1}} {
		_, err := LoadPort(o)
		qt.Check(t, qt.ErrorMatches(err, "port: devices .*: want their indexes"))
	}
}

// Packets go to the port once, in the class of their DSCP, and without a mark that the qdisc would
// take for its own.
func TestToPort(t *testing.T) {
	p, f, v6 := newPort(t), someFlow(), someFlowIPv6()
	const data, control = 0, 6
	for _, c := range []struct {
		name     string
		frame    []byte
		mark     uint32
		priority uint32
	}{
		{"DSCP 0", f.tcp(t, ect0, 100), 0, data},
		{"DSCP 26", f.tcp(t, 26<<2|ect0, 100), 0, data},
		{"DSCP 47", f.tcp(t, 47<<2, 100), 7, data},
		{"DSCP 48", f.tcp(t, 48<<2, 100), 7, control},
		{"DSCP 56", f.udp(t, 56<<2, 100), 0, control},
		{"IPv6", v6.tcpData(t, ect0, 100), 0, data},
		{"IPv6, DSCP 48", v6.tcpData(t, 48<<2, 100), 0, control},
		{"a foreign ingress port", f.tcp(t, ect0, 100), 0x50430001, data},
		{"ARP", f.arp(t), 0, control},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := p.run(t, here, "to_port", c.frame, skBuff{Mark: c.mark, Priority: 3, Timestamp: 5})
			qt.Check(t, qt.Equals(r.verdict, tcxRedirect))
			qt.Check(t, qt.Equals(r.skb.Mark, 0))
			qt.Check(t, qt.Equals(r.skb.Priority, c.priority))
			qt.Check(t, qt.Equals(r.skb.Timestamp, 0))
			qt.Check(t, qt.IsTrue(bytes.Equal(r.frame, c.frame)))
		})
	}
	r := p.run(t, here, "to_port", f.tcp(t, ect0, 100), skBuff{Mark: markPort, Priority: 3})
	passes(t, r, f.tcp(t, ect0, 100))
	qt.Check(t, qt.Equals(r.skb.Mark, 0))
	qt.Check(t, qt.Equals(r.skb.Priority, 3))
}

// The verdict of the qdisc is carried out, and of nothing else.
func TestFromPort(t *testing.T) {
	f, v6 := someFlow(), someFlowIPv6()
	marked := bytes.Clone(f.tcp(t, ect0, 100))
	marked[offIP+1] |= ce
	fixChecksum(marked)
	for _, c := range []struct {
		name        string
		frame, want []byte
		skb         skBuff
		count       Counts
	}{
		{"marked", f.tcp(t, ect0, 100), marked, skBuff{CB: carry(1, true)}, Counts{"marked": 1}},
		{"marked, IPv6", v6.tcpData(t, ect0, 100), v6.tcpData(t, ce, 100),
			skBuff{CB: carry(1, true)}, Counts{"marked": 1}},
		{"not ECN-capable", f.tcp(t, notECT, 100), f.tcp(t, notECT, 100),
			skBuff{CB: carry(1, true)}, Counts{"not_ecn": 1}},
		{"not marked", f.tcp(t, ect0, 100), f.tcp(t, ect0, 100), skBuff{CB: carry(1, false)},
			Counts{"passed": 1}},
		{"not from the qdisc", f.tcp(t, ect0, 100), f.tcp(t, ect0, 100),
			skBuff{CB: [5]uint32{carryCE}}, Counts{"passed": 1}},
		{"superpacket", f.tcp(t, ect0, 100), marked,
			skBuff{CB: carry(1, true), GSOSegs: 2, GSOSize: 50},
			Counts{"marked": 1, "superpackets": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPort(t)
			r := p.run(t, here, "from_port", c.frame, c.skb)
			qt.Check(t, qt.Equals(r.verdict, tcxRedirect))
			qt.Check(t, qt.Equals(r.skb.Mark, markPort))
			qt.Check(t, qt.IsTrue(bytes.Equal(r.frame, c.want)))
			got, err := p.readCounts("port_counts")
			qt.Check(t, qt.DeepEquals(nonZero(t, got, err), c.count))
		})
	}
}

// WRED counts superpackets beside their verdict.
func TestWREDCountsSuperpackets(t *testing.T) {
	w := newWRED(t, WREDOptions{})
	frame := someFlow().tcp(t, ect0, 100)
	passes(t, w.run(t, here, "wred", frame, skBuff{GSOSegs: 2, GSOSize: 50}), frame)
	qt.Check(t, qt.DeepEquals(w.counts(t), Counts{"passed": 1, "superpackets": 1}))
}
