// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/truth"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

const truthYAML = `
name: truth
topology: {kind: tcd-fig2, burst_hosts: 3, rate: 40Gbps, delay: 4us}
switch: {detectors: true}
schemes: [pfc]
warmup: 0ms
duration: 2ms
sample: 50us
bursts:
  - {name: burst, from: A0..A2, to: R1, size: 1MB}
  - {name: F0, from: H0, to: R0, rate: %s, size: 4MB}
  - {name: F2, from: H2, to: R0, rate: %s, size: 4MB}
`

// truthOf is the truth of each port and bin of a run that is not run: all flows are bursts.
func truthOf(t *testing.T, yaml string) map[string][]truth.Input {
	t.Helper()
	p := planOf(t, yaml)
	w, tr := newWindow(p.exp, 1e9), &traffic{bursts: &bursts{}}
	for _, b := range p.exp.Bursts {
		for _, from := range b.From {
			tr.bursts.flows = append(tr.bursts.flows, &burstFlow{
				from: from, to: b.To, startNs: uint64(b.At), frames: p.burstFrames(b),
				bytes: uint64(b.Size), gapNs: p.gapNs(b),
			})
		}
	}
	model, err := newTruth(p, w, tr, nil)
	qt.Assert(t, qt.IsNil(err))
	inputs := map[string][]truth.Input{}
	for bin := range uint64(p.exp.Duration / p.exp.Sample) {
		for id, in := range model.Step(w.t0Ns + bin*uint64(p.exp.Sample)) {
			inputs[p.ports[id].name] = append(inputs[p.ports[id].name], in)
		}
	}
	return inputs
}

// congestedBins is the first bin in which a port is congested, and the first after it in which it
// is not.
func congestedBins(in []truth.Input) (from, to int) {
	from = -1
	for i, x := range in {
		switch {
		case x.Congested && from < 0:
			from, to = i, i+1
		case x.Congested:
			to = i + 1
		}
	}
	return from, to
}

// TestTruth: what is congested is worked out by hand. Three bursts of 1 MB, of 960 frames, are 3.13
// MB of frames: at 40 Gbit/s 627 us, or 13 bins of which the last is not full, so that nothing is
// kept at its end.
func TestTruth(t *testing.T) {
	for _, test := range []struct {
		rate string
		p2   bool // 2 x rate is over 40 Gbit/s
	}{{"5Gbps", false}, {"20Gbps", false}, {"25Gbps", true}} {
		t.Run(test.rate, func(t *testing.T) {
			in := truthOf(t, fmt.Sprintf(truthYAML, test.rate, test.rate))
			from, to := congestedBins(in["S3->R1"])
			qt.Check(t, qt.Equals(from, 0))
			qt.Check(t, qt.Equals(to, 12))
			qt.Check(t, qt.Equals(in["S3->R1"][0].Bps, 3*40e9)) // their hosts' ports let no more pass
			from, _ = congestedBins(in["S2->S3"])
			qt.Check(t, qt.Equals(from >= 0, test.p2))
			for _, port := range []string{"S0->S2", "S1->S2", "S3->R0"} {
				from, _ := congestedBins(in[port])
				qt.Check(t, qt.Equals(from, -1), qt.Commentf(port))
			}
			if test.p2 { // takes in 50 Gbit/s, and passes 40 on
				qt.Check(t, qt.Equals((in["S2->S3"][3].Bps+5e7)/1e8, 500))
				qt.Check(t, qt.Equals((in["S3->R0"][3].Bps+5e7)/1e8, 400))
			}
		})
	}
}

// Flows of several paths can't be judged.
func TestTruthNeedsOnePath(t *testing.T) {
	_, err := newPlan(parse(t, `
name: paths
topology: {kind: leaf-spine}
switch: {detectors: true}
schemes: [pfc]
duration: 1ms
flows: [{name: F0, from: H0, to: H2}]
`))
	qt.Assert(t, qt.ErrorMatches(err, "from H0 to H2 there are 2 paths at L0: `detectors` need a network with one"))
}

// TestOffWithin: of times that overlap a bin, the parts in it count.
func TestOffWithin(t *testing.T) {
	offs := []npecn.Off{{FromNs: 50, ToNs: 120}, {FromNs: 150, ToNs: 160}, {FromNs: 190, ToNs: 500}}
	qt.Check(t, qt.Equals(offWithin(offs, 100, 200), 20+10+10))
	qt.Check(t, qt.Equals(offWithin(offs, 300, 400), 100))
	qt.Check(t, qt.Equals(offWithin(offs, 500, 600), 0))
	qt.Check(t, qt.Equals(len(tcdStates), 4))
	qt.Check(t, qt.Equals(tcdStates[0], result.NonCongestion))
}
