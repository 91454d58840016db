// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"
)

// Algorithms are not asked where nothing can come of it. A run in which they are asked about each
// packet has the same completion times, marks, PAUSE frames and CNPs: RED's choices are random, and
// thresholds of PFC are shares of a buffer that fills.
func TestCalm(t *testing.T) {
	e := parse(t, `
name: calm
topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 8, rate: 10Gbps, delay: 1us}
schemes: [dcqcn]
dcqcn: {marking: {kmin: 5KB, kmax: 200KB, pmax: 0.1}}
switch: {buffer: 500KB, pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}}}
warmup: 0ms
duration: 20ms
flows:
  - {name: A, from: H0..H13, to: H15, size: 500KB, start_jitter: 5ms}
  - {name: B, from: H8..H14, to: H0..H6, size: 500KB, start_jitter: 5ms}
`)
	run := func(askAll bool) (w *world, times []int64) {
		w = worldOf(t, e, "dcqcn")
		qt.Assert(t, qt.IsTrue(w.transport.notifier.marked))
		if askAll {
			w.transport.notifier.marked = false
			w.calmBytes, w.calmUsed = 0, 0
			for i := range w.ports {
				for c := range w.ports[i].queues {
					w.ports[i].queues[c].calmBytes = 0
				}
			}
		}
		qt.Assert(t, qt.IsNil(w.run(t.Context(), func(float64) {})))
		for i := range w.transport.flows {
			times = append(times, w.transport.flows[i].completed)
		}
		return w, times
	}
	asked, wantTimes := run(true)
	calm, times := run(false)
	qt.Check(t, qt.DeepEquals(times, wantTimes))
	var marks, unmarked, pauses, skipped uint64
	for i := range calm.ports {
		p, want := &calm.ports[i], &asked.ports[i]
		qt.Check(t, qt.Equals(p.markedPackets, want.markedPackets))
		marks += p.markedPackets
		unmarked += p.counters.sentPackets - p.markedPackets
		skipped += uint64(p.calm)
		for c := range p.queues {
			qt.Check(t, qt.Equals(p.queues[c].pauseSent, want.queues[c].pauseSent))
			pauses += p.queues[c].pauseSent
		}
	}
	for i := range calm.transport.flows {
		qt.Check(t, qt.Equals(calm.transport.flows[i].cnps, asked.transport.flows[i].cnps))
	}
	qt.Check(t, qt.IsTrue(marks > 100 && unmarked > 100), qt.Commentf("%d marks", marks))
	qt.Check(t, qt.IsTrue(pauses > 0))
	qt.Check(t, qt.IsTrue(skipped > 0))
	qt.Check(t, qt.IsTrue(calm.calmBytes > 0 && calm.calmBytes < math.MaxUint64))
}
