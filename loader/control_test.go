// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"pcn/loader"
	"pcn/loader/ns/nstest"
)

var pcnOptions = loader.PCNOptions{LineRateBps: 40e9, WMin: 1.0 / 128, WMax: 0.5}

func TestMain(m *testing.M) {
	const list = "/proc/sys/net/ipv4/tcp_available_congestion_control"
	before, _ := os.ReadFile(list)
	code := m.Run()
	if after, _ := os.ReadFile(list); string(after) != string(before) {
		fmt.Fprintf(os.Stderr, "tests left congestion controls behind: %safter %s", before, after)
		code = 1
	}
	os.Exit(code)
}

func TestRegister(t *testing.T) {
	nstest.RequireRoot(t)
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
	return slices.Contains(strings.Fields(string(b)), name)
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

// Every 40 bytes are a key, and the same 40 bytes come back, but for the padding.
func FuzzFlowKey(f *testing.F) {
	f.Add(make([]byte, 40))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Add(append(append(make([]byte, 10), 0xff, 0xff, 10, 0, 0, 1), make([]byte, 24)...))
	f.Add(make([]byte, 41))
	f.Fuzz(func(t *testing.T, b []byte) {
		var k loader.FlowKey
		err := k.UnmarshalBinary(b)
		qt.Assert(t, qt.Equals(err == nil, len(b) == 40))
		if err != nil {
			return
		}
		back, err := k.MarshalBinary()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(back[:37], b[:37]))
		qt.Assert(t, qt.DeepEquals(back[37:], []byte{0, 0, 0}))
		qt.Assert(t, qt.IsFalse(k.Src.Addr().Is4In6()))
	})
}
