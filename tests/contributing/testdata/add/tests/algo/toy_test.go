// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/sim"
)

var _ = oracle(TestToyRandomEvents, "toy")

// The rate grows by a step at the first ACK behind each interval, and a loss halves it.
func TestToyRandomEvents(t *testing.T) {
	const line = 40e9
	grows, cuts := 0, 0
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := r.Int64N(1e9)
		least, step := float64(1000+r.Int64N(line/2)), float64(1+r.Int64N(line))
		interval := int64(1000 + r.IntN(1e6))
		flow := startLone(t, "toy", map[string]float64{
			"min_rate": least, "step": step, "interval": float64(interval)}, now)
		rate, due := line, now+interval
		for range 500 {
			now += int64(logUniform(r, 100, 1_000_000))
			switch {
			case r.IntN(4) == 0:
				flow.Loss(now)
				rate, due = max(float64(int64(rate)/2), least), now+interval
				cuts++
			default:
				flow.ACK(now, sim.LoneACK{Packets: 1, RTTNs: 10_000})
				if now >= due {
					rate, due = min(rate+step, line), now+interval
					grows++
				}
			}
			qt.Assert(t, qt.Equals(flow.RateBps(), uint64(rate)), qt.Commentf("seed %d", seed))
		}
		qt.Check(t, qt.IsTrue(flow.Stat("losses") > 0))
	}
	qt.Check(t, qt.IsTrue(grows > 1000 && cuts > 1000))
}
