// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/fluid/dde"
)

// tcpRED is the model of TCP and RED of Misra, Gong, Towsley, "Fluid-based Analysis of a Network of
// AQM Routers Supporting TCP Flows", SIGCOMM 2000 (slides 14 to 21 of B. Prabhakar). With W the
// window, q the queue and x its average, in packets, and R = delay + q / C:
//
//	dW/dt = 1/R - W W(t-R) / (2 R(t-R)) p(x(t-R))
//	dq/dt = N W / R - C
//	dx/dt = -ln(1-weight) C (q - x)
//
// It is no scheme of experiments: Linux' TCP has other windows.
type tcpRED struct {
	Sources  float64
	Capacity float64 // packets/s
	Delay    float64 // s: the round trip of an empty network
	// RED: thresholds in packets, the probability at the upper one, and the weight of each packet.
	Low, High, PMax, Weight float64
}

// drop is RED's probability at an average queue.
func (r tcpRED) drop(x float64) float64 {
	return min(max((x-r.Low)/(r.High-r.Low), 0)*r.PMax, 1)
}

// swing runs so many seconds and returns by how much the queue varies in the last fifth, in
// packets.
func (r tcpRED) swing(seconds float64) float64 {
	const (
		window = iota
		queue
		average
	)
	const step = 0.001
	trip := func(q float64) float64 { return r.Delay + q/r.Capacity }
	gain := -math.Log(1-r.Weight) * r.Capacity
	s := dde.System{
		Derivative: func(t float64, _ []float64, past dde.Past, dy []float64) {
			w, q := past(window, t), past(queue, t)
			R := trip(q)
			before := t - R
			cut := past(window, before) / trip(past(queue, before)) * r.drop(past(average, before))
			dy[window] = 1/R - w/2*cut
			dy[queue] = r.Sources*w/R - r.Capacity
			dy[average] = gain * (q - past(average, t))
		},
		Limit: func(_ float64, y []float64) {
			y[window], y[queue] = max(y[window], 1), max(y[queue], 0)
		},
	}
	v, err := dde.New(s, dde.Heun, 0, step, []float64{1, 0, 0})
	if err != nil {
		panic(err) // the step is positive
	}
	low, high := math.Inf(1), 0.0
	v.Run(seconds, func(t float64, y []float64) {
		if t > seconds*4/5 {
			low, high = min(low, y[queue]), max(high, y[queue])
		}
	})
	return high - low
}

// Slide 21: with 50 sources and 9000 packets a second, TCP and RED become unstable as the delay
// grows. RED's values are not on the slide; these are ours.
func TestTCPREDInstability(t *testing.T) {
	red := tcpRED{Sources: 50, Capacity: 9000, Low: 50, High: 550, PMax: 0.1, Weight: 1e-4}
	var swings []float64
	for _, delay := range []float64{0.02, 0.05, 0.1, 0.2} {
		red.Delay = delay
		s := red.swing(60)
		t.Logf("round trip %g ms: the queue swings by %.1f packets", delay*1e3, s)
		swings = append(swings, s)
	}
	qt.Check(t, qt.IsTrue(swings[0] < 5))
	qt.Check(t, qt.IsTrue(swings[3] > 100))
}
