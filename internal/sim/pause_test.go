// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// pauses returns how long each PAUSE lasted, in the order in which they took effect.
func pauses(run *result.Run) []int64 {
	var lasted []int64
	began := map[string]int64{}
	for _, e := range run.PFC {
		if e.Kind == result.Pause {
			began[e.To] = e.EffectNs
		} else {
			lasted = append(lasted, e.EffectNs-began[e.To])
		}
	}
	return lasted
}

// Ingress ports drain at half their rate, so from XOFF to XON 20 KB need 32 us. A PAUSE of 5 us is
// over before, to the ns, and is sent again as long as too much is there. If it is repeated in
// time, it holds until the RESUME, as without a limit.
func TestPauseExpires(t *testing.T) {
	text := "engine: sim\n" + strings.Replace(twoIntoOne, "pfc: {xoff: 20KB, xon: 18KB}",
		"pfc: {xoff: 40KB, xon: 20KB LIMIT}", 1)
	run := func(limit string) *result.Run {
		r := simulate(t, parse(t, strings.Replace(text, " LIMIT", limit, 1)), "pfc")
		qt.Check(t, qt.Equals(r.Manifest.Verdict, result.Valid),
			qt.Commentf("%s: %v", limit, r.Manifest.Reasons))
		for _, f := range r.Flows {
			qt.Check(t, qt.Equals(f.ReceivedBytes, 100_000))
		}
		return r
	}
	forever := run("")
	qt.Check(t, qt.IsTrue(pauses(forever)[0] > 30_000), qt.Commentf("%v", pauses(forever)))
	qt.Check(t, qt.DeepEquals(run(", pause_time: 5us").PFC, forever.PFC))
	limited := run(", pause_time: 5us, pause_repeat: 0")
	qt.Check(t, qt.IsTrue(len(limited.PFC) > len(forever.PFC)))
	for i, ns := range pauses(limited) {
		qt.Check(t, qt.IsTrue(ns <= 5_000), qt.Commentf("PAUSE %d lasted %d ns", i, ns))
	}
	qt.Check(t, qt.Equals(pauses(limited)[0], 5_000))
}

// Headroom of 3 x 10 Gbit/s x 1 us is 3750 bytes, so four ports leave 69,000 of 100,000 bytes to
// share. Frame n of either host arrives at 1000 + 800 n ns, and the switch sends one in turn. At
// n = 20 the second host's port holds 11 frames then, 7 of them in the shared buffer, and the
// first's 10. Of 69,000 - 13,000 bytes that are free an eighth is 7000: the first PAUSE.
func TestHeadroomAndReserve(t *testing.T) {
	text := "engine: sim\n" + strings.Replace(twoIntoOne, "switch: {pfc: {xoff: 20KB, xon: 18KB}}",
		"switch: {buffer: 100KB, pfc: {dynamic: {alpha: 1/8, headroom: 3, reserve: 4KB}}}", 1)
	run := simulate(t, parse(t, text), "pfc")
	qt.Assert(t, qt.Not(qt.HasLen(run.PFC, 0)))
	qt.Check(t, qt.Equals(run.PFC[0].SentNs, 1000+20*800))
	qt.Check(t, qt.Equals(run.PFC[0].To, "H1"))
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
		qt.Commentf("%v", run.Manifest.Reasons))
	for _, f := range run.Flows {
		qt.Check(t, qt.Equals(f.ReceivedBytes, 100_000))
	}
	// What arrives between a PAUSE and its effect, 3 frames, needs the headroom.
	run = simulate(t, parse(t, strings.Replace(text, "headroom: 3", "headroom: 1", 1)), "pfc")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Invalid))
}

// PAUSE by pairs of ports: with one port that packets leave by, it is what one timer sends. With
// two, each has a timer: while nothing arrives, twice as many frames come in the same time.
func TestPauseIsRepeatedByPairs(t *testing.T) {
	frames := func(text string) (all uint64) {
		text = strings.NewReplacer("delay: 1us", "delay: 20us", "100KB", "1MB").Replace(text)
		r := simulate(t, parse(t, "engine: sim\n"+text), "pfc")
		for _, f := range r.PauseRepeats {
			if f.To == "H0" {
				all += f.Frames
			}
		}
		return all
	}
	pairs := func(text string) string {
		return strings.Replace(text, "xon: 18KB", "xon: 18KB, repeat_pairs: true", 1)
	}
	qt.Check(t, qt.Equals(frames(pairs(twoIntoOne)), frames(twoIntoOne)))
	qt.Check(t, qt.IsTrue(frames(twoIntoOne) > 0))

	// H0 sends to two hosts, of which one has a queue: packets of both are there when H0 stops.
	network, _, _ := strings.Cut(strings.Replace(twoIntoOne, "hosts: 3", "hosts: 4", 1), "bursts:")
	both := network + `flows:
  - {name: X, from: H0, to: H2, start: 0ms}
  - {name: Y, from: H1, to: H2, start: 0ms}
  - {name: Z, from: H0, to: H3, start: 0ms, limit_rate: 1Gbps}
`
	one, two := frames(both), frames(pairs(both))
	qt.Check(t, qt.IsTrue(float64(two) > 1.1*float64(one) && two <= 2*one),
		qt.Commentf("%d by pairs, %d by ports", two, one))
}
