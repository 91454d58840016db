// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"net/netip"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// all are the schemes that come along, with TCD and without, at this line rate, with their
// defaults.
func all(lineRateBps uint64) []loader.Registration {
	var list []loader.Registration
	for _, name := range scheme.Builtin().Names() {
		if r := registration(name, lineRateBps); r.Scheme.OnlySimulated() == nil {
			list = append(list, r)
		}
	}
	return list
}

// A control whose switches only the simulator has is refused.
func TestSimulatedSchemesAreRefused(t *testing.T) {
	_, err := loader.Register(registration("hpcc", 40e9))
	qt.Assert(t, qt.ErrorMatches(err, "congestion control hpcc: scheme hpcc needs switches that "+
		"write telemetry into packets, and only the simulator's do"))
}

// Every scheme's control is there by its name while it is registered, and no longer.
func TestEverySchemeRegisters(t *testing.T) {
	for _, r := range all(40e9) {
		t.Run(r.Scheme.Name, func(t *testing.T) {
			control := registered(t, r)
			qt.Assert(t, qt.Equals(control.Name(), r.Scheme.Control))
			qt.Assert(t, qt.Equals(control.Scheme().Name, r.Scheme.Name))
			qt.Assert(t, qt.IsTrue(available(t, r.Scheme.Control)))
			qt.Assert(t, qt.IsNil(control.Close()))
			nstest.Eventually(t, "the control is gone", func() bool {
				return !available(t, r.Scheme.Control)
			})
		})
	}
}

// field is where a field of a C struct stands.
type field struct{ offset, size uint32 }

func fieldsOf(t *testing.T, s *btf.Struct) map[string]field {
	t.Helper()
	fields := map[string]field{}
	for _, m := range s.Members {
		size, err := btf.Sizeof(m.Type)
		qt.Assert(t, qt.IsNil(err))
		fields[m.Name] = field{m.Offset.Bytes(), uint32(size)}
	}
	return fields
}

// FlowKey.MarshalBinary has the layout that struct flow_key has in every object.
func TestFlowKeyLayout(t *testing.T) {
	k := loader.FlowKey{
		Src:      netip.MustParseAddrPort("[102:304:506:708:90a:b0c:d0e:f10]:8210"),
		Dst:      netip.MustParseAddrPort("[1112:1314:1516:1718:191a:1b1c:1d1e:1f20]:8724"),
		Protocol: 37,
		Netns:    0x0807060504030201,
	}
	src, dst := k.Src.Addr().As16(), k.Dst.Addr().As16()
	want := map[string][]byte{
		"saddr": src[:], "daddr": dst[:],
		"sport": {8210 >> 8, 8210 & 255}, "dport": {8724 >> 8, 8724 & 255},
		"protocol": {37}, "pad": {0, 0, 0}, "netns": {1, 2, 3, 4, 5, 6, 7, 8},
	}
	got, err := k.MarshalBinary()
	qt.Assert(t, qt.IsNil(err))
	for _, s := range scheme.Builtin().Schemes() {
		t.Run(s.Name, func(t *testing.T) {
			spec, err := s.Object.Spec()
			qt.Assert(t, qt.IsNil(err))
			flows := spec.Maps["flows"]
			if flows == nil {
				qt.Assert(t, qt.Equals(s.Sender, scheme.SenderLine),
					qt.Commentf("it keeps no flow table"))
				return
			}
			key, ok := btf.As[*btf.Struct](flows.Key)
			qt.Assert(t, qt.IsTrue(ok))
			qt.Assert(t, qt.Equals(key.Name, "flow_key"))
			qt.Assert(t, qt.Equals(int(key.Size), len(got)))
			fields := fieldsOf(t, key)
			qt.Assert(t, qt.HasLen(fields, len(want)))
			for name, bytes := range want {
				f := fields[name]
				qt.Check(t, qt.Equals(int(f.size), len(bytes)), qt.Commentf("%s", name))
				qt.Check(t, qt.DeepEquals(got[f.offset:f.offset+f.size], bytes),
					qt.Commentf("%s", name))
			}
		})
	}
}

// Every rate-based scheme takes the rates between its floor and line rate, or the nearest below
// that it can have. The others have no rate to set.
func TestSetSendRateOfEveryScheme(t *testing.T) {
	const lineRateBps = 10_000_000_000
	for _, r := range all(lineRateBps) {
		t.Run(r.Scheme.Name, func(t *testing.T) {
			control := registered(t, r)
			k := newPath(t).connect(t, control).key()
			if r.Scheme.Sender != scheme.SenderRate {
				qt.Check(t, qt.IsFalse(control.HasRate()))
				qt.Check(t, qt.ErrorMatches(control.SetSendRate(k, lineRateBps),
					"(set rate of )?flow .*"))
				return
			}
			values, problems := r.Scheme.Object.Resolve(r.Settings, r.Network)
			qt.Assert(t, qt.HasLen(problems, 0))
			floorBps, err := r.Scheme.MinRateBps(values, r.Network)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsTrue(floorBps > 0 && floorBps < lineRateBps),
				qt.Commentf("%d bit/s", floorBps))
			const half, third = lineRateBps / 2, lineRateBps / 3
			for _, rateBps := range []uint64{half, floorBps, third, 2 * floorBps, lineRateBps} {
				qt.Assert(t, qt.IsNil(control.SetSendRate(k, rateBps)))
				f, err := control.Flow(k)
				qt.Assert(t, qt.IsNil(err))
				isNear := f.SendRateBps <= rateBps &&
					float64(f.SendRateBps) >= 0.95*float64(rateBps)
				qt.Check(t, qt.IsTrue(isNear),
					qt.Commentf("%d bit/s, %d were set", f.SendRateBps, rateBps))
			}
			for _, rateBps := range []uint64{0, floorBps - 1, lineRateBps + 1} {
				err := control.SetSendRate(k, rateBps)
				qt.Check(t, qt.ErrorMatches(err,
					"set rate of flow .* want .* to 10000000000 bit/s"))
			}
			none := loader.FlowKey{Src: k.Src, Dst: k.Src}
			qt.Check(t, qt.ErrorIs(control.SetSendRate(none, lineRateBps), loader.ErrNoFlow))
		})
	}
}
