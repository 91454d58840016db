// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// sevenPriorities has a burst of 100 packets of each priority at once, to one host. Priority 0
// comes last in the file.
func sevenPriorities(pfc string) string {
	var text strings.Builder
	text.WriteString(`
name: seven
engine: sim
topology: {kind: star, hosts: 8, rate: 10Gbps, delay: 1us}
switch: {pfc: {` + pfc + `}}
schemes: [pfc]
warmup: 0ms
duration: 2ms
bursts:
`)
	for i := range experiment.SimPriorities {
		fmt.Fprintf(&text, "  - {name: P%d, from: H%d, to: H7, priority: %[1]d, size: 95800B}\n",
			experiment.SimPriorities-1-i, i)
	}
	return text.String()
}

// The first frames of all are at the switch at 1800 ns. The port serves them one priority after the
// other, 800 ns a frame, and the last of each takes another us.
func TestSevenPriorities(t *testing.T) {
	run := simulate(t, parse(t, sevenPriorities("off: true")), "pfc")
	qt.Assert(t, qt.HasLen(run.Flows, experiment.SimPriorities))
	for _, f := range run.Flows {
		want := 1800 + (int64(f.Priority)+1)*100*800 + 1000
		qt.Assert(t, qt.IsNotNil(f.EndNs))
		qt.Check(t, qt.Equals(*f.EndNs, want), qt.Commentf("%s", f.Name))
	}
	// All but the first are paused, each by its class.
	run = simulate(t, parse(t, sevenPriorities("xoff: 20KB")), "pfc")
	qt.Check(t, qt.HasLen(run.Conservation(), 0))
	paused := map[uint8]bool{}
	for _, e := range run.PFC {
		paused[e.Class] = true
	}
	for priority := range experiment.SimPriorities {
		qt.Check(t, qt.Equals(paused[experiment.DataClass(priority)], priority > 0),
			qt.Commentf("priority %d", priority))
	}
}

// Ranks are classes as long as there are four priorities.
func TestRanks(t *testing.T) {
	r := newRanks([]uint8{3, 2, 1, 0})
	for c := range uint8(classes) {
		qt.Check(t, qt.Equals(r.of[c], c))
		qt.Check(t, qt.Equals(r.class[c], c))
	}
	qt.Check(t, qt.Equals(r.control, controlClass))
	r = newRanks([]uint8{3, 5})
	for c := range uint8(classes) {
		qt.Check(t, qt.Equals(r.class[r.of[c]], c))
	}
	qt.Check(t, qt.Equals(r.class[7], controlClass))
	for priority := range experiment.SimPriorities {
		qt.Check(t, qt.Equals(int(r.of[experiment.DataClass(priority)]), 6-priority))
	}
}
