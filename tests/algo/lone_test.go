// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/sim"
)

// loneNetwork is that of lone flows: hosts with 40 Gbit/s.
var loneNetwork = scheme.Network{
	LineRateBps: 40e9, BaseRTTNs: 10_000, PathRTTNs: 12_000, FrameBytes: 1000, Flows: 10,
}

// startLone starts a flow of a scheme's control, as it is compiled for the simulator.
func startLone(
	t testing.TB, name string, parameters map[string]float64, nowNs int64,
) *sim.LoneFlow {
	t.Helper()
	s, err := scheme.Builtin().Lookup(name)
	qt.Assert(t, qt.IsNil(err))
	flow, err := sim.NewLoneFlow(s, loneNetwork, parameters, nowNs)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(flow.Close())) })
	return flow
}

// A lone flow decides what the kernel's bytecode decides, which is held against an oracle.
func TestLoneFlow(t *testing.T) {
	s := loadSenders(t)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 76))
		p, steps := randomSwift(r, 500)
		s.swift(t, p, steps)
		flow := startLone(t, "swift", map[string]float64{
			"base_target": float64(p.BaseTargetNs), "fs_range": float64(p.FsRangeNs),
			"ai": q24Float(p.Ai), "beta": q24Float(p.Beta), "max_mdf": q24Float(p.MaxMdf),
			"fs_min_cwnd": q24Float(p.FsMin), "fs_max_cwnd": float64(p.FsMax),
			"max_cwnd": float64(p.MaxCwnd), "first_cwnd": float64(p.FirstCwnd),
		}, int64(steps[0].NowNs))
		for i, step := range steps[1:] {
			if step.Event == rateEventLOSS {
				flow.Loss(int64(step.NowNs))
			} else {
				flow.ACK(int64(step.NowNs), sim.LoneACK{Packets: step.Acked,
					RTTNs: int64(step.DelayNs), Limited: step.Limited != 0})
			}
			what := qt.Commentf("seed %d, step %d of %+v", seed, i, p)
			qt.Assert(t, qt.Equals(flow.Stat("window_packets"), u24(step.Rp.Cwnd)), what)
			qt.Assert(t, qt.Equals(flow.Window(), uint32(step.Rp.Cwnd>>24)), what)
		}
	}
}

func TestLoneFlowErrors(t *testing.T) {
	s, err := scheme.Builtin().Lookup("swift")
	qt.Assert(t, qt.IsNil(err))
	for key, want := range map[string]string{
		"alpha": `scheme swift has no parameter alpha: want one of \[base_target fs_range .*`,
		"beta":  "scheme swift: beta: .*",
	} {
		_, err := sim.NewLoneFlow(s, loneNetwork, map[string]float64{key: 7}, 0)
		qt.Check(t, qt.ErrorMatches(err, want))
	}
}

// A CNM and a CNP cut the rate by what the first one is said to in QCN's and DCQCN's papers.
func TestLoneFlowHears(t *testing.T) {
	for _, test := range []struct {
		scheme string
		hear   func(*sim.LoneFlow)
		share  float64
	}{
		{"qcn", func(f *sim.LoneFlow) { f.CNM(1e6, 1) }, 1 - 1./128},
		{"qcn", func(f *sim.LoneFlow) { f.CNM(1e6, 32) }, 1 - 32./128},
		{"dcqcn", func(f *sim.LoneFlow) { f.CNP(1e6, 0, true, false) }, 1 - 1./2},
		{"dcqcn+tcd", func(f *sim.LoneFlow) { f.CNP(1e6, 0, false, true) }, 1},
	} {
		flow := startLone(t, test.scheme, nil, 0)
		qt.Check(t, qt.Equals(flow.RateBps(), loneNetwork.LineRateBps))
		test.hear(flow)
		want := uint64(test.share * float64(loneNetwork.LineRateBps))
		qt.Check(t, qt.Equals(flow.RateBps(), want), qt.Commentf("%s", test.scheme))
	}
}
