// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// Senders wait for what others have received: a flow for two, and a ring for the message before.
func TestFlowsWaitForOthers(t *testing.T) {
	run := runShort(t, `
name: waits
topology: {kind: star, hosts: 4, rate: 40Gbps, delay: 5us}
schemes: [pfc]
warmup: 0ms
duration: 2ms
flows:
  - {name: a, from: [H0, H1], to: H2, size: 100KB, start: 0ms}
  - {name: b, from: H2, to: H3, size: 50KB, after: a + 20us}
  - {name: never, from: H2, to: H3, size: 50KB, after: ring + 2ms}
collective: {name: ring, kind: all-gather, ranks: H0..H3, size: 200KB, after: b}
`, "pfc")
	m := run.Manifest
	qt.Check(t, qt.Equals(m.Verdict, result.Valid), qt.Commentf("%s", m.Reasons))
	flows := map[string]result.Flow{}
	for _, f := range run.Flows {
		flows[f.Name] = f
		if f.Name == "never" {
			qt.Check(t, qt.IsNil(f.EndNs))
			qt.Check(t, qt.Equals(f.StartNs, 2_000_000))
			continue
		}
		qt.Assert(t, qt.IsNotNil(f.EndNs), qt.Commentf("%s", f.Name))
	}
	starts := func(name string, wantNs int64) { // the program wakes up within a while
		got := flows[name].StartNs
		qt.Check(t, qt.IsTrue(got >= wantNs && got < wantNs+2*mostQuantumNs+10_000),
			qt.Commentf("%s at %d ns, want %d", name, got, wantNs))
	}
	starts("b", max(*flows["a-H0-0"].EndNs, *flows["a-H1-0"].EndNs)+20_000)
	for _, name := range []string{"ring-H0-H1", "ring-H1-H2", "ring-H2-H3", "ring-H3-H0"} {
		starts(name, *flows["b"].EndNs)
		// three steps of 50 messages of 1000 bytes at 40 Gbit/s, and two links each
		took := *flows[name].EndNs - flows[name].StartNs
		qt.Check(t, qt.IsTrue(took > 3*20_000 && took < 3*25_000), qt.Commentf("%d ns", took))
	}
}
