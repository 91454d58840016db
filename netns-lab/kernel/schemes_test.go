// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// What hosts load for each scheme, and what switches do.
func TestSchemesAreLoaded(t *testing.T) {
	e, err := experiment.Parse("x.yaml", []byte("{name: x, topology: {kind: fig1}, schemes: [pfc], duration: 1ms, flows: [{name: F0, from: H0, to: R0}]}"))
	qt.Assert(t, qt.IsNil(err))
	p, err := newPlan(e)
	qt.Assert(t, qt.IsNil(err))
	for scheme, want := range map[string]struct {
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
	} {
		t.Run(scheme, func(t *testing.T) {
			f := describeFabric(p, scheme)
			qt.Assert(t, qt.IsNil(f.build(f.loadControl)))
			t.Cleanup(func() { qt.Check(t, qt.IsNil(f.close())) })
			qt.Check(t, qt.Equals(f.control.Name(), want.control))
			qt.Check(t, qt.Equals(f.np != nil, want.np))
			qt.Check(t, qt.Equals(f.rp != nil, want.rp))
			tcd := experiment.HasTCD(scheme)
			qt.Check(t, qt.Equals(f.control.TCD(), tcd))
			for id, port := range f.options.Ports {
				if id == 0 || p.nodes[p.ports[id].node].isHost {
					continue
				}
				qt.Check(t, qt.Equals(port.Marker, want.marker))
				qt.Check(t, qt.Equals(port.Detect.TCD, tcd))
				qt.Check(t, qt.Equals(port.Detect.MaxTonNs > 0, tcd))
			}
			qt.Check(t, qt.Equals(needsECN(e, scheme), scheme != "timely"))
		})
	}
}

// The default table is that of IBM's simulator: a gap of CCTI^2 * 3300 / 6889 ns behind packets of
// 2 KB at 32 Gbit/s. 14 and 2 bits tell an eighth of a packet's time.
func TestCCT(t *testing.T) {
	table := cct(experiment.IBCC{Limit: 127, Delay: 15, Exponent: 2})
	qt.Assert(t, qt.HasLen(table, 128))
	for i, e := range table {
		want := float64(i*i) * 3300 / 6889 / 512
		qt.Check(t, qt.IsTrue(math.Abs(e.Delay()-want) < 0.01*want+1./16), qt.Commentf("entry %d: %g, want %g", i, e.Delay(), want))
	}
	qt.Check(t, qt.DeepEquals(cct(experiment.IBCC{Limit: 2, Delay: 3, Exponent: 1}), []loader.CCTEntry{{Shift: 3}, {Multiplier: 12, Shift: 3}, {Multiplier: 24, Shift: 3}}))
}
