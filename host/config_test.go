// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
)

func TestDefaults(t *testing.T) {
	c := parse(t, small)
	qt.Check(t, qt.IsTrue(c.Controls.Has("pcn")))
	qt.Check(t, qt.CmpEquals(c, &host.Config{
		LineRate: 1e9,
		RTT:      config.Millisecond,
		NP: &host.NP{
			Interfaces: []string{"veth0"}, T: host.Period(config.Millisecond), CongestedShare: 0.95, MaxFlows: 65536,
			Idle: 10 * config.Second,
		},
		RP: &host.RP{
			Interfaces: []string{"veth0"}, CNPInterval: config.Millisecond / 2, CNPBurst: 8, TagWindow: 500 * config.Millisecond,
		},
		Stamp: &host.Stamp{Interfaces: []string{"veth0"}, DataDSCP: 26, ControlDSCP: 48},
		ECN:   &host.ECN{Interfaces: []string{"veth0"}},
	}, cmpopts.IgnoreFields(host.Config{}, "Controls")))
	c = parse(t, "stamp: {interfaces: [e], data_dscp: 0}\n")
	qt.Check(t, qt.Equals(c.Stamp.DataDSCP, 0))
}

// What a control is set to where the file says nothing, and where it does; a zero stays. These are
// the names and values that operators know from pcn host status.
func TestSettingsOfControls(t *testing.T) {
	const network = "line_rate: 1Gbps\nrtt: 1ms\n"
	acks := []host.Setting{{Key: "T", Value: "1ms"}, {Key: "congested_share", Value: "0.95"}, {Key: "rtt", Value: "1ms"}}
	for _, c := range []struct {
		control, text string
		want          []host.Setting
	}{
		{"pcn", "{}", append([]host.Setting{
			{Key: "line_rate", Value: "1Gbps"}, {Key: "min_rate", Value: "1Mbps"},
			{Key: "w_min", Value: "0.0078125"}, {Key: "w_max", Value: "0.5"}, {Key: "feedback", Value: "auto"},
			{Key: "catch_up", Value: "8"}, {Key: "idle_cut", Value: "0.125"},
			{Key: "young", Value: "1MB"}, {Key: "w_young", Value: "0.0625"},
			{Key: "patience", Value: "8"},
			{Key: "burst", Value: "250us"}, {Key: "doubt", Value: "true"},
			{Key: "careful_start", Value: "true"}, {Key: "doubt_hold", Value: "500ms"},
			{Key: "loss_cut", Value: "true"}, {Key: "max_flows", Value: "65536"},
		}, acks...)},
		{"pcn", "{w_min: 1/64, w_max: 0.4, min_rate: 5Mbps, max_flows: 10, feedback: cnp, doubt: false}", []host.Setting{
			{Key: "line_rate", Value: "1Gbps"}, {Key: "min_rate", Value: "5Mbps"},
			{Key: "w_min", Value: "0.015625"}, {Key: "w_max", Value: "0.4"}, {Key: "feedback", Value: "cnp"},
			{Key: "catch_up", Value: "8"}, {Key: "idle_cut", Value: "0.125"},
			{Key: "young", Value: "1MB"}, {Key: "w_young", Value: "0.0625"},
			{Key: "patience", Value: "8"},
			{Key: "burst", Value: "250us"}, {Key: "doubt", Value: "false"},
			{Key: "careful_start", Value: "true"}, {Key: "doubt_hold", Value: "500ms"},
			{Key: "loss_cut", Value: "true"}, {Key: "max_flows", Value: "10"},
		}},
		{"ldcp", "{}", []host.Setting{
			{Key: "line_rate", Value: "1Gbps"}, {Key: "alpha", Value: "1"}, {Key: "beta", Value: "0.5"},
			{Key: "gamma", Value: "0.25"}, {Key: "eta", Value: "0.875"}, {Key: "initial_window", Value: "0B"},
			{Key: "burst", Value: "62.5us"}, {Key: "ask_acks", Value: "true"},
			{Key: "max_flows", Value: "65536"}, {Key: "rtt", Value: "1ms"},
		}},
		{"pcn_dctcp", "{g: 1/8, initial_alpha: 0}", []host.Setting{
			{Key: "g", Value: "0.125"}, {Key: "initial_alpha", Value: "0"},
			{Key: "burst", Value: "62.5us"}, {Key: "bound_cut", Value: "true"},
			{Key: "slow_start_delay", Value: "4ms"},
			{Key: "max_flows", Value: "65536"},
		}},
		{"pcn_dctcp", "{}", []host.Setting{
			{Key: "g", Value: "0.0625"}, {Key: "initial_alpha", Value: "1"},
			{Key: "burst", Value: "62.5us"}, {Key: "bound_cut", Value: "true"},
			{Key: "slow_start_delay", Value: "4ms"},
			{Key: "max_flows", Value: "65536"},
		}},
		{"pcn_line", "{}", []host.Setting{{Key: "line_rate", Value: "1Gbps"}}},
	} {
		got, err := parse(t, network+"controls: {"+c.control+": "+c.text+"}\n").SettingsOf(c.control)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(got, c.want), qt.Commentf("%s: %s", c.control, c.text))
	}

	// NP's T and share stand for those of all receivers, also a share of 0.
	np := "np: {interfaces: [a], T: 2ms, congested_share: 0}\ncontrols: {pcn: {feedback: ack}}\n"
	got, err := parse(t, network+np).SettingsOf("pcn")
	qt.Assert(t, qt.IsNil(err))
	for _, want := range []host.Setting{{Key: "T", Value: "2ms"}, {Key: "congested_share", Value: "0"}} {
		qt.Check(t, qt.SliceContains(got, want))
	}
}

