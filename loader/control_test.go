// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns/nstest"
)

var pcnOptions = loader.PCNOptions{LineRateBps: 40e9, WMin: 1.0 / 128, WMax: 0.5}

// pcn registers congestion control pcn.
func pcn(o loader.PCNOptions) func() (*loader.Control, error) {
	return func() (*loader.Control, error) { return loader.RegisterPCN(o) }
}

// line registers congestion control pcn_line.
func line(rateBps uint64) func() (*loader.Control, error) {
	return func() (*loader.Control, error) { return loader.RegisterLine(rateBps, 0) }
}

// registered registers a congestion control until the test ends, and checks that its name is free then. A machine has
// a name once, in all of its namespaces: the test waits while another process has it.
func registered(t *testing.T, register func() (*loader.Control, error)) *loader.Control {
	t.Helper()
	nstest.RequireRoot(t)
	var (
		c   *loader.Control
		err error
	)
	nstest.Eventually(t, "no other process has registered the control", func() bool {
		c, err = register()
		return !errors.Is(err, unix.EEXIST)
	})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() {
		c.Close()
		nstest.Eventually(t, "the control is gone", func() bool { return !available(t, c.Name()) })
	})
	return c
}

func TestRegister(t *testing.T) {
	for name, register := range controls(40e9) {
		t.Run(name, func(t *testing.T) {
			control := registered(t, register)
			qt.Assert(t, qt.Equals(control.Name(), name))
			qt.Assert(t, qt.IsTrue(available(t, name)))

			_, err := register()
			qt.Assert(t, qt.ErrorMatches(err, "register congestion control .*is the name taken.*"))
			qt.Assert(t, qt.IsTrue(available(t, name)), qt.Commentf("the other one took the name along"))

			qt.Assert(t, qt.IsNil(control.Close()))
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
	_, err := loader.RegisterLine(0, 0)
	qt.Check(t, qt.ErrorMatches(err, "pcn_line: line rate 0 bit/s: want 1 bit/s to 800 Gbit/s"))
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
