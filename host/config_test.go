// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
)

func TestDefaults(t *testing.T) {
	c := parse(t, small)
	qt.Check(t, qt.DeepEquals(c, &host.Config{
		LineRate: 1e9,
		RTT:      config.Millisecond,
		Controls: host.Controls{PCN: &host.PCN{WMin: 1.0 / 128, WMax: 0.5, MinRate: 1e6, MaxFlows: 65536, Feedback: "cnp"}},
		NP:       &host.NP{Interfaces: []string{"veth0"}, T: config.Millisecond, CongestedShare: 0.95, MaxFlows: 65536, Idle: 10 * config.Second},
		RP: &host.RP{
			Interfaces: []string{"veth0"}, CNPInterval: config.Millisecond / 2, CNPBurst: 8, TagWindow: 500 * config.Millisecond,
		},
		Stamp: &host.Stamp{Interfaces: []string{"veth0"}, DataDSCP: 26, ControlDSCP: 48},
		ECN:   &host.ECN{Interfaces: []string{"veth0"}},
	}))
	c = parse(t, "stamp: {interfaces: [e], data_dscp: 0}\n")
	qt.Check(t, qt.Equals(c.Stamp.DataDSCP, 0))
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
		"":                                    `f.yaml: is empty \(hint: start with controls: and np:\)`,
		"controls: {pnc: {}}\n":               `f.yaml:1:12: unknown key "pnc" \(hint: did you mean "pcn"\?\)`,
		"line_rate: 10Gbps\n":                 `f.yaml:1:1: nothing is to run .*`,
		"controls: {ldcp: {}}\n":              `f.yaml:1:18: LDCP needs the round trip .*`,
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
		"rtt: 1ms\ncontrols: {pcn: {feedback: acks}}\n":                `f.yaml:2:28: unknown feedback "acks" \(hint: one of cnp, ack, ece, auto\)`,
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
