// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// stormy has two flows from H0 and one from H1. The adapter of H2 sends PAUSE from 1 ms to 6 ms.
const stormy = `
name: stormy
engine: sim
topology: {kind: star, hosts: 4, rate: 10Gbps, delay: 1us}
switch: {buffer: 1MB, pfc: {xoff: 20KB, xon: 18KB WATCHDOG}}
schemes: [pfc]
transport: {window: 100KB}
warmup: 0ms
duration: 12ms
flows:
  - {name: Stuck, from: H0, to: H2, start: 0ms, initial_rate: 4Gbps}
  - {name: Victim, from: H0, to: H3, start: 0ms, initial_rate: 4Gbps}
  - {name: Free, from: H1, to: H3, start: 0ms, initial_rate: 4Gbps}
storms:
  - {hosts: H2, at: 1ms, until: 6ms}
`

func runStormy(t *testing.T, watchdog string) *result.Run {
	t.Helper()
	run := simulate(t, parse(t, strings.Replace(stormy, " WATCHDOG", watchdog, 1)), "pfc")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
		qt.Commentf("%v", run.Manifest.Reasons))
	return run
}

// received returns the bytes of a flow that arrived from one time to another.
func received(run *result.Run, flow string, fromNs, toNs int64) uint64 {
	var bits float64
	for _, s := range run.Series {
		if s.Kind == result.KindFlow && s.Name == flow && s.TimeNs >= fromNs && s.TimeNs < toNs {
			bits += float64(s.RateBps) * float64(run.Manifest.SampleNs) / 1e9
		}
	}
	return uint64(bits / 8)
}

// The adapter's PAUSE takes effect after the link's delay, and holds to the ns. What the switch
// holds for H2 fills the ingress port of H0, whose other flow stops too; H1 goes on.
func TestStorm(t *testing.T) {
	run := runStormy(t, "")
	var storm []result.PFCEvent
	for _, e := range run.PFC {
		if e.From == "H2" {
			storm = append(storm, e)
		}
	}
	qt.Assert(t, qt.HasLen(storm, 2))
	qt.Check(t, qt.Equals(storm[0].SentNs, 1_000_000))
	qt.Check(t, qt.Equals(storm[0].EffectNs, 1_001_000))
	qt.Check(t, qt.Equals(storm[1].SentNs, 6_000_000))
	qt.Check(t, qt.Equals(storm[1].Kind, result.Resume))
	for flow, want := range map[string]bool{"Stuck": false, "Victim": false, "Free": true} {
		qt.Check(t, qt.Equals(received(run, flow, 2e6, 6e6) > 0, want), qt.Commentf("%s", flow))
		qt.Check(t, qt.IsTrue(received(run, flow, 7e6, 12e6) > 2_000_000), qt.Commentf("%s", flow))
	}
	qt.Check(t, qt.HasLen(run.Watchdog, 0))
	qt.Check(t, qt.IsNil(run.Manifest.Deadlock))
}

// The switch polls every 500 us, at times of its own: x, x + 500 us and so on. The first poll that
// sees a whole interval of the storm counts as one, so of detection times of 0.5 to 1 ms, which are
// two polls, the action comes 1 to 1.5 ms behind the PAUSE, and of 1.2 ms, three polls, 1.5 to 2.
// Restoration of 1 ms is two polls too, of which the first must see a whole interval of silence.
func TestWatchdogTimes(t *testing.T) {
	for detection, polls := range map[string]int64{"500us": 2, "1ms": 2, "1.2ms": 3} {
		run := runStormy(t, ", watchdog: {poll: 500us, restoration: 1ms, detection: "+detection+"}")
		qt.Assert(t, qt.HasLen(run.Watchdog, 1), qt.Commentf("%s: %v", detection, run.Watchdog))
		e := run.Watchdog[0]
		qt.Check(t, qt.IsTrue(strings.HasSuffix(e.Port, "->H2")), qt.Commentf("%s", e.Port))
		late := e.DetectedNs - 1_001_000
		qt.Check(t, qt.IsTrue(late >= polls*500_000 && late < (polls+1)*500_000),
			qt.Commentf("%s: %d ns", detection, late))
		late = e.RestoredNs - 6_001_000
		qt.Check(t, qt.IsTrue(late >= 1_000_000 && late < 1_500_000),
			qt.Commentf("%s: restored %d ns behind the RESUME", detection, late))
		qt.Check(t, qt.Equals((e.RestoredNs-e.DetectedNs)%500_000, 0))
	}
}

// From the action on the victim runs. Dropping, H2 gets nothing until the queue is restored;
// forwarding, all the time; an alert changes nothing.
func TestWatchdogActions(t *testing.T) {
	const times = ", watchdog: {poll: 500us, detection: 1ms, restoration: 1ms, action: "
	for action, want := range map[string]struct{ victim, stuck, drops bool }{
		"drop":    {victim: true, drops: true},
		"forward": {victim: true, stuck: true},
		"alert":   {},
	} {
		run := runStormy(t, times+action+"}")
		qt.Assert(t, qt.HasLen(run.Watchdog, 1), qt.Commentf("%s", action))
		e := run.Watchdog[0]
		qt.Check(t, qt.Equals(e.Action, action))
		qt.Check(t, qt.Equals(received(run, "Victim", 3e6, 6e6) > 100_000, want.victim),
			qt.Commentf("%s", action))
		qt.Check(t, qt.Equals(received(run, "Stuck", 3e6, 6e6) > 0, want.stuck),
			qt.Commentf("%s", action))
		var dropped uint64
		for _, p := range run.Ports {
			dropped += p.DroppedPackets()
		}
		qt.Check(t, qt.Equals(e.DroppedPackets, dropped), qt.Commentf("%s", action))
		qt.Check(t, qt.Equals(dropped > 0, want.drops), qt.Commentf("%s", action))
		qt.Check(t, qt.IsTrue(e.RestoredNs > 6_000_000),
			qt.Commentf("%s: %d", action, e.RestoredNs))
	}
}

// What comes in by the port of a queue in a storm is dropped as well.
func TestWatchdogRefuses(t *testing.T) {
	text := strings.Replace(stormy, "storms:", `bursts:
  - {name: Back, from: H2, to: H1, at: 4ms, size: 10KB}
storms:`, 1)
	text = strings.Replace(text, " WATCHDOG", ", watchdog: {poll: 500us, detection: 1ms}", 1)
	run := simulate(t, parse(t, text), "pfc")
	qt.Assert(t, qt.HasLen(run.Watchdog, 1))
	qt.Check(t, qt.IsTrue(run.Watchdog[0].RefusedPackets > 10))
	qt.Check(t, qt.Equals(run.Manifest.LostPackets["watchdog"], run.Watchdog[0].RefusedPackets))
	qt.Check(t, qt.Equals(run.Watchdog[0].RestoredNs, 8_000_000+run.Watchdog[0].RestoredNs%500_000))
}
