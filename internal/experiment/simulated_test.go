// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/network"
)

const simulatedFile = `name: mine
engine: sim
topology: {kind: leaf-spine, error_rate: 0.001, error_burst: 3, jitter: 1us}
schemes: [dcqcn]
duration: 5ms
switch: {ecmp: packet}
transport: {recovery: go-back-n, window: bdp, scale_window: true}
flows: [{name: F0, from: H0, to: H2, lasts: 1ms}]
links:
  - {at: 1ms, link: L0-S1, state: down}
  - {at: 2ms, link: S1-L0, state: up}
`

func TestSimulatorOnly(t *testing.T) {
	e, err := Parse("f", []byte(simulatedFile))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(e.Transport,
		Transport{Recovery: RecoveryGoBackN, Window: Flight{BDP: true}, ScaleWindow: true,
			Acks: ReplyControl, AckSize: 66, CNP: ReplyControl}))
	qt.Check(t, qt.IsTrue(e.LinkStates()))
	for _, l := range e.Topology.Network().Links {
		qt.Check(t, qt.Equals(l.ErrorRate, 0.001))
		qt.Check(t, qt.Equals(l.Disturbance, network.Disturbance{ErrorBurst: 3, JitterNs: 1000}))
	}
	qt.Check(t, qt.IsNil(e.CheckEngine(EngineSim)))
	qt.Check(t, qt.ErrorMatches(e.CheckEngine(EngineKernel),
		"engine kernel has no switch.ecmp: "+
			"run it with `--engine sim`, or remove it from experiment mine"))

	const disturbed = ", error_rate: 0.001, error_burst: 3, jitter: 1us"
	plain, err := Parse("f", []byte(strings.ReplaceAll(
		simulatedFile[:strings.Index(simulatedFile, "switch:")], disturbed, "")+
		"flows: [{name: F0, from: H0, to: H2}]\n"))
	qt.Assert(t, qt.IsNil(err))
	for _, engine := range Engines() {
		qt.Check(t, qt.IsNil(plain.CheckEngine(engine)))
	}
}

// A scheme that only the simulator has needs engine: sim in the file, or --engine sim.
func TestSchemeOfSimulator(t *testing.T) {
	const file = `name: mine
topology: {kind: star, rate: 10Gbps, delay: 1us}
schemes: [dcqcn]
duration: 5ms
flows: [{name: F0, from: H0, to: R0}]
`
	const why = "scheme hpcc needs switches that write telemetry into packets, and only the " +
		"simulator's do: run it with `--engine sim`, or choose another scheme"
	with := strings.Replace(file, "[dcqcn]", "[dcqcn, hpcc]", 1)
	_, err := Parse("f", []byte(with))
	qt.Check(t, qt.ErrorMatches(err, `f:3:18: scheme hpcc needs switches that write telemetry `+
		`into packets, and only the simulator's do `+
		`\(hint: write engine: sim at the top of the file\)`))

	e, err := Parse("f", []byte(with+"engine: sim\n"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsNil(e.CheckEngine(EngineSim)))
	for _, engine := range []Engine{EngineKernel, EngineFluid} {
		qt.Check(t, qt.ErrorMatches(e.CheckEngine(engine),
			"engine "+string(engine)+": "+why))
	}
	// The command line may choose another scheme, or this one.
	without, err := e.With(Changes{Schemes: []string{"dcqcn"}})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsNil(without.CheckEngine(EngineKernel)))
	plain, err := Parse("f", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	chosen, err := plain.With(Changes{Schemes: []string{"hpcc"}})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.ErrorMatches(chosen.CheckEngine(EngineKernel), "engine kernel: "+why))
}