// Each control of the catalogue may be in a file, and in flags; the round trip is asked for where
// one makes something of it.
func TestEachControlMayBeRegistered(t *testing.T) {
	names := host.ControlNames()
	qt.Assert(t, qt.SliceContains(names, "pcn"))
	for _, name := range names {
		c := parse(t, "line_rate: 1Gbps\nrtt: 1ms\ncontrols: {"+name+": {}}\n")
		qt.Check(t, qt.IsTrue(c.Controls.Has(name)))
		_, err := c.SettingsOf(name)
		qt.Check(t, qt.IsNil(err))

		flags := host.Config{LineRate: 1e9, RTT: config.Millisecond}
		qt.Assert(t, qt.IsNil(flags.Controls.Add(name)))
		qt.Check(t, qt.IsNil(flags.Check("flags")))
		qt.Check(t, qt.IsTrue(flags.Controls.Has(name)))

		_, err = host.Parse("f.yaml", []byte("line_rate: 1Gbps\ncontrols: {"+name+": {}}\n"))
		needsRTT := name == "ldcp" || name == "timely"
		qt.Check(t, qt.Equals(err != nil, needsRTT), qt.Commentf("%s: %v", name, err))
	}
	parse(t, "line_rate: 1Gbps\ncontrols: {timely: {min_rtt: 20us}}\n")

	var c host.Controls
	qt.Check(t, qt.ErrorMatches(c.Add("pnc"), `unknown congestion control "pnc" \(hint: did you mean "pcn"\?\)`))
	qt.Check(t, qt.ErrorMatches(c.Add("dcqcn_tcd"), `unknown congestion control "dcqcn_tcd" .*`))
}

