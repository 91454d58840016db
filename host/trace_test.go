// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host"
)

func TestWhatHappened(t *testing.T) {
	for want, e := range map[string]host.TraceEvent{
		"ACK":                            {},
		"CNP decrease":                   {NewDecrease: 1},
		"2 x CNP increase, loss":         {NewIncrease: 2, NewLosses: 1},
		"3 x retransmission, 4 x marked": {NewRetransmits: 3, NewMarks: 4},
	} {
		qt.Check(t, qt.Equals(e.What(), want))
	}
}
