// SPDX-License-Identifier: Apache-2.0

package host_test

import (
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
