// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// with returns the smallest file with more lines, at another rate of the links.
func with(t *testing.T, rate, lines string) *Experiment {
	t.Helper()
	file := strings.Replace(smallest, "kind: fig1", "kind: fig1, rate: "+rate, 1) + lines
	e, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	return e
}

func TestSetsOfDCQCN(t *testing.T) {
	paper := DCQCN{
		Set: "paper", G: 1. / 256, AlphaTimer: 55e3, RateTimer: 55e3, ByteCounter: 10e6, FastRecovery: 5,
		RAI: 40e6, RHAI: 200e6, CNPInterval: 50e3, ClampTarget: true, InitialAlpha: 1, MinRate: 100e6,
		Marking: Marking{KMin: 5e3, KMax: 200e3, PMax: 0.01},
	}
	slow := paper
	slow.MinRate = 10e6
	ns3 := DCQCN{
		Set: "ns3-rdma", G: 1. / 256, AlphaTimer: 55e3, RateTimer: 60e3, ByteCounter: 300e6, FastRecovery: 5,
		RAI: 40e6, RHAI: 200e6, CNPInterval: 50e3, ClampTarget: true, AlphaFirst: true, InitialAlpha: 0.5, MinRate: 100e6,
		Marking: Marking{KMin: 40e3, KMax: 1000e3, PMax: 1},
	}
	hpcc := DCQCN{
		Set: "hpcc", G: 1. / 256, AlphaTimer: 1e3, RateTimer: 300e3, FastRecovery: 1,
		RAI: 20e6, RHAI: 200e6, DecreaseInterval: 4e3, InitialAlpha: 1, MinRate: 1000e6,
		Marking: Marking{KMin: 400e3, KMax: 1600e3, PMax: 0.2},
	}
	half := ns3
	half.G, half.ClampTarget, half.Marking.KMax = 0.5, false, 50e3
	for _, tc := range []struct {
		name, rate, lines string
		want              DCQCN
	}{
		{"default", "40Gbps", "", paper},
		{"paper", "100Gbps", "dcqcn: {set: paper}", paper},
		{"slow link", "100Mbps", "dcqcn: {set: paper}", slow},
		{"ns3-rdma", "100Gbps", "dcqcn: {set: ns3-rdma}", ns3},
		{"hpcc", "100Gbps", "dcqcn: {set: hpcc}", hpcc},
		{"other values", "40Gbps", "dcqcn: {g: 1/2, marking: {kmax: 50KB}, set: ns3-rdma, clamp_target: false}", half},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.Equals(with(t, tc.rate, tc.lines).DCQCN, tc.want))
		})
	}
}

func TestSetsOfTIMELY(t *testing.T) {
	paper := TIMELY{
		Set: "paper", EWMA: 0.875, Beta: 0.8, TLow: 50e3, THigh: 500e3, MinRTT: 20e3, Delta: 10e6,
		HAIAfter: 5, HAIFactor: 5, Segment: 64e3, MaxCut: 1, MinRate: 100e6, TCDHold: 55e3,
	}
	every := paper
	every.Segment, every.DeltaFactor = 0, true
	for _, tc := range []struct {
		name, lines string
		want        TIMELY
	}{
		{"default", "", TIMELY{
			Set: "snippet", EWMA: 0.02, Beta: 0.8, THigh: 1e6, Delta: 100e6,
			HAIAfter: 5, HAIFactor: 5, DeltaFactor: true, MaxCut: 0.5, MinRate: 100e6, TCDHold: 55e3,
		}},
		{"paper", "timely: {set: paper}", paper},
		{"ns3-rdma", "timely: {set: ns3-rdma}", TIMELY{
			Set: "ns3-rdma", EWMA: 0.875, Beta: 0.8, TLow: 50e3, THigh: 500e3, MinRTT: 20e3, Delta: 10e6,
			HAIFactor: 1, Segment: 16000, MaxCut: 1, MinRate: 1e9, TCDHold: 55e3,
		}},
		{"other values", "timely: {segment: 0, set: paper, delta_factor: true}", every},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.Equals(with(t, "100Gbps", tc.lines).TIMELY, tc.want))
		})
	}
}

func TestQCNScalesWithTheLineRate(t *testing.T) {
	want := QCN{
		Qeq: 26e3, W: 2, SampleBase: 150e3, SampleJitter: 0.15, Timer: 15e6, ByteCounter: 150e3, FastRecovery: 5,
		RAI: 5e6, RHAI: 50e6, Gd: 1. / 128, MinDecreaseFactor: 0.5, MinRate: 5e6, HAIAfterPackets: 500, HalfFrom: "ai",
	}
	qt.Assert(t, qt.Equals(with(t, "10Gbps", "").QCN, want))

	want.Qeq, want.RAI, want.RHAI = 104e3, 20e6, 200e6
	qt.Assert(t, qt.Equals(with(t, "40Gbps", "").QCN, want))

	want.Qeq, want.RAI, want.RHAI, want.MinRate = 26e3, 5e3, 50e3, 1e6 // a queue of less would be no queue
	qt.Assert(t, qt.Equals(with(t, "10Mbps", "").QCN, want))
}

