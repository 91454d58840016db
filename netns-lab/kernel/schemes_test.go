// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// builtFor builds the fabric of a scheme, for the time of the test.
func builtFor(t *testing.T, p *plan, name string) *fabric {
	t.Helper()
	f := describeFabric(p, algorithmIn(t, p, name))
	qt.Assert(t, qt.IsNil(f.build(f.loadControl)))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(f.close())) })
	return f
}

// What hosts load for each scheme, and what switches do.
func TestSchemesAreLoaded(t *testing.T) {
	e, err := experiment.Parse("x.yaml", []byte("{name: x, topology: {kind: fig1}, schemes: [pfc], duration: 1ms, flows: [{name: F0, from: H0, to: R0}]}"))
	qt.Assert(t, qt.IsNil(err))
	p, err := newPlan(e)
	qt.Assert(t, qt.IsNil(err))
	schemes := map[string]struct {
		control string
		np, rp  bool
		marker  npecn.Marker
	}{
		"pfc":        {"pcn_line", false, false, npecn.NoMarker},
		"pcn":        {"pcn", true, true, npecn.NPECN},
		"dcqcn":      {"dcqcn", true, true, npecn.RED},
		"dcqcn+tcd":  {"dcqcn_tcd", true, true, npecn.RED},
		"timely":     {"timely", false, false, npecn.NoMarker},
		"timely+tcd": {"timely_tcd", true, true, npecn.RED},
		"ibcc":       {"ibcc", true, true, npecn.FECN},
		"ibcc+tcd":   {"ibcc_tcd", true, true, npecn.FECN},
		"qcn":        {"qcn", false, true, npecn.QCN},
		"ldcp":       {"ldcp", false, false, npecn.RED},
		"pcn_dctcp":  {"pcn_dctcp", false, false, npecn.RED},
		"dctcp_rate": {"dctcp_rate", false, false, npecn.RED},
	}
	for _, name := range scheme.Builtin().Names() {
		s, err := scheme.Builtin().Lookup(name)
		qt.Assert(t, qt.IsNil(err))
		_, isTold := schemes[name]
		if s.OnlySimulated() != nil {
			qt.Check(t, qt.IsFalse(isTold), qt.Commentf("scheme %s", name))
		} else if !isTold {
			t.Run(name, func(t *testing.T) {
				qt.Check(t, qt.Equals(builtFor(t, p, name).control.Name(), s.Control))
			})
		}
	}
	for name, want := range schemes {
		t.Run(name, func(t *testing.T) {
			a := algorithmIn(t, p, name)
			f := builtFor(t, p, name)
			qt.Check(t, qt.Equals(f.control.Name(), want.control))
			qt.Check(t, qt.Equals(f.np != nil, want.np))
			qt.Check(t, qt.Equals(f.rp != nil, want.rp))
			tcd := strings.HasSuffix(name, "+tcd")
			qt.Check(t, qt.Equals(a.TCD, tcd))
			qt.Check(t, qt.Equals(f.control.Scheme().TCD, tcd))
			for id, port := range f.options.Ports {
				if id == 0 || p.nodes[p.ports[id].node].isHost {
					continue
				}
				qt.Check(t, qt.Equals(port.Marker, want.marker))
				qt.Check(t, qt.Equals(port.Detect.TCD, tcd))
				qt.Check(t, qt.Equals(port.Detect.MaxTonNs > 0, tcd))
			}
			qt.Check(t, qt.Equals(a.NeedsECN, name != "timely" && name != "qcn"))
		})
	}
}

// cctEntry is an entry of InfiniBand's congestion control table: a delay of multiplier / 2^shift
// packets' times.
type cctEntry struct{ multiplier, shift uint16 }

func (e cctEntry) delay() float64 { return math.Ldexp(float64(e.multiplier), -int(e.shift)) }

// cctOf reads the table that ibcc's senders get in an experiment with these parameters. It is the
// last of them.
func cctOf(t *testing.T, parameters string) []cctEntry {
	t.Helper()
	const entries, multiplierBits = 128, 14
	p := planOf(t, fmt.Sprintf(planYAML, 1)+"ibcc: "+parameters)
	params, err := algorithmIn(t, p, "ibcc").values.Bytes(scheme.ParamsVariable, p.network(), false)
	qt.Assert(t, qt.IsNil(err))
	words := make([]uint16, entries)
	_, err = binary.Decode(params[len(params)-binary.Size(words):], binary.LittleEndian, words)
	qt.Assert(t, qt.IsNil(err))
	var table []cctEntry
	for _, w := range words {
		table = append(table, cctEntry{w & (1<<multiplierBits - 1), w >> multiplierBits})
	}
	return table
}

// The default table is that of IBM's simulator: a gap of CCTI^2 * 3300 / 6889 ns behind packets of
// 2 KB at 32 Gbit/s. 14 and 2 bits tell an eighth of a packet's time.
func TestCCT(t *testing.T) {
	for i, e := range cctOf(t, "{}") {
		want := float64(i*i) * 3300 / 6889 / 512
		isNear := math.Abs(e.delay()-want) < 0.01*want+1./16
		qt.Check(t, qt.IsTrue(isNear), qt.Commentf("entry %d: %g, want %g", i, e.delay(), want))
	}
	few := cctOf(t, "{ccti_limit: 2, cct_delay: 3, cct_exponent: 1}")
	qt.Check(t, qt.IsTrue(slices.Equal(few[:3], []cctEntry{{0, 3}, {12, 3}, {24, 3}})), qt.Commentf("%+v", few[:3]))
}
