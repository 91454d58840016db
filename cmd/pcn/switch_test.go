// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host"
)

func TestSwitchFlags(t *testing.T) {
	wred := func(w host.WRED) []host.SwitchPort {
		return []host.SwitchPort{{Interface: "e", WRED: &w}}
	}
	npecn := func(n host.NPECN) []host.SwitchPort {
		return []host.SwitchPort{{Interface: "e", NPECN: &n}}
	}
	for _, c := range []struct {
		flags switchFlags
		want  []host.SwitchPort
		err   string
	}{
		{
			flags: switchFlags{least: "30KB", probability: "1"},
			want:  wred(host.WRED{KMin: 30e3, KMax: 30e3, PMax: 1, K: 45e3}),
		},
		{
			flags: switchFlags{least: "0B", most: "90KB", probability: "20%", drop: "0B"},
			want:  wred(host.WRED{KMax: 90e3, PMax: 0.2}),
		},
		{
			flags: switchFlags{npecn: true, rate: "1Gbps", probability: "1"},
			want:  npecn(host.NPECN{Rate: 1e9}),
		},
		{
			flags: switchFlags{npecn: true, rate: "1Gbps", buffer: "2MB"},
			want:  npecn(host.NPECN{Rate: 1e9, Buffer: 2e6}),
		},
		{flags: switchFlags{}, err: "want --min, the queue where marking begins, .*"},
		{flags: switchFlags{npecn: true}, err: "--npecn needs --rate: .*"},
		{flags: switchFlags{least: "30kb"}, err: "--min: .*unknown unit.*"},
		{flags: switchFlags{least: "30KB", most: "x"}, err: "--max: .*"},
		{flags: switchFlags{least: "30KB", drop: "x"}, err: "--drop: .*"},
		{flags: switchFlags{least: "30KB", probability: "x"}, err: "--probability: .*"},
		{flags: switchFlags{npecn: true, rate: "x"}, err: "--rate: .*"},
		{flags: switchFlags{npecn: true, rate: "1Gbps", buffer: "x"}, err: "--buffer: .*"},
	} {
		ports, err := c.flags.ports([]string{"e"})
		if c.err != "" {
			qt.Check(t, qt.ErrorMatches(err, c.err), qt.Commentf("%+v", c.flags))
			continue
		}
		qt.Check(t, qt.IsNil(err), qt.Commentf("%+v", c.flags))
		qt.Check(t, qt.DeepEquals(ports, c.want))
	}
	_, err := (&switchFlags{least: "1KB"}).ports([]string{"a", "b", "a"})
	qt.Check(t, qt.ErrorMatches(err, "interface a is given twice: keep one"))
}

func TestPrintPorts(t *testing.T) {
	for _, c := range []struct {
		ports []host.SwitchPortStatus
		want  string
	}{
		{nil, "no interface of this host is a switch port\n"},
		{
			[]host.SwitchPortStatus{{
				Interface: "eth1", Qdisc: "tbf", QueueBytes: 1500,
				ComponentStatus: host.ComponentStatus{
					Settings: []host.Setting{{Key: "interfaces", Value: "eth1"},
						{Key: "kmin", Value: "30KB"}},
					Counts: map[string]uint64{"marked": 2, "superpackets": 0},
				},
			}},
			"eth1\n  kmin          30KB\n  queue now     1.5KB, of tbf\n" +
				"  marked        2\n  superpackets  0\n",
		},
		{
			[]host.SwitchPortStatus{{
				Interface: "eth1", Qdisc: "mq",
				ComponentStatus: host.ComponentStatus{
					Problems: []string{"broken"}, Counts: map[string]uint64{"superpackets": 1},
				},
			}},
			"eth1\n  PROBLEM: broken\n  queue now     0B, of mq\n  superpackets  1\n" +
				"  superpackets are several packets marked as one: turn off GRO where they " +
				"come in\n" +
				"  (ethtool -K IN gro off), and TSO and GSO of senders on this machine\n",
		},
	} {
		var out bytes.Buffer
		qt.Assert(t, qt.IsNil(printPorts(&out, c.ports)))
		qt.Check(t, qt.Equals(out.String(), c.want))
	}
}
