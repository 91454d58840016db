// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// Many hosts send to one at once: a bucket has more events than are read at a time, and all of them
// are read once. What is read changes no state.
func TestReadAhead(t *testing.T) {
	e := parse(t, `
name: many
topology: {kind: leaf-spine, leaves: 4, spines: 2, hosts: 32, rate: 10Gbps, delay: 1us}
schemes: [dcqcn]
warmup: 0ms
duration: 1ms
bursts: [{name: B, from: H0..H126, to: H127, flows: 1, size: 4KB, at: 100us}]
`)
	w := worldOf(t, e, "dcqcn")
	var most int
	for {
		q := &w.events
		if q.done == w.ahead.until || q.empty() {
			ports, packets := len(w.ports), len(w.packets.packets)
			w.readAhead()
			qt.Assert(t, qt.Equals(len(w.ports), ports))
			qt.Assert(t, qt.Equals(len(w.packets.packets), packets))
			qt.Assert(t, qt.IsTrue(w.ahead.until <= len(q.running)))
			most = max(most, len(w.ahead.arrivals)+len(w.ahead.departures))
		}
		ev, ok := q.pop()
		if !ok {
			break
		}
		w.now = ev.at
		w.happen(&ev)
	}
	qt.Check(t, qt.Equals(most, manyEvents))
}
