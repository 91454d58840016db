// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// Experiments that show findings have one switch: what it does, it does in any network. A storm at
// the receiver fills a queue, and the sender's PAUSE has to hold what comes then.

const (
	dropsShow = "see the metric buffer_drops"
	pauseShow = "see the metric pause_count"
)

const dropsExpect = `expect:
  - {metric: buffer_drops, what: packets that found no room, max: 0}
`

// headroomExperiment has a queue that stands still, with xoff of room behind a PAUSE, over the
// cable and at the speed of a port; need is what arrives after it, which says how long frames are.
func (k *checker) headroomExperiment(port string, metres float64, xoff, need uint64) string {
	mbps, ok, err := k.number("PORT", port, "speed")
	if err != nil || !ok || mbps <= 0 {
		mbps = 100_000
	}
	delayNs := max(uint64(metres*nsPerMetre), 1)
	frame := uint64(1500)
	if cable := 2*delayNs*uint64(mbps)/8000 + 64; need > cable+2*frame {
		frame = min((need-cable)/2, 9100) // the mean of the two frames
	}
	const paused = 200_000
	return fmt.Sprintf(`name: headroom
# After PAUSE is sent at 200 KB, %d bytes are left. The receiver stands still.
topology: {kind: star, hosts: 1, rate: %s, delay: %dns}
schemes: [pfc]
engine: sim
frame: %dB
duration: 1ms
switch:
  buffer: %dB
  pfc: {xoff: %dB}
storms: [{hosts: R0, at: 100us}]
flows:
  - {name: in, from: H0, to: R0}
  - {name: back, from: R0, to: H0}
%s`, xoff, experiment.Rate(uint64(mbps)*1_000_000), delayNs, frame, paused+xoff, paused,
		dropsExpect)
}

// dropsExperiment has a queue that would be paused at a threshold, and room for less.
func dropsExperiment(pauses, room uint64) string {
	shrink := max(pauses/1_000_000, 1) // shorter to run, in the same proportion
	return fmt.Sprintf(`name: drops-before-pause
# PAUSE is sent at %d bytes, and there is room for %d; here %d times less of both.
topology: {kind: star, hosts: 1, rate: 100Gbps, delay: 200ns}
schemes: [pfc]
engine: sim
duration: 1ms
switch:
  buffer: 64MB
  port_buffer: %dB
  pfc: {xoff: %dB}
storms: [{hosts: R0, at: 0s}]
flows:
  - {name: in, from: H0, to: R0}
%s`, pauses, room, shrink, max(room/shrink, 10_000), max(pauses/shrink, 10_000), dropsExpect)
}

// marksExperiment has one sender and marks that begin at or above its PAUSE.
func marksExperiment(begin, pauses uint64) string {
	shrink := max(pauses/1_000_000, 1)
	from := min(max(begin/shrink, 10_000), 20_000_000)
	return fmt.Sprintf(`name: marks-above-pause
# Marks begin at %d bytes and PAUSE is sent at %d; here %d times less of both.
topology: {kind: star, hosts: 1, rate: 100Gbps, delay: 200ns, links: [{link: R0-S0, rate: 50Gbps}]}
schemes: [dcqcn]
engine: sim
duration: 2ms
marking: {kmin: %dB, kmax: %dB, pmax: 10%%}
switch:
  buffer: 64MB
  pfc: {xoff: %dB}
flows:
  - {name: in, from: H0, to: R0}
expect:
  - {metric: marked_packets, flows: [in], what: packets with a mark, min: 1}
`, begin, pauses, shrink, from, 2*from, max(pauses/shrink, 10_000))
}

// pauseExperiment has a RESUME as soon as a PAUSE.
func pauseExperiment(pauses uint64) string {
	shrink := max(pauses/1_000_000, 1)
	xoff := max(pauses/shrink, 10_000)
	return fmt.Sprintf(`name: resume-at-pause
# PAUSE and RESUME are at %d bytes; here %d times less.
topology: {kind: star, hosts: 1, rate: 100Gbps, delay: 200ns, links: [{link: R0-S0, rate: 50Gbps}]}
schemes: [pfc]
engine: sim
duration: 1ms
switch:
  buffer: 16MB
  pfc: {xoff: %dB, xon: %dB}
flows:
  - {name: in, from: H0, to: R0}
expect:
  - {metric: pause_count, what: PAUSE frames in a millisecond, links: ["S0->H0"], max: 100}
`, pauses, shrink, xoff, xoff)
}

// wredExperiment has a queue that drops from a length on, as WRED does without ECN.
func wredExperiment(begin uint64) string {
	return fmt.Sprintf(`name: wred-drops
# WRED without ECN drops from %d bytes on, here all of it, as a queue without PFC does.
topology: {kind: star, hosts: 2, rate: 100Gbps, delay: 200ns}
schemes: [pfc]
engine: sim
duration: 2ms
switch:
  buffer: 64MB
  port_buffer: %dB
  pfc: {off: true}
flows:
  - {name: in, from: H0..H1, to: R0}
%s`, begin, min(max(begin, 10_000), 1_000_000), dropsExpect)
}
