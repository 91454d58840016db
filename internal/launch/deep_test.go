// SPDX-License-Identifier: Apache-2.0

package launch

import "testing"

// A run ends with a queue that takes over 100 ms to empty, before a link of 50 ms. All of it
// arrives before the run is read: none is taken for lost.
func TestDeepBuffer(t *testing.T) {
	runPrograms(t, parse(t, `
name: deep
engine: kernel
topology:
  {kind: dumbbell, senders: 1, rate: 1Gbps, delay: 100us, bottleneck: {rate: 20Mbps, delay: 50ms}}
frame: 1514B
transport: {acks: data}
switch: {pfc: {off: true}, port_buffer: 400KB}
marking: {kmin: 1GB, kmax: 1GB, pmax: 1}
schemes: [cubic]
warmup: 0ms
duration: 2s
sample: 20ms
flows: [{name: F, from: A0, to: B0}]
expect:
  - {what: the queue is long, metric: queue_min, ports: [S0->S1], from: 1900ms, min: 250KB}
`), "cubic")
}
