// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// Rules are texts or files, a switch with rules is a router, and a qdisc of Linux is at switches'
// ports only: a link's own goes before that of all.
func TestLinuxNetwork(t *testing.T) {
	const file = `name: mine
topology: {kind: dumbbell, senders: 1, links: [{link: S0-S1, qdisc: cake bandwidth 9mbit}]}
schemes: [cubic]
switch: {pfc: {off: true}, qdisc: fq_codel limit 1000}
duration: 5ms
nft: {S1: rules.nft, A0: "table ip t { }", S0: ""}
flows: [{name: F0, from: A0, to: B0}]
links: [{at: 1ms, link: A0->S0, rate: 1Gbps}]
files: {rules.nft: "table ip u { }"}
`
	e, err := Parse("f", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(e.Routers(), []string{"S0", "S1"}))
	for node, want := range map[string]string{
		"S1": "table ip u { }", "A0": "table ip t { }", "S0": "",
	} {
		rules, ok := e.Ruleset(node)
		qt.Check(t, qt.IsTrue(ok))
		qt.Check(t, qt.Equals(rules, want))
	}
	_, ok := e.Ruleset("B0")
	qt.Check(t, qt.IsFalse(ok))
	qt.Check(t, qt.DeepEquals(e.Qdiscs(), map[string]string{
		"S0->A0": "fq_codel limit 1000", "S1->B0": "fq_codel limit 1000",
		"S0->S1": "cake bandwidth 9mbit", "S1->S0": "cake bandwidth 9mbit",
	}))
	qt.Check(t, qt.IsNil(e.CheckEngine(EngineKernel)))
	qt.Check(t, qt.ErrorMatches(e.CheckEngine(EngineSim), "engine sim has no nft: run it with .*"))

	for _, c := range []struct{ old, new, want string }{
		{"S1: rules.nft", "S2: rules.nft", `f:6:11: unknown host or switch "S2" \(hint: .*\)`},
		{"S1: rules.nft", "S1: other.nft", `f:6:11: "other.nft" is not among "files" .*`},
		{"fq_codel limit", "fq_kodel limit", `f:4:35: unknown qdisc "fq_kodel" .*fq_codel.*`},
		{"fq_codel limit 1000", "'codel; rm -r x'",
			`(?s)f:4:35: unknown qdisc "codel;" .*"codel;" is no word of a qdisc.*`},
		{"fq_codel limit 1000", "''", `f:4:35: the qdisc has no name \(hint: write fq_codel, .*\)`},
		{"cake bandwidth 9mbit", "htb", `f:2:69: unknown qdisc "htb" .*`},
		{"{off: true}", "{xoff: 100KB}", `(?s)f:4:37: a qdisc of Linux drops, ` +
			`and pauses nobody \(hint: write switch: .*\).*a switch with rules is a router, .*`},
		{"[cubic]", "[cubic, pcn]", `f:3:18: pcn needs marks of the lab's own ports, .*cubic.*`},
		{"link: A0->S0", "link: S0->A0",
			`f:8:25: port S0->A0 has a qdisc of Linux, whose rate can't change .*`},
		{"name: mine", "name: mine\npartitions: [{hosts: [A0]}]",
			`f:2:13: routers of nftables .* can't tell who is parted .*links fail\)`},
		{"nft: {S1: rules.nft,", "partitions: [{hosts: [A0]}]\nnft: {",
			`f:6:13: routers of nftables .* can't tell who is parted .*links fail\)`},
		{"name: mine", "name: mine\nengine: sim",
			`f:5:35: "qdisc" is on Linux only .*\nf:7:6: "nft" is on Linux only .*`},
	} {
		_, err := Parse("f", []byte(strings.Replace(file, c.old, c.new, 1)))
		qt.Check(t, qt.ErrorMatches(err, "(?s)"+c.want), qt.Commentf("%s", c.new))
	}
	e, err = e.With(Changes{Schemes: []string{"pcn"}})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.ErrorMatches(e.CheckEngine(EngineKernel),
		"experiment mine has qdiscs of Linux, and scheme pcn needs marks of the lab's own "+
			"ports: .*"))
}

func TestControlOfFlows(t *testing.T) {
	const own = `name: own
topology: {kind: star, hosts: 1, rate: 1Gbps, delay: 1us}
schemes: [pcn]
duration: 1ms
flows: [{name: F, from: H0, to: R0, control: cubic}]
`
	e, err := Parse("f", []byte(own))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(e.Flows[0].Control, "cubic"))
	qt.Check(t, qt.ErrorMatches(e.CheckEngine(EngineSim),
		`engine sim has no flows\[0\]\.control: run it .*`))
	_, err = Parse("f", []byte(strings.Replace(own, "cubic", "pcn", 1)))
	qt.Check(t, qt.ErrorMatches(err, `f:5:46: unknown congestion control of Linux "pcn" .*`))
}
