// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
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

// In BCube a host forwards between its two switches, and the hosts of a DGX-1 have no switch at
// all. Each hop stores and forwards: a flow alone takes the time of arithmetic, two that meet at a
// host that forwards share its link, and a scheme has its notifications.
func TestHostsForward(t *testing.T) {
	const text = `
name: relays
engine: sim
topology: {file: t.txt}
schemes: [%s]
warmup: 0ms
duration: 20ms
sample: 1ms
flows: [%s]
files:
  t.txt: |
%s
`
	const (
		bcube = "    8 4 8\n    4 5 6 7\n    0 4 10Gbps 1us 0\n    1 4 10Gbps 1us 0\n" +
			"    2 5 10Gbps 1us 0\n    3 5 10Gbps 1us 0\n    0 6 10Gbps 1us 0\n" +
			"    2 6 10Gbps 1us 0\n    1 7 10Gbps 1us 0\n    3 7 10Gbps 1us 0\n"
		line = "    4 0 3\n\n    0 1 10Gbps 1us 0\n    1 2 10Gbps 1us 0\n    2 3 10Gbps 1us 0\n"
	)
	for _, c := range []struct {
		network, to string
		links       int64
	}{{bcube, "H1", 2}, {bcube, "H3", 4}, {line, "H1", 1}, {line, "H3", 3}} {
		flow := "{name: F, from: H0, to: " + c.to + ", start: 0ms, size: 9340B}"
		run := simulate(t, parse(t, fmt.Sprintf(text, "pfc", flow, c.network)), "pfc")
		// ten frames of 800 ns on the first link, one on each other, and the ACK, 52 ns on each
		want := 9*800 + c.links*(800+1000+52+1000)
		got := *run.Completions[0].FCTNs
		qt.Check(t, qt.IsTrue(got >= want && got <= want+2*c.links), qt.Commentf("%+v: %d, want %d",
			c, got, want))
		qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid))
		qt.Check(t, qt.Equals(run.Flows[0].ReceivedBytes, 9340))
	}
	_, err := simulator.Run(t.Context(), parse(t, fmt.Sprintf(text, "pfc",
		"{name: F, from: H0, to: H1}", bcube)+"links: [{at: 1ms, link: H0-S4, state: down}]\n"),
		"pfc", func(float64) {})
	qt.Check(t, qt.ErrorMatches(err, ".*links can't fail where hosts forward: .*"))
	const two = "{name: F, from: H0, to: H3, start: 0ms}, {name: G, from: H1, to: H3, start: 0ms}"
	for _, scheme := range []string{"pfc", "dcqcn", "pcn", "qcn"} {
		run := simulate(t, parse(t, fmt.Sprintf(text, scheme, two, line)), scheme)
		qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
			qt.Commentf("%s: %v", scheme, run.Manifest.Reasons))
		// 934 of 1000 bytes, over 20 ms; H1 serves its own packets and the others in turn
		both := float64(run.Flows[0].ReceivedBytes+run.Flows[1].ReceivedBytes) * 8 / 0.934 / 20e-3
		qt.Check(t, qt.IsTrue(both > 9.9e9 && both <= 10e9), qt.Commentf("%s: %g", scheme, both))
		qt.Check(t, qt.IsTrue(run.Flows[0].ReceivedBytes > 0 && run.Flows[1].ReceivedBytes > 0))
	}
}
