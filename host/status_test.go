// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// Status advises on net.ipv4.tcp_ecn where a control needs ECN and connections do not ask for it.
func TestECNNotes(t *testing.T) {
	h := nstest.New(t)
	for _, c := range []struct {
		component, tcpECN string
		notes             int
	}{
		{"control_pcn", "2", 1}, {"control_pcn", "1", 0}, {"stamp", "2", 0}, {"stamp", "1", 0},
	} {
		nstest.Sysctl(t, h, "tcp_ecn", c.tcpECN)
		s := &host.Status{Components: []host.ComponentStatus{{Name: c.component}}}
		var notes []string
		nstest.Do(t, h, func() error { notes = s.ECNNotes(); return nil })
		qt.Check(t, qt.HasLen(notes, c.notes), qt.Commentf("%+v", c))
	}
}

// A reason for TCP's window is a problem if most flows have it and somebody can act, else a
// warning.
func TestDoubts(t *testing.T) {
	for _, c := range []struct {
		reasons            []string
		counts             map[string]uint64
		problems, warnings string
	}{
		{reasons: []string{"", "", "new", "new"}},
		{reasons: []string{"", "no_marks", "no_marks"},
			problems: "2 of 3 live flows have a TCP window: they lost packets, .*"},
		{reasons: []string{"", "no_marks"},
			warnings: "1 of 2 live flows have a TCP window: they lost packets, .*"},
		{reasons: []string{"no_entry"},
			warnings: "1 of 1 live flows have a TCP window: their entry .*"},
		{counts: map[string]uint64{"table_full": 3, "table_full_ended": 1},
			problems: "2 live flows found the flow table full .*"},
		{counts: map[string]uint64{"table_full": 3, "table_full_ended": 3}},
	} {
		problems, warnings := host.Doubts(c.counts, c.reasons...)
		qt.Check(t, qt.Matches(strings.Join(problems, "\n"), c.problems), qt.Commentf("%+v", c))
		qt.Check(t, qt.Matches(strings.Join(warnings, "\n"), c.warnings), qt.Commentf("%+v", c))
	}
}

// A flow without a rate, whose window bounds it, is not the slowest.
func TestLeastRate(t *testing.T) {
	var flows []host.LiveFlow
	for control, rates := range map[string][]uint64{"pcn": {0, 5e9, 3e9, 4e9}, "dcqcn": {1e9}} {
		for _, rate := range rates {
			f := host.LiveFlow{Control: control}
			f.SendRateBps = rate
			flows = append(flows, f)
		}
	}
	qt.Check(t, qt.Equals(host.LeastRate("pcn", flows), 3e9))
	qt.Check(t, qt.Equals(host.LeastRate("dcqcn", flows), 1e9))
	qt.Check(t, qt.Equals(host.LeastRate("ldcp", flows), 0))
}
