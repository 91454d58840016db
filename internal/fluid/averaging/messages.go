// SPDX-License-Identifier: Apache-2.0

package averaging

import "math"

// messages is a run of RCP as slide 37 has it: a router that measures for T, sends R and begins
// again, sources that obey and average, and a queue that can't be negative.
type messages struct {
	RCP
	Steps int     // of averaging
	RTT   float64 // s
	// Start is the rate of all sources at first, as a share of C.
	Start float64
	// Free lets the queue be negative.
	Free bool
}

// tick is the step of such a run, in s.
const tick = 0.0005

// Swing runs so many seconds and returns by how much the arriving rate varies in the last quarter,
// as a share of C.
func (m messages) Swing(seconds float64) float64 {
	var (
		period   = int(math.Round(m.T / tick))
		half     = int(math.Round(m.RTT / 2 / tick))
		n        = int(seconds / tick)
		sent     = make([]float64, n+1)
		advised  = make([]float64, n)
		advice   = m.Start
		obeyed   = m.Start // the advice that the sources have followed
		now, old = m.Start, m.Start
		q, sum   float64
		low      = math.Inf(1)
		high     float64
	)
	sent[0] = m.Start
	at := func(v []float64, k int) float64 {
		if k < 0 {
			return m.Start
		}
		return v[k]
	}
	for k := range n {
		y := at(sent, k-half)
		q += (y - 1) * tick
		if !m.Free {
			q = max(q, 0)
		}
		sum += y * tick
		if k%period == period-1 {
			f := m.Alpha*(1-sum/m.T) - m.Beta*q/m.D0
			advice = min(max(advice*(1+m.T/m.D0*f), 1e-3), 10)
			sum = 0
		}
		advised[k] = advice
		phase := (k + 1) % period
		if phase == 0 {
			told := at(advised, k-half)
			old = now
			now *= told / obeyed
			obeyed = told
		}
		for i := 1; i <= m.Steps; i++ {
			if phase == period*i/(m.Steps+1) {
				now = (now + old) / 2
			}
		}
		sent[k+1] = now
		if k > n*3/4 {
			low, high = min(low, y), max(high, y)
		}
	}
	return high - low
}