// At every rate that a link may have, what the file does not give is in range.
func TestDefaultsAreInRange(t *testing.T) {
	for _, rate := range []string{"1Mbps", "999Mbps", "400Gbps", "800Gbps"} {
		for _, set := range []string{"dcqcn: {set: ns3-rdma}", "dcqcn: {set: hpcc}\ntimely: {set: ns3-rdma}", "timely: {set: paper}"} {
			with(t, rate, set)
		}
	}
}

func TestMarkingOf(t *testing.T) {
	e := with(t, "10Gbps", "dcqcn: {marking: {kmin: 6KB}}")
	for scheme, want := range map[string]Marking{
		"dcqcn":     {KMin: 6e3, KMax: 200e3, PMax: 0.01},
		"dcqcn+tcd": {KMin: 6e3, KMax: 200e3, PMax: 0.01},
		"pcn_dctcp": {KMin: 30e3, KMax: 30e3, PMax: 1},
		"cubic":     {KMin: 30e3, KMax: 30e3, PMax: 1},
		"ldcp":      {KMin: 5e3, KMax: 20e3, PMax: 1},

		"timely+tcd": {KMin: 6e3, KMax: 200e3, PMax: 0.01},
	} {
		got, ok := e.MarkingOf(scheme)
		qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s", scheme))
		qt.Assert(t, qt.Equals(got, want))
	}

	// One marking for all.
	e = with(t, "10Gbps", "dcqcn: {marking: {kmin: 6KB}}\nmarking: {kmin: 1KB, kmax: 2KB, pmax: 0.5}")
	for _, scheme := range []string{"dcqcn", "pcn_dctcp", "dctcp", "reno", "ldcp", "dcqcn+tcd", "timely+tcd"} {
		got, ok := e.MarkingOf(scheme)
		qt.Assert(t, qt.IsTrue(ok), qt.Commentf("%s", scheme))
		qt.Assert(t, qt.Equals(got, Marking{KMin: 1e3, KMax: 2e3, PMax: 0.5}))
	}
	for _, scheme := range []string{"pfc", "pcn", "timely", "qcn", "ibcc", "ibcc+tcd", "tcp"} {
		_, ok := e.MarkingOf(scheme)
		qt.Assert(t, qt.IsFalse(ok), qt.Commentf("%s", scheme))
	}
}

// Without a threshold of its own, WRED drops a little above where marking begins.
func TestWREDStartsAboveMarking(t *testing.T) {
	for _, tc := range []struct {
		name, lines string
		want        Bytes
	}{
		{"default", "", 7.5e3},
		{"own marking", "ldcp: {marking: {kmin: 6KB}}", 9e3},
		{"one marking for all", "ldcp: {marking: {kmin: 6KB}}\nmarking: {kmin: 1KB, kmax: 2KB, pmax: 0.5}", 1.5e3},
		{"own threshold", "ldcp: {wred_k: 7KB}", 7e3},
		{"always", "ldcp: {wred_k: 0}", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.Equals(with(t, "10Gbps", tc.lines).LDCP.K, tc.want))
		})
	}
}

func TestPFCOn(t *testing.T) {
	for _, tc := range []struct {
		name, pfc string
		pcn, ldcp bool
	}{
		{"default", "{}", true, true},
		{"off", "{off: true}", false, false},
		{"for one scheme", "{schemes: [pcn]}", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := strings.Replace(smallest, "[pfc]", "[pcn, ldcp]", 1) + "switch: {pfc: " + tc.pfc + "}"
			e, err := Parse("f.yaml", []byte(file))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(e.PFCOn("pcn"), tc.pcn))
			qt.Check(t, qt.Equals(e.PFCOn("ldcp"), tc.ldcp))
		})
	}
}

func TestEverySchemeIsAccepted(t *testing.T) {
	all := append(Schemes(), KernelControls()...)
	qt.Assert(t, qt.HasLen(all, 11+17))
	for _, scheme := range all {
		_, err := Parse("f.yaml", []byte(strings.Replace(smallest, "[pfc]", "["+scheme+"]", 1)))
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Assert(t, qt.DeepEquals(Schemes(), []string{"pfc", "pcn", "dcqcn", "timely", "qcn", "pcn_dctcp", "ldcp", "ibcc", "dcqcn+tcd", "timely+tcd", "ibcc+tcd"}))
	qt.Assert(t, qt.IsTrue(IsKernelControl("dctcp")))
	qt.Assert(t, qt.IsFalse(IsKernelControl("pcn_dctcp")))

	// The lists are the caller's own.
	Schemes()[0], KernelControls()[0] = "x", "x"
	qt.Assert(t, qt.Equals(Schemes()[0], "pfc"))
	qt.Assert(t, qt.IsTrue(IsKernelControl("reno")))
}
