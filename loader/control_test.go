// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"pcn/loader"
	"pcn/tc"
)

var pcnOptions = loader.PCNOptions{LineRateBps: 40e9, WMin: 1.0 / 128, WMax: 0.5}

func TestRegister(t *testing.T) {
	for _, c := range []struct {
		name     string
		register func() (*loader.Control, error)
	}{
		{"pcn", func() (*loader.Control, error) { return loader.RegisterPCN(pcnOptions) }},
		{"pcn_line", func() (*loader.Control, error) { return loader.RegisterLine(40e9, 0) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			control, err := c.register()
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(control.Name(), c.name))
			qt.Assert(t, qt.IsTrue(available(t, c.name)))

			_, err = c.register()
			qt.Assert(t, qt.ErrorMatches(err, "register congestion control .*is the name taken.*"))

			qt.Assert(t, qt.IsNil(control.Close()))
			qt.Assert(t, qt.IsFalse(available(t, c.name)))
		})
	}
}

func available(t *testing.T, name string) bool {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	qt.Assert(t, qt.IsNil(err))
	for _, have := range strings.Fields(string(b)) {
		if have == name {
			return true
		}
	}
	return false
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*loader.PCNOptions)
		want   string
	}{
		{func(o *loader.PCNOptions) { o.LineRateBps = 0 }, "pcn: line rate 0 bit/s.*"},
		{func(o *loader.PCNOptions) { o.LineRateBps = 801e9 }, "pcn: line rate .* want 1 bit/s to 800 Gbit/s"},
		{func(o *loader.PCNOptions) { o.DilationShift = 21 }, "pcn: dilation shift 21.*"},
		{func(o *loader.PCNOptions) { o.WMin = 0 }, "pcn: w_min 0, w_max 0.5.*"},
		{func(o *loader.PCNOptions) { o.WMin = 0.6 }, "pcn: w_min 0.6, w_max 0.5.*"},
		{func(o *loader.PCNOptions) { o.WMax = 1 }, "pcn: .*w_max 1.*"},
		{func(o *loader.PCNOptions) { o.MinRateBps = 41e9 }, "pcn: minimum rate .* is above the line rate.*"},
	} {
		o := pcnOptions
		c.change(&o)
		_, err := loader.RegisterPCN(o)
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
}

func TestFlowKeyRoundTrip(t *testing.T) {
	for _, k := range []loader.FlowKey{
		{Src: netip.MustParseAddrPort("10.0.0.1:5000"), Dst: netip.MustParseAddrPort("10.0.0.2:6000"), Protocol: 6},
		{Src: netip.MustParseAddrPort("[fd00::1]:1"), Dst: netip.MustParseAddrPort("[fd00::2]:65535"), Protocol: 17},
	} {
		b, err := k.MarshalBinary()
		qt.Assert(t, qt.IsNil(err))
		var back loader.FlowKey
		qt.Assert(t, qt.IsNil(back.UnmarshalBinary(b)))
		qt.Assert(t, qt.Equals(back, k))
	}
	var k loader.FlowKey
	qt.Assert(t, qt.ErrorMatches(k.UnmarshalBinary(make([]byte, 39)), "flow key of 39 bytes, want 40"))
}

func TestLoadTC(t *testing.T) {
	c, err := loader.RegisterPCN(pcnOptions)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { c.Close() })
	rp, err := tc.LoadRP(c)
	qt.Assert(t, qt.IsNil(err))
	rp.Close()
	np, err := tc.LoadNP(tc.NPOptions{TNs: 50000, CongestedShare: 0.95})
	qt.Assert(t, qt.IsNil(err))
	np.Close()
	s, err := tc.LoadStamp(26, 48)
	qt.Assert(t, qt.IsNil(err))
	s.Close()
	f, err := tc.LoadFabric(tc.FabricOptions{HostBase: netip.MustParseAddr("10.0.0.0"), Hosts: 4, Nodes: 2, Ports: 8})
	qt.Assert(t, qt.IsNil(err))
	f.Close()
}
