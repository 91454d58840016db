// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const byRateFile = `name: rates
topology: {kind: leaf-spine, rate: 10Gbps, spine_links: {rate: 25Gbps}}
switch: {marking_by_rate: true, pfc: {dynamic: {alpha: 8, by_rate: true}}}
schemes: [dcqcn, dcqcn+tcd, pcn, dctcp]
marking: {kmin: 10KB, kmax: 30KB, pmax: 0.5}
marker: npecn
duration: 1ms
flows: [{name: f, from: H0, to: H2}]
`

func TestThresholdsByRate(t *testing.T) {
	e, err := Parse("f", []byte(strings.Replace(byRateFile, "marker: npecn\n", "", 1)))
	qt.Assert(t, qt.IsNil(err))
	m, ok := e.MarkingAt("dcqcn", 25e9)
	qt.Check(t, qt.IsTrue(ok))
	qt.Check(t, qt.Equals(m, Marking{KMin: 25e3, KMax: 75e3, PMax: 0.5}))
	m, _ = e.MarkingAt("dcqcn", 1e9)
	qt.Check(t, qt.Equals(m, Marking{KMin: 1e3, KMax: 3e3, PMax: 0.5}))
	qt.Check(t, qt.Equals(e.WREDAt(40e3, 25e9), 100e3))
	d := e.Switch.PFC.Dynamic
	qt.Check(t, qt.Equals(d.AlphaAt(5e9, e.Topology.Rate), 4))
	qt.Check(t, qt.Equals(d.AlphaAt(25e9, e.Topology.Rate), 16)) // not 20

	e.Switch.MarkingByRate, d.ByRate = false, false
	m, _ = e.MarkingAt("dcqcn", 25e9)
	qt.Check(t, qt.Equals(m, Marking{KMin: 10e3, KMax: 30e3, PMax: 0.5}))
	qt.Check(t, qt.Equals(d.AlphaAt(25e9, e.Topology.Rate), 8))
	// 2^39 bytes at 800 Gbit/s do not fit 64 bits on the way
	qt.Check(t, qt.Equals(inProportion(1<<39, 800e9, 400e9), 1<<40))
}

// NP-ECN replaces RED, but neither what another scheme has nor TCD.
func TestMarkerReplacesRED(t *testing.T) {
	e, err := Parse("f", []byte(byRateFile))
	qt.Assert(t, qt.IsNil(err))
	for name, want := range map[string]string{
		"dcqcn": "npecn", "dctcp": "npecn", "pcn": "npecn", "dcqcn+tcd": "red", "qcn": "qcn",
	} {
		s, err := e.Scheme(name)
		if name == "dctcp" {
			qt.Check(t, qt.IsNil(s.Object))
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(e.Setup(s).Marker, want), qt.Commentf("%s", name))
	}
	_, ok := e.MarkingOf("dcqcn")
	qt.Check(t, qt.IsFalse(ok))
	_, err = Parse("f", []byte(strings.Replace(byRateFile, "marker: npecn", "marker: np-ecn", 1)))
	qt.Check(t, qt.ErrorMatches(err,
		`f:6:9: unknown marking rule "np-ecn" .*did you mean "npecn".*`))
}