// Linux's switches know the classes of ACKs and CNPs, but not CNPs on ACKs, nor the class of a flow
// among several for its CNPs.
func TestClassesOfReplies(t *testing.T) {
	const file = `name: mine
topology: {kind: star, rate: 10Gbps, delay: 1us}
schemes: [dcqcn]
duration: 5ms
transport: {REPLIES}
flows: [{name: F0, from: H0, to: R0}, {name: F1, from: H1, to: R0, priority: 1}]
`
	const sim = ` \(hint: write engine: sim at the top of the file\)`
	for replies, want := range map[string]string{
		"acks: control":            "",
		"acks: data, cnp: control": "",
		"acks: data":               `f:(.|\n)*on Linux write cnp: control` + sim,
		"cnp: ack":                 `f:5:18: "cnp" is in the simulator only` + sim,
		"ack_size: 48B":            `f:5:23: "ack_size" is in the simulator only` + sim,
	} {
		text := strings.Replace(file, "REPLIES", replies, 1)
		_, err := Parse("f", []byte(text))
		if want == "" {
			qt.Check(t, qt.IsNil(err), qt.Commentf("%s", replies))
		} else {
			qt.Check(t, qt.ErrorMatches(err, want), qt.Commentf("%s", replies))
		}
		_, err = Parse("f", []byte(text+"engine: sim\n"))
		qt.Check(t, qt.IsNil(err), qt.Commentf("%s", replies))
	}
	// one class of data
	_, err := Parse("f", []byte(strings.NewReplacer("REPLIES", "acks: data", ", priority: 1", "").
		Replace(file)))
	qt.Check(t, qt.IsNil(err))
}

func TestPFCOfSimulator(t *testing.T) {
	const file = `name: mine
engine: sim
topology: {kind: star, rate: 10Gbps, delay: 1us}
schemes: [dcqcn]
duration: 5ms
switch: {buffer: 1MB, pfc: {PFC}}
flows: [{name: F0, from: H0, to: R0}]
`
	for _, c := range []struct{ pfc, want string }{
		{"pause_time: 5us", ""},
		{"pause_time: 5us, pause_repeat: 0", ""},
		{"dynamic: {alpha: 1, headroom: 3, reserve: 4KB}, pause_time: 1ms", ""},
		{"pause_repeat: 1us", `f:6:43: "pause_repeat" needs "pause_time" .*`},
		{"pause_time: 5us, pause_repeat: 5us", `f:6:60: 5us is out of range .*less than .*5us\)`},
		{"pause_time: 500ns", `f:6:41: 500ns is out of range \(hint: 1us to 10ms\)`},
		{"off: true, pause_time: 5us", `f:6:(.|\n)*PFC is off.*`},
		{"dynamic: {alpha: 1, headroom: 101}",
			`(.|\n)*f:6:59: 101 is out of range .hint: 0 to 100.`},
		{"dynamic: {alpha: 1, reserve: 100KB}",
			`f:6:.*ports of S0 need 1.1MB of its buffer of 1MB \(hint: raise switch.buffer\)`},
	} {
		e, err := Parse("f", []byte(strings.Replace(file, "PFC", c.pfc, 1)))
		if c.want != "" {
			qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.pfc))
			continue
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsNotNil(e.CheckEngine(EngineKernel)))
	}
	e, err := Parse("f", []byte(strings.Replace(file, "PFC", "pause_time: 5us", 1)))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(e.Switch.PFC.PauseRepeat, 2500*Nanosecond))
	d := DynamicPFC{Headroom: 3, Reserve: 4000}
	qt.Check(t, qt.Equals(d.HeadroomBytes(10e9, 1000), 3750))
	qt.Check(t, qt.Equals(d.OwnBytes(10e9, 1000), 7750))
}

