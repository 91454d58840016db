// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// Two hosts send through S0 and S1; the link between these is as slow as one of theirs, and that of
// B0 a fourth of it.
const twoSwitches = `
name: own
engine: sim
topology: {kind: dumbbell, senders: 2, receivers: 1, rate: 10Gbps, delay: 1us,
  links: [{link: B0-S1, rate: 2.5Gbps}]}
schemes: [%s]
warmup: 0ms
duration: 2ms
switch: {buffer: 4MB, %s}
marking: {kmin: 100KB, kmax: 100KB, pmax: 1}
flows: [{name: F, from: A0..A1, to: B0, start: 0ms, size: 1MB}]
`

func longest(run *result.Run, port string) uint64 {
	for _, p := range run.Ports {
		if p.Name == port {
			return p.QueueMaxBytes
		}
	}
	return 0
}

// Values of one switch change what it does, and those of all do so where it has none.
func TestSwitchesOfTheirOwn(t *testing.T) {
	of := func(scheme, sw string) *result.Run {
		return simulate(t, parse(t, fmt.Sprintf(twoSwitches, scheme, sw)), scheme)
	}
	const frame = 1000

	// own values that are those of all
	for _, scheme := range []string{"pfc", "dcqcn"} {
		for all, own := range map[string]string{
			"pfc: {xoff: 60KB}": "at: S0..S1, buffer: 4MB, xoff: 60KB, " +
				"kmin: 100KB, kmax: 100KB",
			"pfc: {dynamic: {alpha: 1/32}}":                            "at: [S1], buffer: 4MB, alpha: 1/32",
			"pfc: {dynamic: {alpha: 1/32, headroom: 3, reserve: 4KB}}": "at: [S1], alpha: 1/32",
		} {
			dirs := [2]string{t.TempDir(), t.TempDir()}
			qt.Assert(t, qt.IsNil(of(scheme, all).Write(dirs[0])))
			qt.Assert(t, qt.IsNil(of(scheme, all+", own: [{"+own+"}]").Write(dirs[1])))
			sameFiles(t, dirs[0], dirs[1], "experiment.yaml", "manifest.json")
		}
	}

	// S1 has one port to S0 and one queue: it holds XOFF, and what comes until its PAUSE works
	for xoff, bytes := range map[string]uint64{"60KB": 60_000, "90KB": 90_000} {
		run := of("pfc", "pfc: {xoff: 200KB}, own: [{at: S1, xoff: "+xoff+"}]")
		got := longest(run, "S1->B0")
		qt.Check(t, qt.IsTrue(got >= bytes && got <= bytes+6*frame), qt.Commentf("%d", got))
		run = of("pfc", "pfc: {xoff: 200KB}, own: [{at: S0, xoff: "+xoff+"}]")
		got = longest(run, "S1->B0")
		qt.Check(t, qt.IsTrue(got >= 200_000 && got <= 200_000+6*frame), qt.Commentf("%d", got))
	}
	run := of("pfc", "pfc: {dynamic: {alpha: 1/32}}, own: [{at: S1, alpha: 1/64}]")
	want := uint64(4_000_000 / 65) // x = (4 MB - x) / 64
	got := longest(run, "S1->B0")
	qt.Check(t, qt.IsTrue(got >= want-frame && got <= want+6*frame), qt.Commentf("%d", got))

	// a small buffer drops at S1 only
	run = of("pfc", "pfc: {off: true}, own: [{at: S1, buffer: 50KB}]")
	for _, p := range run.Ports { // S1's ACKs find it full, too
		qt.Check(t, qt.Equals(p.DroppedBufferPackets > 0, strings.HasPrefix(p.Name, "S1->")),
			qt.Commentf("%s: %d", p.Name, p.DroppedBufferPackets))
	}
	qt.Check(t, qt.Equals(longest(run, "S1->B0"), 50_000))

	// marks from another queue on
	marked := func(own string) uint64 {
		run := of("dcqcn", "pfc: {xoff: 1MB}, own: [{at: S1, "+own+"}]")
		for _, p := range run.Ports {
			if p.Name == "S1->B0" {
				return p.MarkedPackets
			}
		}
		return 0
	}
	qt.Check(t, qt.Equals(marked("kmin: 3.9MB, kmax: 3.9MB"), 0))
	qt.Check(t, qt.IsTrue(marked("kmin: 10KB, kmax: 10KB") > 0))
}
