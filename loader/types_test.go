// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// What is stored of the types of a control's maps is what the kernel keeps of them.
func TestStoredTypesAreTheKernels(t *testing.T) {
	nstest.RequireRoot(t)
	nstest.Turn(t)
	s, ok := scheme.Builtin().ByControl("pcn")
	qt.Assert(t, qt.IsTrue(ok))
	c, err := loader.Register(loader.Registration{Scheme: s, Network: scheme.Network{
		LineRateBps: 1e9, BaseRTTNs: 50_000, FrameBytes: 1514, Host: true,
	}}, loader.Unregistered())
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(c.Close())) })
	stored, err := c.Types()
	qt.Assert(t, qt.IsNil(err))
	types, err := loader.UnmarshalTypes(stored)
	qt.Assert(t, qt.IsNil(err))
	for name, m := range map[string]*ebpf.Map{
		"flows": c.FlowTable(), "control_counts": c.Maps()["control_counts"],
	} {
		want, err := loader.MapTypes(nil).ValueType(name, m) // the kernel's
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsNotNil(types[name]))
		qt.Check(t, qt.DeepEquals(placesIn(t, types[name]), placesIn(t, want)))
	}
	_, err = loader.FromFlows("pcn", c.FlowTable(), types)
	qt.Check(t, qt.IsNil(err))
}

func TestNoTypes(t *testing.T) {
	types, err := loader.UnmarshalTypes(nil)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(types, 0))
	_, err = loader.UnmarshalTypes([]byte("no BTF at all, but longer than its header is"))
	qt.Check(t, qt.ErrorMatches(err, "read the types of maps: .*"))
}

// placesIn returns the offsets of a struct's members in bits, with those of the structs in it.
func placesIn(t *testing.T, s *btf.Struct) map[string]btf.Bits {
	t.Helper()
	places := map[string]btf.Bits{}
	for _, m := range s.Members {
		places[m.Name] = m.Offset
		if inner, ok := btf.As[*btf.Struct](m.Type); ok {
			for name, at := range placesIn(t, inner) {
				places[m.Name+"."+name] = m.Offset + at
			}
		}
	}
	return places
}