// The simulator has seven priorities, Linux four.
func TestPrioritiesOfSimulator(t *testing.T) {
	const file = `name: mine
engine: sim
topology: {kind: star}
schemes: [dcqcn]
duration: 5ms
flows: [{name: F0, from: H0, to: R0, priority: 6}]
`
	e, err := Parse("f", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(e.DataClasses(), []uint8{3, 7}))
	qt.Check(t, qt.ErrorMatches(e.CheckEngine(EngineKernel),
		`engine kernel has no flows\[0\].priority: .*`))
	for _, c := range []struct{ old, new, want string }{
		{"priority: 6", "priority: 7", `f:6:48: 7 is out of range \(hint: 0 to 6\)`},
		{"engine: sim\n", "", `f:5:48: 6 is out of range \(hint: 0 to 3\)`},
	} {
		_, err := Parse("f", []byte(strings.Replace(file, c.old, c.new, 1)))
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
}

func TestSimulatedErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"engine: sim\n", "", `f:5:16: "ecmp" is in the simulator only ` +
			`\(hint: write engine: sim at the top of the file\)`},
		{"0.001", "0.6", `f:3:42: 0.6 is out of range \(hint: 0 to 0.5\)`},
		{"jitter: 1us", "reorder: 1%, reorder_delay: 1ms", `f:3:74: "reorder" is on Linux only ` +
			`\(hint: write engine: kernel, or remove engine:\)`},
		{"at: 1ms, link: L0-S1, state: down", "link: L0->S1, trace: lte",
			`(?s)f:10:\d+: "trace" is on Linux only .*`},
		{"ecmp: packet", "ecmp: spray",
			`f:6:16: unknown way to spread "spray" \(hint: one of flow, packet\)`},
		{"ecmp: packet", "ecmp: packet, detectors: true",
			`f:6:16: detectors are judged by flows(.|\n)*`},
		{"go-back-n", "go-back",
			`f:7:23: unknown recovery "go-back" \(hint: did you mean "go-back-n"\?\)`},
		{"window: bdp", "window: 10B", `f:7:42: 10B is out of range \(hint: 1KB to 1GB\)`},
		{"window: bdp", "window: all", `f:7:42: .*all.*`},
		{"window: bdp, ", "", `f:7:48: "scale_window" needs "window" \(hint: write window: bdp\)`},
		{"lasts: 1ms", "lasts: 1ns", `f:8:45: 1ns is out of range \(hint: 1us to .*\)`},
		{"lasts: 1ms", "lasts: 1ms, size: 1KB", `f:8:45: a flow ends after its size or (.|\n)*`},
		{"state: down", "state: off",
			`f:10:35: unknown state of a link "off" \(hint: one of up, down\)`},
		{"state: down", "state: down, rate: 1Gbps", `f:10:47: a link has a new rate or .*`},
		{"L0-S1, state", "L0->S1, state", `f:10:21: unknown link "L0->S1" .*`},
		{"link: L0-S1, state: down", "link: L0->S1",
			`f:10:5: neither "rate", "state" nor "trace" is given ` +
				`\(hint: add rate:, state: or trace:\)`},
		{"ecmp: packet", "flow_control: cbfc", `f:10:35: credits are lost with a link(.|\n)*`},
	} {
		text := strings.Replace(simulatedFile, c.old, c.new, 1)
		qt.Assert(t, qt.Not(qt.Equals(text, simulatedFile)))
		_, err := Parse("f", []byte(text))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.new))
	}
}

// Values of single switches are checked as those of all are.
func TestOwnSwitches(t *testing.T) {
	const file = `name: mine
engine: sim
topology: {kind: dumbbell}
schemes: [pfc]
duration: 5ms
switch: {SWITCH}
flows: [{name: F0, from: A0, to: B0}]
`
	for own, want := range map[string]string{
		"own: [{at: S1, buffer: 1MB, xoff: 50KB, kmin: 0B, kmax: 9KB}]": "",
		"pfc: {dynamic: {alpha: 1}}, own: [{at: [S0..S1], alpha: 1/8}]": "",
		"own: [{buffer: 1MB}]":                  `f:6:16: "at" is missing .*`,
		"own: [{at: S7, buffer: 1MB}]":          `f:6:21: unknown switch "S7" .*`,
		"own: [{at: S0}, {at: S0..S1}]":         `f:6:31: duplicate switch "S0" .*`,
		"own: [{at: S0, buffer: 9KB}]":          `f:6:33: 9KB is out of range .*`,
		"own: [{at: S0, alpha: 1/8}]":           `f:6:32: thresholds are not dynamic .*`,
		"own: [{at: S0, kmax: 1KB}]":            `f:6:.* kmin and kmax are needed together .*`,
		"own: [{at: S0, kmin: 2KB, kmax: 1KB}]": `f:6:31: 2KB is out of range .*`,
		"pfc: {dynamic: {alpha: 1}}, own: [{at: S0, xoff: 50KB}]": `f:6:59: thresholds are not ` +
			`static .*`,
	} {
		text := strings.Replace(file, "SWITCH", own, 1)
		_, err := Parse("f", []byte(text))
		if want == "" {
			qt.Check(t, qt.IsNil(err), qt.Commentf("%s", own))
		} else {
			qt.Check(t, qt.ErrorMatches(err, want), qt.Commentf("%s", own))
		}
	}
}