// A control whose switches only the simulator has is in no list, and refused in files and flags.
func TestSimulatedControlsAreRefused(t *testing.T) {
	const want = "scheme hpcc needs switches that write telemetry into packets, and only the " +
		"simulator's do"
	qt.Check(t, qt.Not(qt.SliceContains(host.ControlNames(), "hpcc")))
	var c host.Controls
	const hint = ` \(hint: one of dcqcn, .*\)`
	qt.Check(t, qt.ErrorMatches(c.Add("hpcc"), want+hint))
	qt.Check(t, qt.IsFalse(c.Has("hpcc")))
	_, err := host.Parse("f.yaml", []byte("line_rate: 1Gbps\ncontrols: {hpcc: {}}\n"))
	qt.Check(t, qt.ErrorMatches(err, "f.yaml:2:.*"+want+hint))
	qt.Check(t, qt.Not(qt.ErrorMatches(err, "(?s).*unknown key.*")))

	_, err = host.Parse("f.yaml", []byte("line_rate: 1Gbps\ncontrols: {nope: {}}\n"))
	qt.Check(t, qt.ErrorMatches(err, `f.yaml:2:12: unknown key "nope" \(hint: one of `+
		strings.Join(host.ControlNames(), ", ")+`\)`))
}

// SYNs are made plain where NP and RP run, if a control needs ECN, or where the file says.
func TestInterfacesOfECN(t *testing.T) {
	for text, want := range map[string][]string{
		"rtt: 1ms\ncontrols: {pcn: {}}\nnp: {interfaces: [b, a]}\nrp: {interfaces: [b]}\n": {"a", "b"},
		"rtt: 1ms\ncontrols: {pcn_dctcp: {}}\nnp: {interfaces: [a]}\necn: {}\n":            {"a"},
		"rtt: 1ms\ncontrols: {ldcp: {}}\nnp: {interfaces: [a]}\necn: {interfaces: [c]}\n":  {"c"},
		"rtt: 1ms\ncontrols: {pcn: {}}\nnp: {interfaces: [a]}\necn: {interfaces: []}\n":    {},
		"controls: {pcn: {}}\n": nil,
	} {
		qt.Check(t, qt.DeepEquals(parse(t, text).ECN, &host.ECN{Interfaces: want}), qt.Commentf("%s", text))
	}
	for _, text := range []string{"controls: {pcn_line: {}}\n", "np: {interfaces: [a], T: 1ms}\n"} {
		qt.Check(t, qt.IsNil(parse(t, text).ECN), qt.Commentf("%s", text))
	}
}

func TestErrorsOfFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    `f.yaml:1:1: file is empty \(hint: start with controls: and np:\)`,
		"controls: {pnc: {}}\n":               `f.yaml:1:12: unknown key "pnc" \(hint: did you mean "pcn"\?\)`,
		"line_rate: 10Gbps\n":                 `f.yaml:1:1: nothing is to run .*`,
		"controls: {ldcp: {}}\n":              `f.yaml:1:18: ldcp needs the round trip .*`,
		"controls: {pcn: {w_min: 0.9}}\n":     `(?s)f.yaml:1:25: 0.9 is out of range .*`,
		"rtt: 2s\ncontrols: {pcn: {}}\n":      `f.yaml:1:6: 2s is out of range \(hint: 1us to 1s\)`,
		"np: {interfaces: [e]}\n":             `f.yaml:1:5: "T" is missing .*`,
		"np: {interfaces: [e, e], T: 50us}\n": `f.yaml:1:22: duplicate interface "e".*`,
		"np: {T: 50us}\n":                     `f.yaml:1:5: "interfaces" is missing.*`,
		"np: {interfaces: [e], T: 50us, udp_ports: [0]}\n":             `f.yaml:1:44: 0 is out of range.*`,
		"ecn: {interfaces: [e]}\n":                                     `f.yaml:1:6: there is no control that needs ECN.*`,
		"rp: {interfaces: [e]}\n":                                      `f.yaml:1:5: there is no control that CNPs are for.*`,
		"controls: {pcn: {}}\nrp: {interfaces: [e], prefixes: [10]}\n": `f.yaml:2:34: "10" is not a prefix.*`,
		"controls: {pcn: {}}\necn: {interfaces: [e, e]}\n":             `f.yaml:2:23: duplicate interface "e".*`,
		"rtt: 1ms\ncontrols: {pcn: {feedback: acks}}\n":                `f.yaml:2:28: unknown feedback "acks" \(hint: did you mean "ack"\?\)`,
		"rtt: 1ms\ncontrols: {pcn: {feedback: never}}\n":               `f.yaml:2:28: unknown feedback "never" \(hint: .*cnp, ack, auto, ece\)`,
		"rtt: 1ms\ncontrols: {pcn_line: {max_flows: 5}}\n":             `f.yaml:2:23: unknown key "max_flows".*`,
		"rtt: 1ms\ncontrols: {pcn: {max_flows: 0}}\n":                  `f.yaml:2:29: 0 is out of range \(hint: 1 to 10000000\)`,
		"controls: {pcn: {w_mim: 0.1}}\n":                              `f.yaml:1:18: unknown key "w_mim" \(hint: did you mean "w_min"\?\)`,
		"controls: {pcn: {T: 1ms}}\n":                                  `f.yaml:1:18: unknown key "T".*`,
		"controls: {pcn: {min_rate: 5}}\n":                             `f.yaml:1:28: .*unit is missing.*`,
		"controls: {pcn: {min_rate: 2Gbps}}\nline_rate: 1Gbps\n":       `f.yaml:1:28: 2Gbps is out of range \(hint: .*1Mbps to 1Gbps\)`,
		"controls: {pcn: 5}\n":                                         `f.yaml:1:17: want a mapping .*`,
		"controls: {pcn: {}, pcn: {}}\n":                               `f.yaml:1:21: duplicate key "pcn" .*`,
		"controls: {pcn: {}, dcqcn: {}}\nrp: {interfaces: [e]}\n":      `f.yaml:2:5: CNPs could be for pcn or dcqcn .*`,
		"controls: {pcn: {feedback: auto}}\n":                          `f.yaml:1:28: ACKs are gone by in windows of T .*`,
		"cgroups: [{path: x, control: pcn}]\n":                         `f.yaml:1:18: "x" is not the path of a cgroup.*`,
		"rtt_to: [h]\ncontrols: {ldcp: {}}\nline_rate: 1Gbps\n":        `f.yaml:1:10: .*missing port.*`,
	} {
		_, err := host.Parse("f.yaml", []byte(text))
		qt.Check(t, qt.ErrorMatches(err, want), qt.Commentf("%s", text))
	}
}

// Whatever a file is, it is read or refused.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte("cgroups: [{path: /x, control: pcn}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := host.Parse("f.yaml", data)
		if err == nil {
			qt.Assert(t, qt.IsNil(c.Check("again")))
		}
	})
}

// What is auto follows from the round trip, the line rate and the number of flows.
func TestAuto(t *testing.T) {
	const network = "line_rate: 1Gbps\nrtt: 1ms\n"
	const control, np = "controls: {pcn: {w_min: auto}}\n", "np: {interfaces: [a], T: auto}\n"
	c := parse(t, network+"flows: 64\n"+control+np)
	got, err := c.SettingsOf("pcn")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.SliceContains(got, host.Setting{Key: "w_min", Value: "0.0015625"})) // 0.1/64
	// 192 packets of 1514 bytes of each flow at 1 Gbit/s
	period, err := c.PeriodOf()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(period, host.Period(192*64*1514*8)))
	for text, want := range map[string]string{
		network + control:                             "(?s).*auto needs the number of flows.*",
		network + np:                                  "(?s).*auto needs the number of flows.*",
		"line_rate: 1Gbps\nflows: 64\n" + np:          "(?s).*auto needs the round trip.*",
		network + "np: {interfaces: [a], T: often}\n": "(?s).*often.*",
	} {
		_, err := host.Parse("f.yaml", []byte(text))
		qt.Check(t, qt.ErrorMatches(err, want))
	}
}

// The name of an interface may hold what a terminal obeys: it is refused, and quoted.
func TestNamesThatDoNotPrint(t *testing.T) {
	_, err := host.Parse("f.yaml", []byte("np: {interfaces: [\"\\e[31m\"], T: 50us}\n"))
	qt.Check(t, qt.ErrorMatches(err,
		`f.yaml:1:19: interface "\\x1b\[31m" has a character that does not print.*`))
}
