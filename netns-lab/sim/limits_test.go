// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/tetratelabs/wazero"
)

// Delays from 1 ns to 50 ms give the completion times of arithmetic, and no timeout is too early.
func TestShortAndLongDelays(t *testing.T) {
	const text = `
name: delays
engine: sim
topology: {kind: star, hosts: 1, rate: 100Gbps, delay: %s}
schemes: [dcqcn]
warmup: 0ms
duration: 100s
sample: 100ms
flows: [{name: F, from: H0, to: R0, start: 0ms, size: 9340B}]
`
	for delay, ns := range map[string]int64{"1ns": 1, "25ns": 25, "50ms": 50_000_000} {
		run := simulate(t, parse(t, fmt.Sprintf(text, delay)), "dcqcn")
		got := *run.Completions[0].FCTNs
		// ten frames on the first link, one on the second, the ACK's 5 ns on both, 4 delays
		want := 11*80 + 2*5 + 4*ns
		qt.Check(t, qt.IsTrue(got >= want && got <= want+2), qt.Commentf("%s: %d ns", delay, got))
		qt.Check(t, qt.Equals(run.Flows[0].Timeouts, 0))
	}
	e := parse(t, `name: far
engine: sim
topology: {kind: parking-lot, bottlenecks: 4, delay: 50ms}
schemes: [dcqcn]
duration: 2s
flows: [{name: F, from: H0, to: R0}]
`)
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	_, err := newWorld(ctx, runtime, e, "dcqcn")
	qt.Check(t, qt.ErrorMatches(err, "the longest round trip is 600.*ms, want at most 400ms: .*"))
}
