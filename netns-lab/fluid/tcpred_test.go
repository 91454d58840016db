// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// Slide 21: with 50 sources and 9000 packets a second, TCP and RED become unstable as the delay
// grows. RED's values are not on the slide; these are ours.
func TestTCPREDInstability(t *testing.T) {
	red := TCPRED{Sources: 50, Capacity: 9000, Low: 50, High: 550, PMax: 0.1, Weight: 1e-4}
	var swings []float64
	for _, delay := range []float64{0.02, 0.05, 0.1, 0.2} {
		red.Delay = delay
		s := red.Swing(60)
		t.Logf("round trip %g ms: the queue swings by %.1f packets", delay*1e3, s)
		swings = append(swings, s)
	}
	qt.Check(t, qt.IsTrue(swings[0] < 5))
	qt.Check(t, qt.IsTrue(swings[3] > 100))
}
