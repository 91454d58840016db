// SPDX-License-Identifier: Apache-2.0

// Package autorule holds what `T: auto` and `w_min: auto` of PCN choose against packets: random
// single bottlenecks in the simulator.
package autorule

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Bottleneck is a random single bottleneck: Hosts senders with Count flows each, which all start at
// line rate.
type Bottleneck struct {
	RateMbps int // of all links
	RTTNs    int // propagation alone
	Hosts    int
	Count    int
}

// The range of the networks. Values are spread evenly on a logarithmic scale.
const (
	minRateMbps, maxRateMbps = 1_000, 400_000
	minRTTNs, maxRTTNs       = 5_000, 1_000_000
	minFlows, maxFlows       = 2, 256
)

// maxHosts is how many hosts a side of a dumbbell has at most. More flows are several of each host.
const maxHosts = 62

// Bottlenecks returns the first n networks of a stream of random ones.
func Bottlenecks(stream uint64, n int) []Bottleneck {
	rng := rand.New(rand.NewPCG(stream, 0))
	between := func(low, high float64) int {
		return int(math.Round(low * math.Pow(high/low, rng.Float64())))
	}
	var all []Bottleneck
	for range n {
		b := Bottleneck{
			RateMbps: between(minRateMbps, maxRateMbps), RTTNs: between(minRTTNs, maxRTTNs),
		}
		flows := between(minFlows, maxFlows)
		b.Count = (flows + maxHosts - 1) / maxHosts
		b.Hosts = flows / b.Count
		all = append(all, b)
	}
	return all
}

// Flows returns the number of flows.
func (b Bottleneck) Flows() int { return b.Hosts * b.Count }

// String describes the network in a few words.
func (b Bottleneck) String() string {
	return fmt.Sprintf("%.1f Gbit/s, %.1f us, %d flows", float64(b.RateMbps)/1e3,
		float64(b.RTTNs)/1e3, b.Flows())
}

// Buffers of the switch: each host's link has headroom for what is under way when it is paused. The
// threshold is what a common buffer leaves for it.
const (
	bufferBytes    = 64e6
	mostXOFFBytes  = 512e3
	leastXOFFBytes = 20e3
	frameBytes     = 1000
)

// Experiment returns the network as an experiment of so many bins of a length. The delay is behind
// the bottleneck's port, but for a tenth of the round trip, or 1 us, on each host's link.
func (b Bottleneck) Experiment(bins int, binNs int64) string {
	accessNs := min(b.RTTNs/10, 1000)
	headroom := float64(b.RateMbps)*1e6/8*2e-9*float64(accessNs) + 4*frameBytes
	hosts := float64(b.Hosts)
	buffer := max(bufferBytes, hosts*(headroom+leastXOFFBytes))
	xoff := min(mostXOFFBytes, buffer/hosts-headroom)
	return fmt.Sprintf(`name: bottleneck
topology: {kind: dumbbell, senders: %d, rate: %dMbps, delay: %dns, bottleneck: {delay: %dns}}
frame: %dB
switch: {buffer: %.0fB, pfc: {xoff: %.0fB}}
schemes: [pcn]
pcn: {T: auto, w_min: auto, rate_unit: 1kbps}
warmup: 0ms
duration: %dns
sample: %dns
flows: [{name: F, from: A0..A%d, to: B0..B%d, count: %d, start: 0ms}]
expect:
  - {what: loss, metric: lost_packets, max: 0}
  - {what: utilisation, metric: utilisation, ports: [S0->S1], min: 95%%}
  - {what: Jain's index, metric: jain, flows: [F], min: 0.95}
`, b.Hosts, b.RateMbps, accessNs, b.RTTNs/2-2*accessNs, frameBytes, buffer, xoff,
		int64(bins)*binNs, binNs, b.Hosts-1, b.Hosts-1, b.Count)
}
