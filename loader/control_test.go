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

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// registered registers a congestion control until the test ends, and checks that its name is free
// then.
func registered(t *testing.T, r loader.Registration) *loader.Control {
	t.Helper()
	nstest.RequireRoot(t)
	nstest.Turn(t)
	var (
		c   *loader.Control
		err error
	)
	nstest.Eventually(t, "the name of the control is free", func() bool {
		c, err = loader.Register(r)
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
	for name, r := range paced(40e9) {
		t.Run(name, func(t *testing.T) {
			control := registered(t, r)
			qt.Assert(t, qt.Equals(control.Name(), name))
			qt.Assert(t, qt.IsTrue(available(t, name)))

			_, err := loader.Register(r)
			qt.Assert(t, qt.ErrorMatches(err, "register congestion control .*is the name taken.*"))
			qt.Assert(t, qt.IsTrue(available(t, name)),
				qt.Commentf("the other one took the name along"))

			qt.Assert(t, qt.IsNil(control.Close()))
		})
	}
}

func available(t *testing.T, name string) bool {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	qt.Assert(t, qt.IsNil(err))
	return slices.Contains(strings.Fields(string(b)), name)
}

func TestPCNParametersAreChecked(t *testing.T) {
	good := with(pcn(40e9), "w_min", "1/128", "w_max", "0.5")
	checkRejected(t, []rejection{
		{onLine(good, 0), "line rate 0 bit/s.*"},
		{onLine(good, 801e9), "line rate .* want 1 to 800000000000 bit/s"},
		{dilated(good, 21), "dilation shift 21.*"},
		{withNumber(good, "w_min", 0),
			`w_min: 0 is out of range \(hint: 0.0000152587890625 to w_max = 0.5\)`},
		{with(good, "w_min", "0.6"), "w_min: 0.6 is out of range .*"},
		{with(good, "w_max", "1"),
			`w_max: 1 is out of range \(hint: w_min = 0.0078125 to below 1\)`},
		{with(good, "min_rate", "41Gbps"),
			`min_rate: 41Gbps is out of range \(hint: rate_unit = 1Mbps to 40Gbps\)`},
	})
	checkRejected(t, []rejection{{onLine(line(40e9), 0),
		"line rate 0 bit/s: want 1 to 800000000000 bit/s"}})
}

func TestFlowKeyRoundTrip(t *testing.T) {
	for _, k := range []loader.FlowKey{
		{Src: netip.MustParseAddrPort("10.0.0.1:5000"),
			Dst: netip.MustParseAddrPort("10.0.0.2:6000"), Protocol: 6},
		{Src: netip.MustParseAddrPort("[fd00::1]:1"),
			Dst: netip.MustParseAddrPort("[fd00::2]:65535"), Protocol: 17, Netns: 1<<63 | 5},
	} {
		b, err := k.MarshalBinary()
		qt.Assert(t, qt.IsNil(err))
		var back loader.FlowKey
		qt.Assert(t, qt.IsNil(back.UnmarshalBinary(b)))
		qt.Assert(t, qt.Equals(back, k))
	}
	var k loader.FlowKey
	qt.Assert(t, qt.ErrorMatches(k.UnmarshalBinary(make([]byte, 47)),
		"flow key of 47 bytes: want 48"))
}

// Every 48 bytes are a key, and the same 48 bytes come back, but for the padding.
func FuzzFlowKey(f *testing.F) {
	f.Add(make([]byte, 48))
	f.Add(bytes.Repeat([]byte{0xff}, 48))
	f.Add(append(append(make([]byte, 10), 0xff, 0xff, 10, 0, 0, 1), make([]byte, 32)...))
	f.Add(make([]byte, 49))
	f.Fuzz(func(t *testing.T, b []byte) {
		var k loader.FlowKey
		err := k.UnmarshalBinary(b)
		qt.Assert(t, qt.Equals(err == nil, len(b) == 48))
		if err != nil {
			return
		}
		back, err := k.MarshalBinary()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.DeepEquals(back[:37], b[:37]))
		qt.Assert(t, qt.DeepEquals(back[37:40], []byte{0, 0, 0}))
		qt.Assert(t, qt.DeepEquals(back[40:], b[40:]))
		qt.Assert(t, qt.IsFalse(k.Src.Addr().Is4In6()))
	})
}

// Where TCP decides on bursts by itself, it doesn't ask the control before each packet.
func TestMinTSOSegs(t *testing.T) {
	for _, tc := range []struct {
		key, value string
		want       bool
	}{
		{"burst", "0ns", false}, {"burst", "1us", true}, {"young", "1MB", true},
	} {
		t.Run(tc.key+" "+tc.value, func(t *testing.T) {
			control := registered(t, with(pcn(40e9), tc.key, tc.value))
			qt.Assert(t, qt.Equals(control.LimitsBursts(), tc.want))
		})
	}
}

// On hosts some programs take the place of others, which do the same in experiments.
func TestHostPrograms(t *testing.T) {
	for _, host := range []bool{false, true} {
		r := dctcp()
		r.Network.Host = host
		control := registered(t, r)
		for _, name := range []string{"cwnd_event", "in_ack_event", "cong_avoid"} {
			name = "pcn_dctcp_" + name
			qt.Check(t, qt.Equals(control.HasProgram(name), !host), qt.Commentf(name))
			qt.Check(t, qt.Equals(control.HasProgram(name+"_host"), host), qt.Commentf(name))
		}
		qt.Check(t, qt.IsTrue(control.HasProgram("pcn_dctcp_ssthresh")))
		qt.Assert(t, qt.IsNil(control.Close()))
	}
}
