// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const simulatedFile = `name: mine
engine: sim
topology: {kind: leaf-spine, error_rate: 0.001}
schemes: [dcqcn]
duration: 5ms
switch: {ecmp: packet}
transport: {recovery: go-back-n, window: bdp, scale_window: true}
flows: [{name: F0, from: H0, to: H2}]
links:
  - {at: 1ms, link: L0-S1, state: down}
  - {at: 2ms, link: S1-L0, state: up}
`

func TestSimulatorOnly(t *testing.T) {
	e, err := Parse("f", []byte(simulatedFile))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(e.Transport,
		Transport{Recovery: RecoveryGoBackN, Window: Flight{BDP: true}, ScaleWindow: true}))
	qt.Check(t, qt.IsTrue(e.LinkStates()))
	for _, l := range e.Topology.Network().Links {
		qt.Check(t, qt.Equals(l.ErrorRate, 0.001))
	}
	qt.Check(t, qt.IsNil(e.CheckEngine(EngineSim)))
	qt.Check(t, qt.ErrorMatches(e.CheckEngine(EngineKernel),
		"engine kernel has no topology.error_rate: "+
			"run it with `--engine sim`, or remove it from experiment mine"))

	plain, err := Parse("f", []byte(strings.NewReplacer(", error_rate: 0.001", "").Replace(
		simulatedFile[:strings.Index(simulatedFile, "switch:")])+
		"flows: [{name: F0, from: H0, to: H2}]\n"))
	qt.Assert(t, qt.IsNil(err))
	for _, engine := range Engines() {
		qt.Check(t, qt.IsNil(plain.CheckEngine(engine)))
	}
}

func TestSimulatedErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"engine: sim\n", "", `f:2:42: "error_rate" is in the simulator only ` +
			`\(hint: write engine: sim at the top of the file\)`},
		{"0.001", "0.6", `f:3:42: 0.6 is out of range \(hint: 0 to 0.5\)`},
		{"ecmp: packet", "ecmp: spray",
			`f:6:16: unknown way to spread "spray" \(hint: one of flow, packet\)`},
		{"ecmp: packet", "ecmp: packet, detectors: true",
			`f:6:16: detectors are judged by flows(.|\n)*`},
		{"go-back-n", "go-back",
			`f:7:23: unknown recovery "go-back" \(hint: did you mean "go-back-n"\?\)`},
		{"window: bdp", "window: 10B", `f:7:42: 10B is out of range \(hint: 1KB to 1GB\)`},
		{"window: bdp", "window: all", `f:7:42: .*all.*`},
		{"window: bdp, ", "", `f:7:48: "scale_window" needs "window" \(hint: write window: bdp\)`},
		{"state: down", "state: off",
			`f:10:35: unknown state of a link "off" \(hint: one of up, down\)`},
		{"state: down", "state: down, rate: 1Gbps", `f:10:47: a link has a new rate or .*`},
		{"L0-S1, state", "L0->S1, state", `f:10:21: unknown link "L0->S1" .*`},
		{"link: L0-S1, state: down", "link: L0->S1",
			`f:10:5: neither "rate" nor "state" is given \(hint: add rate: or state:\)`},
		{"ecmp: packet", "flow_control: cbfc", `f:10:35: credits are lost with a link(.|\n)*`},
	} {
		text := strings.Replace(simulatedFile, c.old, c.new, 1)
		qt.Assert(t, qt.Not(qt.Equals(text, simulatedFile)))
		_, err := Parse("f", []byte(text))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.new))
	}
}
