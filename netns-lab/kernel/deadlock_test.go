// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// ringYAML is five switches in a ring, and flows that go two links along it: each link's packets
// wait for the next one's, all the way around.
const ringYAML = `
name: ring
topology: {file: ring.txt}
switch: {pfc: {xoff: 20KB}}
schemes: [pfc]
warmup: 0ms
duration: 1ms
flows: [{name: F, from: H0..H4, to: [H2, H3, H4, H0, H1]}]
files:
  ring.txt: |
    10 5 10
    5 6 7 8 9
    0 5 40Gbps 5us 0
    1 6 40Gbps 5us 0
    2 7 40Gbps 5us 0
    3 8 40Gbps 5us 0
    4 9 40Gbps 5us 0
    5 6 40Gbps 5us 0
    6 7 40Gbps 5us 0
    7 8 40Gbps 5us 0
    8 9 40Gbps 5us 0
    9 5 40Gbps 5us 0
`

func deadlockOf(t *testing.T, yaml string) *result.Run {
	t.Helper()
	run := runShort(t, yaml, "pfc")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid), qt.Commentf("%s", run.Manifest.Reasons))
	return run
}

// TestCyclicDependencyIsFound: nothing moves any more, and it is said who waits for whom.
func TestCyclicDependencyIsFound(t *testing.T) {
	run := deadlockOf(t, ringYAML)
	d := run.Manifest.Deadlock
	qt.Assert(t, qt.IsNotNil(d))
	qt.Check(t, qt.DeepEquals(d.Ports, []string{"S5->S6", "S6->S7", "S7->S8", "S8->S9", "S9->S5"}))
	qt.Check(t, qt.Equals(d.Behind, 5)) // the hosts' ports
	qt.Check(t, qt.Equals(d.Class, dataClass))
	for _, s := range run.Series {
		if s.Kind == result.KindPort && slices.Contains(d.Ports, s.Name) && s.TimeNs > d.SinceNs {
			qt.Check(t, qt.Equals(s.RateBps, 0))
		}
	}
	found, err := run.Measure(experiment.Measure{Metric: experiment.Deadlock})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(found[0].Value, 1.))
}

// TestAcyclicIsNoDeadlock: pauses everywhere, also on both directions of the same links, and all
// goes on.
func TestAcyclicIsNoDeadlock(t *testing.T) {
	for name, yaml := range map[string]string{
		"row": strings.Replace(ringYAML, "{file: ring.txt}", "{file: ring.txt, failed: S9-S5}", 1),
		"both ways": `
name: both-ways
topology: {kind: dumbbell, senders: 4, bottleneck: {rate: 100Gbps}}
dilation: 12 # eight hosts send
switch: {pfc: {xoff: 20KB}}
schemes: [pfc]
warmup: 0ms
duration: 1ms
flows:
  - {name: F, from: A0..A3, to: B0}
  - {name: G, from: B0..B3, to: A0}
`,
	} {
		t.Run(name, func(t *testing.T) {
			run := deadlockOf(t, yaml)
			qt.Check(t, qt.IsNil(run.Manifest.Deadlock))
			paused := map[string]bool{}
			for _, e := range run.PFC {
				paused[network.PortName(e.To, e.From)] = true
			}
			qt.Check(t, qt.IsTrue(paused["S6->S7"] || paused["S0->S1"] && paused["S1->S0"]))
		})
	}
}
