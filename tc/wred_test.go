// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"math"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/layers"

	"github.com/pcn-linux/pcn/internal/nstest"
)

func newWRED(t *testing.T, o WREDOptions) *WRED {
	t.Helper()
	nstest.RequireRoot(t)
	w, err := LoadWRED(o)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { w.Close() })
	return w
}

func (w *WRED) counts(t *testing.T) Counts {
	t.Helper()
	c, err := w.Counts()
	return nonZero(t, c, err)
}

func TestWREDOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    WREDOptions
		want string
	}{
		{WREDOptions{KMinBytes: 2, KMaxBytes: 1, PMax: 1},
			`2 to 1 bytes, p_max 1: want k_min <= k_max < 2\^40, 0 <= p_max <= 1`},
		{WREDOptions{KMaxBytes: 1 << 40}, "0 to 1099511627776 bytes, .*"},
		{WREDOptions{PMax: 1.1}, ".* p_max 1.1: .*"},
		{WREDOptions{PMax: -0.1}, ".* p_max -0.1: .*"},
		{WREDOptions{PMax: math.NaN()}, ".* p_max NaN: .*"},
		{WREDOptions{FixedProbability: 1.1}, "fixed probability 1.1: want 0 to 1"},
		{WREDOptions{FixedProbability: math.NaN()}, "fixed probability NaN: .*"},
	} {
		_, err := LoadWRED(c.o)
		qt.Check(t, qt.ErrorMatches(err, "wred: "+c.want))
	}
}

// With an empty queue nothing is marked or dropped, but by a fixed probability; what is not
// ECN-capable is never marked.
func TestWREDVerdicts(t *testing.T) {
	f, v6 := someFlow(), someFlowIPv6()
	fragment6 := withExtensions(v6.tcpData(t, ect0, 100), 44, extension(6, 8))
	marked := func(frame []byte) []byte {
		frame = bytes.Clone(frame)
		frame[offIP+1] |= ce
		fixChecksum(frame)
		return frame
	}
	fragment := func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags, ip.FragOffset = 0, 100 }
	empty := WREDOptions{PMax: 1, WREDBytes: 1}
	always := WREDOptions{FixedProbability: 1, WREDBytes: 1}
	for _, c := range []struct {
		name  string
		o     WREDOptions
		frame []byte
		want  []byte
		count Counts
	}{
		{"empty, ECT(0)", empty, f.tcp(t, ect0, 100), f.tcp(t, ect0, 100), Counts{"passed": 1}},
		{"empty, not ECT", empty, f.tcp(t, notECT, 100), f.tcp(t, notECT, 100),
			Counts{"passed": 1}},
		{"always, ECT(0)", always, f.tcp(t, dataDSCP<<2|ect0, 100),
			marked(f.tcp(t, dataDSCP<<2|ect0, 100)), Counts{"marked": 1}},
		{"always, ECT(1)", always, f.tcp(t, ect1, 100), marked(f.tcp(t, ect1, 100)),
			Counts{"marked": 1}},
		{"always, CE", always, f.tcp(t, ce, 100), f.tcp(t, ce, 100), Counts{"marked": 1}},
		{"always, UDP", always, f.udp(t, ect0, 100), marked(f.udp(t, ect0, 100)),
			Counts{"marked": 1}},
		{"always, not ECT", always, f.tcp(t, notECT, 100), f.tcp(t, notECT, 100),
			Counts{"passed": 1}},
		{"always, IPv6", always, v6.tcpData(t, ect0, 100), v6.tcpData(t, ce, 100),
			Counts{"marked": 1}},
		{"always, IPv6, not ECT", always, v6.tcpData(t, notECT, 100), v6.tcpData(t, notECT, 100),
			Counts{"passed": 1}},
		{"always, IPv6 fragment", always, fragment6, fragment6, Counts{}},
		{"always, VLAN", always, tagged(f.tcp(t, ect0, 100), vlan10),
			tagged(marked(f.tcp(t, ect0, 100)), vlan10), Counts{"marked": 1}},
		{"always, IPv6, two tags", always, tagged(v6.tcpData(t, ect1, 100), provider7, vlan10),
			tagged(v6.tcpData(t, ce, 100), provider7, vlan10), Counts{"marked": 1}},
		{"empty, IPv6", empty, v6.tcpData(t, notECT, 100), v6.tcpData(t, notECT, 100),
			Counts{"passed": 1}},
		{"always, ARP", always, f.arp(t), f.arp(t), Counts{}},
		{"always, fragment", always, f.tcp(t, ect0, 100, fragment), f.tcp(t, ect0, 100, fragment),
			Counts{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWRED(t, c.o)
			passes(t, w.run(t, here, "wred", c.frame, skBuff{}), c.want)
			qt.Check(t, qt.DeepEquals(w.counts(t), c.count))
		})
	}
}

func TestWREDFixedProbability(t *testing.T) {
	const packets, p = 4000, 0.25
	w := newWRED(t, WREDOptions{FixedProbability: p})
	frame := someFlow().tcp(t, ect0, 100)
	for range packets {
		w.run(t, here, "wred", frame, skBuff{})
	}
	c := w.counts(t)
	qt.Check(t, qt.Equals(c["passed"]+c["marked"], packets))
	qt.Check(t, qt.IsTrue(math.Abs(float64(c["marked"])-p*packets) <= 5*math.Sqrt(p*(1-p)*packets)),
		qt.Commentf("%+v", c))
}
