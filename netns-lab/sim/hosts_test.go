// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/result"
)

// Two hosts are both at two switches.
const twoLinks = `
name: links
engine: sim
topology: {file: t.txt}
schemes: [pfc]
warmup: 0ms
duration: 20ms
sample: 1ms
flows: [{name: F, from: H0, to: H1, count: 32, start: 0ms, size: 467KB}]
files:
  t.txt: |
    4 2 4
    2 3
    0 2 10Gbps 1us 0
    0 3 10Gbps 1us 0
    1 2 10Gbps 1us 0
    1 3 10Gbps 1us 0
`

// Each flow takes one link, so the links carry all packets, each those of whole flows. When a link
// fails, its flows take the other, also with what waits at the failed port.
func TestHostsWithSeveralLinks(t *testing.T) {
	const flows, packets = 32, 500
	run := simulate(t, parse(t, twoLinks), "pfc")
	sent := map[string]uint64{}
	for _, p := range run.Ports {
		sent[p.Name] = p.SentPackets
	}
	qt.Check(t, qt.Equals(sent["H0->S2"]+sent["H0->S3"], flows*packets))
	qt.Check(t, qt.Equals(sent["H0->S2"]%packets, 0))
	qt.Check(t, qt.IsTrue(sent["H0->S2"] > 0 && sent["H0->S3"] > 0))
	qt.Check(t, qt.Equals(sent["S2->H1"], sent["H0->S2"]))

	run = simulate(t, parse(t, twoLinks+
		"links: [{at: 2ms, link: H0-S2, state: down}, {at: 5ms, link: S3-H1, state: down}]\n"),
		"pfc")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
		qt.Commentf("%v", run.Manifest.Reasons))
	for _, s := range run.Series {
		if s.Name == "H0->S2" {
			qt.Check(t, qt.Equals(s.RateBps > 0, s.TimeNs < 2_000_000), qt.Commentf("%d", s.TimeNs))
		}
		if s.Name == "S3->H1" {
			qt.Check(t, qt.IsFalse(s.RateBps > 0 && s.TimeNs >= 5_000_000))
		}
	}
	ended := 0
	for _, f := range run.Flows {
		if f.CompletionNs > 0 {
			ended++
		}
	}
	// From 5 ms on no path leads to H1: S2 is linked to it, but not to H0. Until then the links can
	// carry 8750 of 16,000 packets, and flows take turns.
	qt.Check(t, qt.Equals(ended, 0))
	// All end if only one of the links fails.
	run = simulate(t, parse(t, twoLinks+"links: [{at: 2ms, link: H0-S2, state: down}]\n"), "pfc")
	for _, f := range run.Flows {
		qt.Check(t, qt.IsTrue(f.CompletionNs > 0), qt.Commentf("%s", f.Name))
		qt.Check(t, qt.Equals(f.ReceivedBytes >= 467_000, true))
	}
}
