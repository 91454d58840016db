// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestWindowsAreOpen: before it sends anything, a sender may send more than a SYN-ACK can say.
func TestWindowsAreOpen(t *testing.T) {
	f := buildFabric(t, shortYAML, "pfc")
	tr, err := newTraffic(context.Background(), f)
	qt.Assert(t, qt.IsNil(err))
	defer func() { qt.Check(t, qt.IsNil(tr.close())) }()
	for _, s := range tr.streams {
		info, err := s.tcpInfo()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(info.Snd_wnd >= 8<<20), qt.Commentf("flow %s: %d bytes", s.Name, info.Snd_wnd))
		qt.Check(t, qt.Equals(info.Bytes_sent, 0))
	}
}
