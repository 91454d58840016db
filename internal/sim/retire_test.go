// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// retiring has more flows than the series has room for, which end one after the other, in a network
// whose parts are divided between senders and receivers of some.
const retiring = `
name: retiring
engine: sim
topology:
  {kind: clos, pods: 2, tors: 2, leaves: 2, spines: 2, hosts: 4, rate: 10Gbps, delay: 1600ns}
frame: 1000B
workload: {cdf: fb-hadoop, load: 0.6}
schemes: [dcqcn]
warmup: 0ms
duration: 3ms
sample: 500us
seed: 3
`

// states returns how many states of flows the modules of a run have made.
func (w *world) madeStates() (made int) {
	for _, x := range w.worlds() {
		c, n := x.transport.control, x.transport.notifier
		made += len(c.socks.free) + len(n.states.free)
	}
	for i := range w.transport.flows {
		f := &w.transport.flows[i]
		for _, at := range []uint32{f.sock, f.notify} {
			if at != 0 {
				made++
			}
		}
	}
	return made
}

// Flows that are done give their states to those that come, and the results are those of a run in
// which none does.
func TestRetire(t *testing.T) {
	e := parse(t, retiring)
	if len(e.Flows) <= experiment.MaxInSeries {
		t.Fatalf("%d flows are all in the series", len(e.Flows))
	}
	keeping := worldsOf(t, e, "dcqcn", 1)
	for i := range keeping.transport.flows {
		keeping.transport.flows[i].retires = false
	}
	if err := keeping.run(t.Context(), func(float64) {}); err != nil {
		t.Fatal(err)
	}
	want, err := keeping.result()
	if err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 2, 4} {
		w := worldsOf(t, e, "dcqcn", threads)
		if err := w.run(t.Context(), func(float64) {}); err != nil {
			t.Fatal(err)
		}
		got, err := w.result()
		if err != nil {
			t.Fatal(err)
		}
		sameRuns(t, got, want)
		if made, all := w.madeStates(), keeping.madeStates(); made > all/2 {
			t.Errorf("with %d threads %d states were made for %d", threads, made, all)
		}
	}
}
