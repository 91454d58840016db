// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

const twoRates = `
name: rates
topology: {kind: leaf-spine, rate: 10Gbps, delay: 1us, spine_links: {rate: 40Gbps}}
switch: {buffer: 1MB, marking_by_rate: true, pfc: {dynamic: {alpha: 0.125, by_rate: true}}}
schemes: [dcqcn]
marking: {kmin: 30KB, kmax: 30KB, pmax: 1}
duration: 1ms
flows: [{name: F0, from: H0, to: H2}]
`

// portOf returns the state of a class of a port.
func portOf(t *testing.T, w *world, name string) (*port, *queue) {
	t.Helper()
	for id := range w.ports {
		if w.plan.portNames[id] == name {
			return &w.ports[id], &w.ports[id].queues[experiment.DataClass(0)]
		}
	}
	t.Fatalf("no port %s", name)
	return nil, nil
}

// At four times the rate, a port marks from four times the queue, and an ingress port may hold four
// times as much of the free buffer.
func TestThresholdsByRate(t *testing.T) {
	ctx := context.Background()
	r := newRuntime(ctx, newCache())
	defer r.Close(ctx)
	w, err := newWorld(ctx, r, parse(t, twoRates), "dcqcn")
	qt.Assert(t, qt.IsNil(err))
	for name, times := range map[string]uint64{"L0->H0": 1, "L0->S1": 4, "S0->L1": 4} {
		p, q := portOf(t, w, name)
		k := &packet{size: 1000, ecn: ecnECT}
		q.packets = 40
		q.bytes = times * 30_000
		qt.Check(t, qt.Equals(w.core.judge(w.now, p, q, k, false, false), 0), qt.Commentf(name))
		q.bytes++
		qt.Check(t, qt.Equals(w.core.judge(w.now, p, q, k, false, false), w.core.ce))

		const free = 800_000
		q.held = times * free / 8
		action, _ := w.core.check(w.now, q, q.ingress, true, free)
		qt.Check(t, qt.Not(qt.Equals(action, w.core.pause)), qt.Commentf(name))
		q.held++
		action, _ = w.core.check(w.now, q, q.ingress, true, free)
		qt.Check(t, qt.Equals(action, w.core.pause))
	}
}

// Two bursts of 100 packets meet at a port of their rate. NP-ECN marks what leaves others behind,
// under DCQCN too: all packets but the last. RED of DCQCN's paper marks few.
func TestMarkerNPECN(t *testing.T) {
	const text = `
name: marker
topology: {kind: star, hosts: 3, rate: 10Gbps, delay: 1us}
switch: {pfc: {off: true}}
schemes: [dcqcn]
warmup: 0ms
duration: 1ms
bursts:
  - {name: X, from: H0, to: H2, at: 0ms, size: 95800B}
  - {name: Y, from: H1, to: H2, at: 0ms, size: 95800B}
`
	marks := func(text string) uint64 {
		var n uint64
		for _, p := range simulate(t, parse(t, text), "dcqcn").Ports {
			n += p.MarkedPackets
		}
		return n
	}
	qt.Check(t, qt.Equals(marks(text+"marker: npecn\n"), 199))
	qt.Check(t, qt.Equals(marks(text+"marker: red\n"), marks(text)))
	qt.Check(t, qt.IsTrue(marks(text) < 100))
}
