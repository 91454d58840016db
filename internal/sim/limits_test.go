// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// Links have rates from 1 kbit/s to 4 Tbit/s, and frames up to 9216 bytes.
func TestSlowAndFastLinks(t *testing.T) {
	const text = `
name: rates
engine: sim
topology: {kind: star, hosts: 1, rate: %s, delay: 1us, bottleneck: {rate: %s}}
schemes: [%s]
warmup: 0ms
duration: 100s
sample: 100ms
frame: %dB
flows: [{name: F, from: H0, to: R0, start: 0ms, size: %dB}]
`
	for _, c := range []struct {
		scheme, rate, bottleneck string
		bps                      [2]float64
		frame                    int
	}{
		{"pfc", "1kbps", "1kbps", [2]float64{1e3, 1e3}, 128},
		{"pfc", "1Mbps", "1kbps", [2]float64{1e6, 1e3}, 128},
		{"dcqcn", "4Tbps", "4000Gbps", [2]float64{4e12, 4e12}, 9216},
		{"pcn", "4Tbps", "4000Gbps", [2]float64{4e12, 4e12}, 9216},
		{"timely", "4Tbps", "4000Gbps", [2]float64{4e12, 4e12}, 9216},
	} {
		const frames = 4
		size := frames * (c.frame - 66)
		run := simulate(t, parse(t, fmt.Sprintf(text, c.rate, c.bottleneck, c.scheme, c.frame,
			size)), c.scheme)
		got := float64(*run.Completions[0].FCTNs)
		// the first frame on the first link, all on the second, and the ACK on both
		bits := float64(c.frame) * 8e9
		want := bits/c.bps[0] + frames*bits/c.bps[1] + 66*8e9/c.bps[0] + 66*8e9/c.bps[1] + 4000
		qt.Check(t, qt.IsTrue(math.Abs(got-want) <= 8), qt.Commentf("%+v: %g ns, want %g", c, got,
			want))
	}
}

// A switch spreads flows over 64 spines: each of 640 takes one at random, so few have none.
func TestSixtyFourSpines(t *testing.T) {
	run := simulate(t, parse(t, `
name: spines
engine: sim
topology: {kind: leaf-spine, leaves: 2, spines: 64, hosts: 10, rate: 100Gbps, delay: 100ns}
schemes: [pfc]
warmup: 0ms
duration: 1ms
flows: [{name: F, from: H0..H9, to: H10..H19, start: 0ms, size: 1KB, count: 64, every: 1us}]
`), "pfc")
	for _, c := range run.Completions {
		qt.Assert(t, qt.IsNotNil(c.FCTNs), qt.Commentf("%s", c.Flow))
	}
	used := 0
	for _, p := range run.Ports {
		if strings.HasPrefix(p.Name, "L0->S") && p.SentPackets > 0 {
			used++
		}
	}
	// 64 * exp(-10) = 0.003 spines without a flow are to be expected
	qt.Check(t, qt.IsTrue(used >= 62), qt.Commentf("%d spines", used))
}

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
	r := newRuntime(ctx, newCache())
	defer r.Close(ctx)
	_, err := newWorld(ctx, r, e, "dcqcn")
	qt.Check(t, qt.ErrorMatches(err, "the longest round trip is 600.*ms, want at most 400ms: .*"))
}
